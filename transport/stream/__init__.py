"""Bytes that arrive: files that grow, pipes, sockets, serial lines."""
