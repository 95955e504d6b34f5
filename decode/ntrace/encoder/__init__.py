"""A software N-Trace encoder. Its options are in `decode.ntrace.options`."""
