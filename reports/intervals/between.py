"""Intervals from one place to another: from each time one place came to the first time the other one came after it.

Places come in the order of `Moment`: what happened before an instruction, such as a trap, comes before that instruction
at the same position. So there are intervals without an instruction: from a trap to the function that is its handler.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.reports.intervals.intervals import HistoryInterval, HistoryIntervals, Holes, PositionRanges, collected


class Order(IntEnum):
    """What comes first at one position."""

    RETURN = 0
    """The instruction before the position was a return."""
    TRAP = 1
    """A trap is taken before the instruction at the position."""
    INSTRUCTION = 2
    """The instruction at the position is about to run."""


class Occurrences(NamedTuple):
    """When a place came: the positions, in rising order, and what comes first where two places have one position."""

    positions: Sequence[int]
    order: Order = Order.INSTRUCTION


class IntervalsBetween(NamedTuple):
    """Intervals, and how many of them began while an older one had not ended: the place came again before the other."""

    intervals: HistoryIntervals
    overlapping: int


def intervals_between(
    history: History, first: Occurrences, last: Occurrences, part: range | PositionRanges | None = None
) -> IntervalsBetween:
    """Return the intervals from each time *first* came to the first time *last* came after it. *part*: those that begin
    in it alone.

    The same place may be both: then they are its periods.
    """
    holes, found, overlapping, before = Holes(history), list[HistoryInterval](), 0, -1
    unended, cut = list[int](), list[int]()
    for begin, end in _pairs(first, last):
        if end is None:
            if holes.are_in(begin, len(history)):
                cut.append(begin)
            else:
                unended.append(begin)
            continue
        overlapping += end == before and (part is None or begin in part)
        before = end
        found.append(HistoryInterval(begin, end))
    return IntervalsBetween(collected(history, found, cut=cut, began=(), unended=unended, part=part), overlapping)


def _pairs(first: Occurrences, last: Occurrences) -> Iterator[tuple[int, int | None]]:
    """Yield each position of *first* with the next one of *last*, None if there is none."""
    at, ends = 0, last.positions
    strictly = last.order <= first.order  # at the same position, it came before, or is the same
    for begin in first.positions:
        while at < len(ends) and (ends[at] < begin or (strictly and ends[at] == begin)):
            at += 1
        yield begin, ends[at] if at < len(ends) else None
