"""Reports: figures about what ran, without the form of a file."""
