"""What instructions do: their encodings, the values they compute, and floating-point arithmetic."""
