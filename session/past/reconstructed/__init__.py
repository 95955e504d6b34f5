"""The values of a trace that has only addresses: computed from what ran, and from what is known besides the trace."""
