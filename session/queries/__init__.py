"""Queries about a trace or the trace hardware: lists, searches, counts, registers."""
