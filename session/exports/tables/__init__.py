"""Tables: a row for each instruction, and for what happened between two."""
