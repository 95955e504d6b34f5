"""What `values.py` beside this folder measures: programs, what they executed according to Spike, claims about it."""
