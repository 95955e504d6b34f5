"""What `benchmarks/decoding/damage.py` measures: streams, damages, outcomes."""
