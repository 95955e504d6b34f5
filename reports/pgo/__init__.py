"""What compilers take to make a program faster: which code ran how often, by functions, lines, arcs and calls."""
