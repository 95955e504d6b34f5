"""The program a trace is about: its code, its symbols, its debug information, and what its instructions do."""
