"""Control Transfer Records in a session: started and read on a target, and read in a capture."""
