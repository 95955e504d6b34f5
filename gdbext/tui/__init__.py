"""The history window of gdb's text user interface (TUI): `layout trace`."""
