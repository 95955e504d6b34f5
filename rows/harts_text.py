"""Numbers of harts, as text: "harts 0 to 3, 6, 9 to 11"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

MANY = 3
"""So many numbers that follow each other are said as a range."""


def harts_text(harts: Sequence[int]) -> str:
    """Return "hart 3", "harts 0, 1", or "harts 0 to 15", in the order of *harts*, of which there is one at least."""
    return f"hart{'s' * (len(harts) > 1)} {numbers_text(harts)}"


def numbers_text(numbers: Iterable[int]) -> str:
    """Return numbers in their order, three or more that follow each other as a range: "0, 1, 3, 5 to 15"."""
    groups = groupby(enumerate(numbers), lambda it: it[1] - it[0])
    return ", ".join(_range_text([number for _, number in group]) for _, group in groups)


def _range_text(run: Sequence[int]) -> str:
    return f"{run[0]} to {run[-1]}" if len(run) >= MANY else ", ".join(map(str, run))
