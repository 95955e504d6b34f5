"""Exports: what ran, written to a file in the form of another program."""
