"""What is logged, as the user types it behind a place: `/x i, p->next if i > 3 1,20`. gdb and the shell read it so.

The order is: `/LETTER`, expressions between commas, the first of which may be a format ("i=%d\\n"), `if` with a
condition, and a RANGE, which counts the rows of the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_LETTER = re.compile(r"\s*/([a-zA-Z]+)(?=\s|$)")
_RANGE = re.compile(r"(?:^|(?<=[\w)\]'\"])\s+)([0-9]+(?:\s*,\s*[-+]?[0-9]+)?)\s*$|^\s*([-+])\s*$")
"""A range after an operand: what follows an operator or a comma is a part of an expression. Alone also + and -."""
_IF = re.compile(r"\bif\b")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class LogArguments(NamedTuple):
    """What is logged. *condition*, *letter*, *numbers* (a RANGE): "" without one."""

    expressions: list[str]
    condition: str
    letter: str
    numbers: str


def log_arguments(text: str) -> LogArguments:
    """Return what a text asks for."""
    found = _LETTER.match(text)
    letter = found[1] if found else ""
    text = text[found.end() :] if found else text
    ranged = _RANGE.search(text)
    numbers = (ranged[1] or ranged[2]) if ranged else ""
    text = text[: ranged.start()] if ranged else text
    expressions, condition = _without_condition(text)
    return LogArguments(split_expressions(expressions), condition.strip(), letter, numbers)


def _without_condition(text: str) -> tuple[str, str]:
    outside = {place for place, _ in _outer(text)}
    for found in _IF.finditer(text):
        if found.start() in outside:
            return text[: found.start()], text[found.end() :]
    return text, ""


def split_expressions(text: str) -> list[str]:
    """Return the expressions between the commas that are outside of quotes, parentheses and brackets."""
    commas = [place for place, character in _outer(text) if character == ","]
    begins = [0, *(place + 1 for place in commas)]
    found = [text[begin:end].strip() for begin, end in zip(begins, [*commas, len(text)])]
    return [] if found == [""] else found


def _outer(text: str) -> Iterator[tuple[int, str]]:
    """Yield the characters outside of quotes, parentheses and brackets, with their places."""
    closing: list[str] = []
    quote, escaped = "", False
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote and not escaped else quote
            escaped = character == "\\" and not escaped
        elif character in "'\"":
            quote = character
        elif closing and character == closing[-1]:
            closing.pop()
        elif character in _CLOSING:
            closing.append(_CLOSING[character])
        elif not closing:
            yield place, character
