"""The command line `rvtrace ...`, and what drives a real gdb: the console, scripts, and the Python API."""
