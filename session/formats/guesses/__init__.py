"""Guesses of what bytes are that cannot be read as they were said to be: format, dialect, options, frames."""
