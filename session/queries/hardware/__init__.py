"""What `trace info`, `trace regs` and `trace connect` show: trace components, their registers, what is missing."""
