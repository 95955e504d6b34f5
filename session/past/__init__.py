"""Registers and memory at the positions of a history, whatever trace it comes from."""
