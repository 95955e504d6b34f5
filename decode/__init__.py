"""From trace bytes to what ran: the decoders of every format, and the queries that their histories answer."""
