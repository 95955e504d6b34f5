"""What rvtrace adds to gdb's own server of the Debug Adapter Protocol."""
