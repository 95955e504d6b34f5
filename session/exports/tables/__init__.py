"""Tables: a row for each instruction, and for what happened between two; or, for SQLite, those of `rvtrace sql`."""
