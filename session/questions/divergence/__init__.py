"""Where two runs part, where they come together again, and what differs in between."""
