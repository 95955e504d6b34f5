"""What an itemizer gives where only the text of the items is shown, each text made once and remembered."""

from typing import NamedTuple

ItemText = tuple[int, int, int | None, str]
"""The offset of the first byte, that after the last one, the source (None: not a message), and the text."""

MOST_TEXTS = 1 << 15
"""The number of texts that an itemizer remembers at most."""


class TimedText(NamedTuple):
    """The text of a message whose timestamp and time are known, in pieces: what is before the timestamp, between it and
    the time, behind that, and behind the bytes of the timestamp (None: the text shows no bytes).
    """

    before: str
    between: str
    behind: str
    behind_bytes: str | None

    def text(self, stamp: str, time: str, raw: bytes) -> str:
        """Return the text with a timestamp and a time, as they are shown. *raw*: the bytes of the timestamp."""
        if self.behind_bytes is None:
            return f"{self.before}{stamp}{self.between}{time}{self.behind}"
        return f"{self.before}{stamp}{self.between}{time}{self.behind}{raw.hex()}{self.behind_bytes}"


_DECIMAL_BITS = 64


def number_text(value: int) -> str:
    """Return a number in decimal, or in hexadecimal if it is very long."""
    return str(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)
