"""Tests of `rvtrace lldb-dap`."""
