"""The session protocol: the server that gdb talks to, and the methods that a client can call."""
