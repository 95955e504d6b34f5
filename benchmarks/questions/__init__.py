"""What questions cost whose answer is derived, and whether reconstructed values are right."""
