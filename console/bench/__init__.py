"""Test benches: the Python API of scripted captures, and the targets that are started for them."""
