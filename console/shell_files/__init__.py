"""Files for shells that are made of the parsers of the commands: completion, and the manual page."""
