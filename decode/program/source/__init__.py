"""Which source code instructions come from: lines, and functions that were inlined."""
