"""E-Trace (Efficient Trace for RISC-V)."""
