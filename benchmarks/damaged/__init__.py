"""What `benchmarks/damage.py` measures: streams, damages, outcomes."""
