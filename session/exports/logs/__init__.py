"""Logs of other programs: those of Spike, riscv-dv and tandem verification."""
