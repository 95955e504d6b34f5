"""What an itemizer gives where only the text of the items is shown, each text made once and remembered."""

ItemText = tuple[int, int, int | None, str]
"""The offset of the first byte, that after the last one, the source (None: not a message), and the text."""

MOST_TEXTS = 1 << 15
"""The number of texts that an itemizer remembers at most."""
