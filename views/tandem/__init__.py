"""Tandem-verification traces: listings, JSON, and the forms that Spike and riscv-dv have."""
