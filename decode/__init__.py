"""From trace bytes to what ran: the decoders of every format, and what can be asked of the histories they make."""
