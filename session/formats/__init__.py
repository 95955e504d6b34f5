"""Decoding the bytes of a capture into histories and messages, for each trace format."""
