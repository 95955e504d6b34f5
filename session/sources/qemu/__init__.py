"""Traces of what QEMU runs: from the recorder's ring through software encoders to a trace like any other."""
