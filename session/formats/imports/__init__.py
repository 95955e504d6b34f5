"""What makes a capture of raw trace bytes: the encoders that sent them, and whose bytes in frames are."""
