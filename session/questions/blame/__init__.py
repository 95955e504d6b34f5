"""Which lines and branches tell bad runs from good ones."""
