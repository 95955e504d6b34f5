"""Intervals of a history: the instructions from one position to another, with what could not be measured beside them.

An interval is measured if both of its ends are known and nothing is missing between them. All others are counted apart:
those with a gap inside, those that began before the history, and those that it does not show the end of.

A part of a history has the intervals that begin in it, with all of their instructions, even those behind its end: so
each interval is in one of several parts, and the long ones are not left out because they are long.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.history.missing import placeless_losses


@dataclass(frozen=True)
class PositionRanges:
    """Positions of several *ranges* of a history, which are in order, such as the turns of a task."""

    ranges: tuple[range, ...]

    @property
    def start(self) -> int:
        """The first position."""
        return self.ranges[0].start if self.ranges else 0

    @property
    def stop(self) -> int:
        """The position behind the last one."""
        return self.ranges[-1].stop if self.ranges else 0

    def __contains__(self, position: int) -> bool:
        found = bisect_right(self.ranges, position, key=lambda part: part.start) - 1
        return found >= 0 and position in self.ranges[found]


class HistoryInterval(NamedTuple):
    """The instructions at positions *begin* to *end* - 1. *depth*: how many intervals of the same kind it is inside of,
    of those that are known: 0 for the outermost call of a recursion.
    """

    begin: int
    end: int
    depth: int = 0


class HistoryIntervals:
    """The intervals that were measured, in the order of their beginnings.

    begins, ends, depths  of each, see `HistoryInterval`
    cut     how many more have a gap inside, or may have, or end in one
    began   how many more ended although the history does not show their beginning
    open    how many more had not ended where the history ends; *oldest*: where the first of these began, None: of none
    """

    def __init__(self) -> None:
        self.begins, self.ends, self.depths = array("Q"), array("Q"), array("L")
        self.cut = self.began = self.open = 0
        self.oldest: int | None = None

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, number: int) -> HistoryInterval:
        return HistoryInterval(self.begins[number], self.ends[number], self.depths[number])

    def __iter__(self) -> Iterator[HistoryInterval]:
        return map(HistoryInterval, self.begins, self.ends, self.depths)

    def append(self, one: HistoryInterval) -> None:
        """Add an interval, which does not begin before the last one."""
        self.begins.append(one.begin)
        self.ends.append(one.end)
        self.depths.append(one.depth)

    def lengths(self) -> "array[int]":
        """Return how many instructions each has."""
        return array("Q", [end - begin for begin, end in zip(self.begins, self.ends, strict=True)])


def collected(
    history: History,
    complete: Iterable[HistoryInterval],
    *,
    cut: Iterable[int],
    began: Iterable[int],
    unended: Iterable[int],
    part: range | PositionRanges | None = None,
) -> HistoryIntervals:
    """Return intervals, without those that have a gap inside: these are counted with the others that are *cut*.

    cut, unended  where the others begin that are cut, and those that have not ended where the history ends
    began         where those end whose beginning the history does not show
    part          which positions count, of the beginnings, or of the ends of those without one; None: all
    """
    begins = counted_positions(history, part)
    intervals, holes = HistoryIntervals(), Holes(history)
    intervals.cut = sum(at in begins for at in cut)
    intervals.began = sum(at in begins for at in began)
    still = [at for at in unended if at in begins]
    intervals.open, intervals.oldest = len(still), min(still, default=None)
    for one in sorted(it for it in complete if it.begin in begins):
        if holes.are_in(one.begin, one.end):
            intervals.cut += 1
        else:
            intervals.append(one)
    return intervals


def counted_positions(history: History, part: range | PositionRanges | None) -> range | PositionRanges:
    """Return the positions of a part, None: of all; what comes after the last instruction belongs to that."""
    part = range(len(history)) if part is None else part
    if part.stop < len(history) or (isinstance(part, PositionRanges) and not part.ranges):
        return part
    if isinstance(part, range):
        return range(part.start, part.stop + 1)
    last = part.ranges[-1]
    return PositionRanges((*part.ranges[:-1], range(last.start, last.stop + 1)))


class Holes:
    """Where something is missing in a history: its gaps, and the stretches in which something is missing at a place
    that is not known (`Loss.has_place`).
    """

    def __init__(self, history: History) -> None:
        self.gaps: Sequence[int] = history.gap_positions
        self.doubtful = [range(it.since, it.begin) for it in placeless_losses(history)]

    def are_in(self, begin: int, end: int) -> bool:
        """Return whether something is missing, or may be, at positions *begin* to *end* - 1."""
        if bisect_left(self.gaps, begin) != bisect_left(self.gaps, end):
            return True
        return any(stretch.start < end and begin < stretch.stop for stretch in self.doubtful)
