"""Debug adapters for gdb, as editors use them."""
