"""Colours of lists on a terminal, those that gdb has for the same things.

Code that makes lines gets a `Paint` and says what a text is; whether that shows is decided once, where the output is
known. `gdbext.text` has the same names and colours inside gdb.
"""

import re
from collections.abc import Callable

Paint = Callable[[str, str], str]
"""Returns a text in the colour for what it is, a key of `COLOURS`: `paint("address", "0x80000000")`."""

COLOURS = {
    "address": "34", "function": "33", "mnemonic": "32", "event": "36", "gap": "1;31", "heading": "1", "error": "1;31",
}  # fmt: skip
"""The parameters of SGR (ECMA-48) for what a text is: the first three are gdb's defaults (`help set style`)."""
_COLOUR = re.compile(rf"(\x1b\[(?:{'|'.join(sorted(set(COLOURS.values())))})?m)")


def plain(what: str, text: str) -> str:
    """Return the text: the `Paint` without colours."""
    return text


def painted(what: str, text: str) -> str:
    """Return the text in its colour."""
    return f"\x1b[{COLOURS[what]}m{text}\x1b[m"


def pieces(line: str) -> list[str]:
    """Split a line into texts and, at the odd indices, the colours between them."""
    return _COLOUR.split(line)


def without(text: str) -> str:
    """Return a text without its colours."""
    return "".join(pieces(text)[::2])


def beginning(line: str, width: int) -> str:
    """Return the first *width* characters of a line, with their colours."""
    parts, left = pieces(line), width
    for i in range(0, len(parts), 2):
        parts[i] = parts[i][:left]
        left -= len(parts[i])
    return "".join(parts)
