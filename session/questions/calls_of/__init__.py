"""Each call of a function: from where, with which arguments, what it returned, how long it took."""
