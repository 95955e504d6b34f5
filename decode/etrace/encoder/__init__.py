"""A software E-Trace encoder."""
