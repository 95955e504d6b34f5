"""Which part of a list of lines a window shows, and how wide a line is on the screen.

This module runs with and without gdb.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NORMAL = "\x1b[m"
REVERSE = "\x1b[7m"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Line(NamedTuple):
    """A line of the window.

    number  of the instruction or gap in the history, None for what happened between them
    mark    two characters that say what is special about it
    pc      the address of the instruction
    """

    text: str
    number: int | None = None
    mark: str = "  "
    pc: int | None = None


def around(lines: list[Line], number: int, height: int) -> list[Line]:
    """At most *height* lines with the one that has this number in the middle, unless the list ends before."""
    begin = max(0, min(index_of(lines, number) - height // 2, len(lines) - height))
    return lines[begin : begin + height]


def index_of(lines: list[Line], number: int) -> int:
    """Where the line with this number is, else the one with the next smaller one; 0 where there is none."""
    found = 0
    for index, line in enumerate(lines):
        if line.number is not None and line.number <= number:
            found = index
    return found


def middle_of(lines: list[Line], height: int) -> int | None:
    """The number in the middle of a window, or next to it; None where no line has one."""
    numbered = [(abs(index - height // 2), line.number) for index, line in enumerate(lines) if line.number is not None]
    return min(numbered)[1] if numbered else None


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines that are not wider, broken between words."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def cut(text: str, begin: int, width: int) -> str:
    """The columns from *begin* on, *width* at most, in the colours they have."""
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
    """Without colours."""
    return _COLOUR.sub("", text)


def printable(text: str) -> str:
    """Without what would move the cursor (names come from programs); colours stay."""
    pieces = _COLOUR.split(text)
    colours = [*_COLOUR.findall(text), ""]
    clean = ("".join(char if char.isprintable() else " " for char in piece) for piece in pieces)
    return "".join(piece + colour for piece, colour in zip(clean, colours))


def highlighted(text: str, width: int) -> str:
    """A line in reverse video as wide as the window, without other colours."""
    return f"{REVERSE}{plain(text)[:width].ljust(width)}{NORMAL}"
