"""Trace registers as data that cites its document, and the procedures that use them over a `Target`."""
