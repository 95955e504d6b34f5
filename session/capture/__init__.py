"""A captured trace: what it consists of, and the file it is saved in."""
