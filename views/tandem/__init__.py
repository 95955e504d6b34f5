"""Tandem-verification traces: listings, JSON, and the formats of Spike and riscv-dv."""
