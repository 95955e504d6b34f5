"""The past of a tandem trace, which contains registers and memory."""
