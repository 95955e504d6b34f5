"""What people and programs see outside gdb: listings, disassembly, and rows as JSON."""
