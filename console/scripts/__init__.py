"""Scripted captures, `rvtrace run`: docs/scripts.md."""
