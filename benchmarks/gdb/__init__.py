"""What gdb does with rvtrace, in the real gdb."""
