"""What crosses the pipe between gdb and the session, and how it is shown: rows of lists, and answers to questions."""
