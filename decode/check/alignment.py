"""How two rows of messages that differ go together: what agrees before and after each place where they do not.

One damaged place leaves a few messages that differ, and the rest agrees. An encoder that is built in another way
differs again and again.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

_AlignedRow = TypeVar("_AlignedRow")
_Other = TypeVar("_Other")

_WINDOW = 6  # messages, on both sides together, that a place where they differ may have


class RowAlignment(NamedTuple):
    """How many messages *agree*, and in how many *places* the rows differ."""

    agree: int
    places: int


def aligned(
    encoded_rows: Sequence[_AlignedRow], sent: Sequence[_Other], is_same: Callable[[_AlignedRow, _Other], bool]
) -> RowAlignment:
    """Return how the rows go together. Where they do not meet again, each message that is left is a place."""
    agree = places = i = j = 0
    while i < len(encoded_rows) and j < len(sent):
        if is_same(encoded_rows[i], sent[j]):
            agree, i, j = agree + 1, i + 1, j + 1
            continue
        places += 1
        skipped = _meeting(encoded_rows, sent, i, j, is_same)
        if skipped is None:
            return RowAlignment(agree, places + max(len(encoded_rows) - i, len(sent) - j))
        i, j = i + skipped[0], j + skipped[1]
    return RowAlignment(agree, places + (i < len(encoded_rows) or j < len(sent)))


def _meeting(
    encoded_rows: Sequence[_AlignedRow],
    sent: Sequence[_Other],
    i: int,
    j: int,
    is_same: Callable[[_AlignedRow, _Other], bool],
) -> tuple[int, int] | None:
    """Return after how many messages of each row they agree again: in two messages, if there are two."""
    for together in range(1, _WINDOW + 1):
        for skipped in range(together + 1):
            first, second = i + skipped, j + together - skipped
            pairs = list(islice(zip(encoded_rows[first : first + 2], sent[second : second + 2], strict=False), 2))
            if pairs and all(is_same(*pair) for pair in pairs):
                return skipped, together - skipped
    return None
