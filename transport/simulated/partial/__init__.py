"""A simulated hart of which some registers and some memory are unknown: one that goes on from a place of the past."""
