"""A captured trace: its parts, and the file in which it is saved."""
