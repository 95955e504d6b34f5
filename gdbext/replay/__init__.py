"""Replay mode: what gdb needs while it is connected through the proxy, and while it is in the past of the program."""
