"""Lines for the user that say more than words to the program: what kind they are, and what they tell.

Who shows lines knows by their type which are about what goes wrong, and programs get the facts beside the words.
"""

from collections.abc import Mapping
from typing import Any, Self


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
