"""gdb's remote serial protocol: bytes, packets and what they mean, conditions, the description of registers."""
