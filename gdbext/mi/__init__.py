"""Commands of gdb's machine interface, for IDEs (docs/ide.md)."""
