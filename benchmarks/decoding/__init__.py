"""How fast traces are decoded and encoded, and what damage does to them."""
