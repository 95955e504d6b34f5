"""The part of a list of lines that a window shows, and the width of a line on the screen.

This module runs with and without gdb.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NORMAL = "\x1b[m"
REVERSE = "\x1b[7m"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class WindowLine(NamedTuple):
    """A line of the window.

    number  that of the instruction or gap in the history, None for events between them
    mark    two characters in front of the line, "=>" for the current position
    pc      the address of the instruction
    """

    text: str
    number: int | None = None
    mark: str = "  "
    pc: int | None = None


def around(lines: list[WindowLine], number: int, height: int) -> list[WindowLine]:
    """Return at most *height* lines, with the one of this number in the middle except near the ends of the list."""
    begin = max(0, min(index_of(lines, number) - height // 2, len(lines) - height))
    return lines[begin : begin + height]


def index_of(lines: list[WindowLine], number: int) -> int:
    """Return the index of the line with this number, else of the next smaller number, else 0."""
    found = 0
    for index, line in enumerate(lines):
        if line.number is not None and line.number <= number:
            found = index
    return found


def middle_of(lines: list[WindowLine], height: int) -> int | None:
    """Return the number in the middle of a window, or next to it; None if no line has one."""
    numbered = [(abs(index - height // 2), line.number) for index, line in enumerate(lines) if line.number is not None]
    return min(numbered)[1] if numbered else None


def wrapped(text: str, width: int) -> list[str]:
    """Wrap a text into lines of at most *width* columns, broken between words."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def cut(text: str, begin: int, width: int) -> str:
    """Return at most *width* columns of a text from *begin* on, with their colours."""
    pieces, column, at = [], 0, 0
    for colour in [*_COLOUR.finditer(text), None]:
        plain = text[at : colour.start() if colour else len(text)]
        pieces.append(plain[max(0, begin - column) : max(0, begin + width - column)])
        column += len(plain)
        if colour:
            pieces.append(colour.group())
            at = colour.end()
    return "".join(pieces)


def plain(text: str) -> str:
    """Return a text without colours."""
    return _COLOUR.sub("", text)


def printable(text: str) -> str:
    """Return a text in which unprintable characters (names come from programs) are blanks; colours stay."""
    pieces = _COLOUR.split(text)
    colours = [*_COLOUR.findall(text), ""]
    clean = ("".join(char if char.isprintable() else " " for char in piece) for piece in pieces)
    return "".join(piece + colour for piece, colour in zip(clean, colours))


def highlighted(text: str, width: int) -> str:
    """Return a line in reverse video, as wide as the window, without other colours."""
    return f"{REVERSE}{plain(text)[:width].ljust(width)}{NORMAL}"
