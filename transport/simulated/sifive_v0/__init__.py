"""Simulated trace components of the interface before 1.0 (version 0), as the SiFive P550 has them."""
