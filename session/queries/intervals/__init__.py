"""Intervals of a history, `trace intervals`: the question, and the answer."""
