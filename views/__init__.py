"""What people and programs look at outside gdb: listings, disassembly, and rows as JSON."""
