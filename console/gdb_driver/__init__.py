"""A real gdb with rvtrace loaded, driven over its machine interface."""
