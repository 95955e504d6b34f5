"""Pieces of a history, and what they do to the call stacks, whatever these are when a piece begins."""
