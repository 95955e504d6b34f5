"""Values whose types nothing has checked yet, as JSON, TOML and the pipe to gdb have them.

Each function returns a value with its type, or None if it is something else. Whoever reads the value says in its own
words what is wrong with it. True and False are no numbers.
"""

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_U = TypeVar("_U")


def number(value: object) -> int | None:
    """Return a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def natural(value: object) -> int | None:
    """Return a whole number that is not negative."""
    found = number(value)
    return None if found is None or found < 0 else found


def number_in(allowed: range) -> Callable[[object], int | None]:
    """Return a reader of the numbers in a range."""
    return lambda value: found if (found := number(value)) is not None and found in allowed else None


def text(value: object) -> str | None:
    """Return a text."""
    return value if isinstance(value, str) else None


def list_of(value: object, member: Callable[[object], _T | None]) -> list[_T] | None:
    """Return a list, all of whose members *member* can read."""
    if not isinstance(value, list):
        return None
    members = [found for one in value if (found := member(one)) is not None]
    return members if len(members) == len(value) else None


def pair_of(
    value: object, first: Callable[[object], _T | None], second: Callable[[object], _U | None]
) -> tuple[_T, _U] | None:
    """Return a list of two values."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    one, other = first(value[0]), second(value[1])
    return None if one is None or other is None else (one, other)


def table(value: object) -> dict[str, object] | None:
    """Return the values of a table by their names."""
    return value if isinstance(value, dict) else None
