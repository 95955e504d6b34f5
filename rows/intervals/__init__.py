"""Intervals: the places they begin and end at, and the answer with their figures."""
