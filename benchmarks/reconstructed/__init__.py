"""What `benchmarks/values.py` measures: programs, what they executed according to Spike, and claims about it."""
