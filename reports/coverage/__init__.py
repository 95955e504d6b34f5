"""Coverage of source code and of object code: what ran, what did not, and what may have run in a gap of the trace."""
