"""Text for the user: text from other people's files, made safe to show; and lines that carry facts for programs.

A `Line` carries more than text for a program: its kind, and its facts. Code that shows lines recognizes by their type
which ones are about problems, and programs get the facts beside the text.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from rvtrace_gdb.support.colours import pieces

_DIGITS = 20  # of the largest number there is anywhere, 2**64 - 1


_HISSING = ("s", "sh", "ch", "x")


def counted(number: int, what: str) -> str:
    """Return a number with its noun, e.g. "1 loss", "2 losses"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}{'es' if what.endswith(_HISSING) else 's'}"


def printable(text: str) -> str:
    r"""One line without control characters: what a terminal would obey, and what is not a character at all, is escaped.

    A name in a program may hold anything: ESC as \x1b, the end of a line as \n, a mark that turns the direction of
    writing as \u202e, a byte that is not text as \xff.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def columns(text: str) -> str:
    r"""Return the same as `printable` for a line with tabs between its columns. It may end with \r,
    as rows of CSV do.
    """
    if text.replace("\t", "").isprintable():
        return text
    line = text.removesuffix("\r")
    return "\t".join(map(printable, line.split("\t"))) + text[len(line) :]


class RowPiece(NamedTuple):
    """Consecutive rows, as UTF-8 that is safe to print, each with its end; and how many."""

    text: bytes
    number: int


def rows(lines: Sequence[str]) -> str:
    """Return lines, each with its end, made safe as by `columns`: no content can split a row or control a terminal."""
    text = "\n".join(lines)
    if text.count("\n") != len(lines) - 1 or not text.replace("\n", "").replace("\t", "").isprintable():
        text = "\n".join(map(columns, lines))
    return text + "\n"


def coloured_rows(lines: Sequence[str]) -> str:
    """Return lines as `rows` does, but with their colours."""
    made = (pieces(line) for line in lines)
    return "".join(
        "".join(part if i % 2 else columns(part) for i, part in enumerate(parts)) + "\n" for parts in made
    )


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # as the system's file names have bytes that are not text
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def value_text(value: object) -> str:
    """Return a value of a TOML or JSON file, as Python writes it; a number that Python does not write is called too
    long.
    """
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"


def open_problem(error: Exception) -> str:
    """Return why a file with some name cannot be opened, or a host with some name cannot be reached.

    *error*: OSError, ValueError or OverflowError.
    """
    if isinstance(error, UnicodeError):
        return "there can be no such name: it has a character that is none, or too many of them"
    if isinstance(error, ValueError):
        return "there can be no such name: it has a NUL in it" if "null" in str(error) else str(error)
    return getattr(error, "strerror", None) or str(error)


def is_file_name(text: str) -> bool:
    """Return whether some file could have that name."""
    try:
        return "\0" not in text and os.fsencode(text) != b""
    except UnicodeEncodeError:
        return False


def is_number(text: str) -> bool:
    """Return whether *text* is a decimal number: digits that `int` accepts, and not thousands of them."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def number_in(text: str) -> int:
    """Return the value of digits, hexadecimal after 0x, else decimal, whatever zeros precede them.
    Raises ValueError.
    """
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)


class Line(str):
    """A line for the user. *facts*: its facts, by name."""

    facts: Mapping[str, Any]

    def __new__(cls, text: str, **facts: Any) -> Self:
        line = super().__new__(cls, text)
        line.facts = facts
        return line


class Problem(Line):
    """A line about a problem, or about help with one: it is shown even if nothing else is to be shown."""


def warning(what: object, **facts: Any) -> Problem:
    """Return a line about a problem after which the work continued."""
    return Problem(f"warning: {what}", **facts)


def hint(what: object) -> Problem:
    """Return a line about what may help."""
    return Problem(f"hint:     {what}")


_ODD = re.compile(r"[\x7f-\x9f\u00ad\u0600-\uffff\U00010000-\U0010ffff]")
"""Characters that may be unprintable, and are escaped if they are; control characters are escaped anyway."""


def json_line(fields: Mapping[str, Any]) -> str:
    """Return a JSON object as one line. What is None is left out."""
    text = json.dumps({name: value for name, value in fields.items() if value is not None}, ensure_ascii=False)
    return text if text.isprintable() else _ODD.sub(lambda odd: json.dumps(odd[0])[1:-1], text)
