"""A trace as tables of SQLite: what they have, how they are filled, and queries that read them."""
