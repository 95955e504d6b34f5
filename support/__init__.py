"""What every room may import and what imports no room: the root of the errors, progress and cancellation."""
