"""The histories of several harts as one, in the order of their times.

Each hart keeps its own order: a time that is earlier than the one before it is replaced by that. What lies between two
known times runs at the earlier one, and what ran before the first time at that. Of equal times the hart with the lower
number comes first; harts without times come last, one after the other.

Nothing is merged in advance: a search finds how many positions of each hart come before a time, and a part is merged
when it is read.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import accumulate, chain, islice
from operator import le
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History


class HistoryRun(NamedTuple):
    """The positions *begin* to *end* - 1 of a hart's history."""

    hart: int
    begin: int
    end: int


def untimed(histories: Mapping[int, History]) -> list[int]:
    """Return the harts whose histories have no times."""
    return [hart for hart in sorted(histories) if not histories[hart].times]


class HartOrder:
    """All positions of *histories* in the order of their times, with an index from 0 on."""

    def __init__(self, histories: Mapping[int, History]) -> None:
        self._lengths = {hart: len(histories[hart]) for hart in sorted(histories) if len(histories[hart])}
        self._timed = {hart: _HistoryTimes(histories[hart]) for hart in self._lengths if histories[hart].times}
        self.untimed = [hart for hart in self._lengths if hart not in self._timed]
        """The harts that have no times, but positions."""
        self._length = sum(self._lengths.values())

    def __len__(self) -> int:
        return self._length

    @property
    def settled(self) -> int:
        """How many indices stay what they are while all histories grow: of harts that have times, what ran before the
        time up to which each of them is known.
        """
        if self.untimed or not self._timed:
            return 0
        known = min(timed.known_until for timed in self._timed.values())
        return sum(timed.until(known - 1) for timed in self._timed.values())

    def index(self, hart: int, position: int) -> int:
        """Return the index of a hart's position."""
        if hart not in self._timed:
            earlier = [*self._timed, *(other for other in self.untimed if other < hart)]
            return sum(self._lengths[other] for other in earlier) + position
        time = self._timed[hart].time(position)
        before = sum(timed.until(time - 1) for other, timed in self._timed.items() if other != hart)
        same = sum(timed.at(time) for other, timed in self._timed.items() if other < hart)
        return position + before + same

    def runs(self, begin: int = 0, end: int | None = None) -> Iterator[HistoryRun]:
        """Yield the positions with the indices *begin* to *end* - 1, in runs of one hart that are as long as possible;
        None: to the last.
        """
        current: HistoryRun | None = None
        for run in self._pieces(begin, len(self) if end is None else min(end, len(self))):
            if current is not None and current.hart == run.hart:
                current = current._replace(end=run.end)
                continue
            if current is not None:
                yield current
            current = run
        if current is not None:
            yield current

    def _pieces(self, begin: int, end: int) -> Iterator[HistoryRun]:
        time = self._time_of(begin)
        at = sum(timed.until(time - 1) for timed in self._timed.values())
        pieces = merge(*(timed.pieces(hart, time) for hart, timed in self._timed.items()))
        last = ((hart, 0, self._lengths[hart]) for hart in self.untimed)
        for hart, first, stop in chain((piece[1:] for piece in pieces), last):
            if at >= end:
                return
            upto = at + stop - first
            if begin <= at and upto <= end:
                yield HistoryRun(hart, first, stop)
            elif begin < upto:
                yield HistoryRun(hart, first + max(begin - at, 0), first + min(end - at, stop - first))
            at = upto

    def _time_of(self, index: int) -> int:
        """Return when the position with an index ran: the first time up to which more than *index* ran."""
        low = min((timed.times[0] for timed in self._timed.values()), default=0)
        high = max((timed.times[-1] for timed in self._timed.values()), default=0)
        while low < high:
            middle = (low + high) // 2
            if sum(timed.until(middle) for timed in self._timed.values()) > index:
                high = middle
            else:
                low = middle + 1
        return low


class _HistoryTimes:
    """A history whose times never fall."""

    def __init__(self, history: History) -> None:
        self.positions, self.times = history.times.arrays
        if not all(map(le, self.times, islice(self.times, 1, None))):
            self.times = array("Q", accumulate(self.times, max))
        self._length = len(history)

    @property
    def known_until(self) -> int:
        """The last time that stays if the history grows, 0 without any: that at the end may become another one."""
        last = len(self.times) - 1
        if self.positions[last] >= self._length:
            last -= 1
        return self.times[last] if last >= 0 else 0

    def time(self, position: int) -> int:
        """Return when a position ran. Positions before the first time get that one."""
        return self.times[max(bisect_right(self.positions, position) - 1, 0)]

    def until(self, time: int) -> int:
        """Return how many positions ran up to and including a time."""
        return self._begin(bisect_right(self.times, time)) if time >= 0 else 0

    def at(self, time: int) -> int:
        """Return how many positions have exactly this time."""
        return self.until(time) - self.until(time - 1)

    def pieces(self, hart: int, time: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (time, hart, first position, end position) for each time from *time* on."""
        positions, times = self.positions, self.times
        i = bisect_left(times, time)
        begin, now = self._begin(i), times[i] if i < len(times) else 0
        for k in range(i + 1, len(times)):
            if times[k] != now:
                if begin < positions[k]:
                    yield now, hart, begin, positions[k]
                    begin = positions[k]
                now = times[k]
        if begin < self._length:
            yield now, hart, begin, self._length

    def _begin(self, i: int) -> int:
        """Return the first position of the time with an index; all earlier positions come before that time."""
        if i == 0:
            return 0
        return self.positions[i] if i < len(self.positions) else self._length
