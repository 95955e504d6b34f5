"""Lists that are shown in pages: the rows of a history, places in it, functions, calls, records, and their parts."""
