"""What gdb writes to a target, halt by halt: noticed in its packets, and kept."""
