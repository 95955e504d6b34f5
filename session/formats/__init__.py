"""From the bytes of a capture to histories and messages, for each trace format."""
