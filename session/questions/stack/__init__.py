"""How deep the stack was: its areas, trap levels, the deepest chain of calls, and what each function took."""
