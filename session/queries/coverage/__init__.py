"""How often the code of programs ran: on all harts, while they run, and in pieces of a long trace."""
