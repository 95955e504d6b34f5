"""What every room may import, and what imports no room: errors, progress, text, files, and the operating system."""
