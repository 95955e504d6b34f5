"""Intervals of a history: from one place to another, per call of a function, per trap; their lengths and their ways."""
