"""The places that intervals begin and end at, as users type them: FUNCTION and the other places of `trace find`,
`return:FUNCTION`, `trap`, `interrupt` or `exception`, with `:CAUSE`, and `trap-return`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

EXECUTION, RETURN, TRAP_RETURN = "execution", "return", "trap-return"
TRAPS = ("trap", "interrupt", "exception")
KINDS = (EXECUTION, RETURN, TRAP_RETURN, *TRAPS)
"""The kinds of places."""
_TRAP = re.compile(r"(trap|interrupt|exception)(?::([0-9]{1,18}))?")


class IntervalPlace(NamedTuple):
    """A place: its *kind*, the *location* for the search of an execution or the function of a return, else "", and the
    *cause* of a trap, None: any.
    """

    kind: str
    location: str = ""
    cause: int | None = None


def place_of(text: str) -> IntervalPlace:
    """Return the place that a text stands for. What is no other kind is a location."""
    text = text.strip()
    trap = _TRAP.fullmatch(text)
    if trap is not None:
        return IntervalPlace(trap[1], cause=None if trap[2] is None else int(trap[2]))
    if text == TRAP_RETURN:
        return IntervalPlace(TRAP_RETURN)
    prefix, colon, function = text.partition(":")
    if prefix == RETURN and colon and function:
        return IntervalPlace(RETURN, function)
    return IntervalPlace(EXECUTION, text)


def trap_name(kind: str, cause: int | None) -> str:
    """Return what traps of a kind are called, in the plural."""
    return f"{kind}s" if cause is None else f"{kind}s with cause {cause}"
