"""The compiled loop of the decoders that remember steps; without it, they do the same in Python."""
