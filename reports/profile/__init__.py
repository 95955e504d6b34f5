"""Where the instructions and the time of a hart went: by functions, calls, lines, blocks, edges, branches and traps."""
