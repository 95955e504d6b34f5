"""Timelines: what ran when, for programs that draw that."""
