"""How sure one can be of a trace: its history, encoded again with its own settings, must give the same messages."""
