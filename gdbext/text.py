"""Text that is fit to be printed: names in a program may hold anything.

A name must neither split a line nor send control characters to the terminal, so these are escaped. This module runs
with and without gdb; `support.text` does the same outside gdb.
"""

from __future__ import annotations

import re

_COLOUR = re.compile(r"(\x1b\[(?:3[0-7])?m|\t)")  # `listing` uses no others


def printable(text: str) -> str:
    r"""A name, in which what is no character to be shown is escaped: ESC as \x1b, the end of a line as \n."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def shown(line: str) -> str:
    """A line, of which tabs and colours stay."""
    if line.isprintable():
        return line
    return "".join(part if i % 2 else printable(part) for i, part in enumerate(_COLOUR.split(line)))


def columns(text: str) -> str:
    """As `printable`; tabs stay."""
    return text if text.isprintable() else "\t".join(map(printable, text.split("\t")))


def print_line(line: object) -> None:
    """Print a line: as one."""
    print(shown(str(line)))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that is no text
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
