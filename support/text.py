"""Text for the user: from somebody else's file, fit to be shown; and lines that carry facts for programs.

A `Line` says more than words to a program: what kind it is, and what it tells. Code that shows lines knows by their
type which ones are about what goes wrong, and programs get the facts beside the words.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

_DIGITS = 20  # of the largest number there is anywhere, 2**64 - 1


def printable(text: str) -> str:
    r"""One line without control characters: what a terminal would obey, and what is no character at all, is escaped.

    A name in a program may hold anything: ESC as \x1b, the end of a line as \n, a mark that turns the direction of
    writing as \u202e, a byte that is no text as \xff.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def columns(text: str) -> str:
    r"""As `printable`, of a line whose tabs part its columns. It may end with \r, as rows of CSV do."""
    if text.replace("\t", "").isprintable():
        return text
    line = text.removesuffix("\r")
    return "\t".join(map(printable, line.split("\t"))) + text[len(line) :]


def rows(lines: Sequence[str]) -> str:
    """Lines, each with its end, and as `columns`: whatever is in them, no row becomes two and none obeys."""
    text = "\n".join(lines)
    if text.count("\n") != len(lines) - 1 or not text.replace("\n", "").replace("\t", "").isprintable():
        text = "\n".join(map(columns, lines))
    return text + "\n"


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # as the system's file names have bytes that are no text
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def shown(value: object) -> str:
    """A value of a TOML or JSON file, as Python writes it; a number that Python does not write is called too long."""
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"


def why_not(error: Exception) -> str:
    """Why a file with some name cannot be opened, or a host with some name not be reached. *error*: OSError, ValueError
    or OverflowError.
    """
    if isinstance(error, UnicodeError):
        return "there can be no such name: it has a character that is none, or too many of them"
    if isinstance(error, ValueError):
        return "there can be no such name: it has a NUL in it" if "null" in str(error) else str(error)
    return getattr(error, "strerror", None) or str(error)


def is_file_name(text: str) -> bool:
    """Whether some file could be called that."""
    try:
        return "\0" not in text and os.fsencode(text) != b""
    except UnicodeEncodeError:
        return False


def is_number(text: str) -> bool:
    """Whether *text* is a decimal number: digits that `int` takes, and not thousands of them."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def number_in(text: str) -> int:
    """The value of digits, hexadecimal behind 0x, else decimal, whatever zeros are before them. Raises ValueError."""
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)


class Line(str):
    """A line for the user. *facts*: what it tells, by name."""

    facts: Mapping[str, Any]

    def __new__(cls, text: str, **facts: Any) -> Self:
        line = super().__new__(cls, text)
        line.facts = facts
        return line


class Problem(Line):
    """A line about what goes wrong, or what may help: it is said even where nothing else is to be said."""


def warning(what: object, **facts: Any) -> Problem:
    """Something is wrong, and the work went on."""
    return Problem(f"warning: {what}", **facts)


def hint(what: object) -> Problem:
    """What may help."""
    return Problem(f"hint:     {what}")
