"""The names of a program's functions and variables, as gdb and the linker have them, and as users type them."""
