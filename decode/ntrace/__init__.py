"""N-Trace (Nexus Trace for RISC-V), 1.0 and what came before it: its decoder, and below its encoder."""
