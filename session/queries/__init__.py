"""What can be asked of a trace or of the trace hardware: listings, searches, counts, registers."""
