"""LLDB in the past, as a client of `rvtrace serve`."""
