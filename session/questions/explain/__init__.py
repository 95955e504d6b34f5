"""How a run ended: what keeps a program where its trace ends, and what went wrong before, without a question asked."""
