"""What `rvtrace init` finds out about a board that no file describes, asks, and writes as a target description."""
