"""The histories of all harts in one list, by the timestamps in the trace: `trace history -all`.

The order is that of `decode.history.history.interleaved_runs`: each hart keeps its own order; rows between two
timestamps of a hart have the earlier one; of equal timestamps the hart with the lower number comes first; harts without
timestamps come last, one after the other. Nothing is merged in advance: a search finds how many rows of each hart come
before a timestamp, and a page is merged when it is shown.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import accumulate, chain, islice
from operator import le
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.queries.pages import Cursor, PageSelection, RangeError
from rvtrace_gdb.session.selected_history import HistoryNumber

_PLACE = re.compile(r"\b([0-9]{1,9}):([0-9]{1,18})\b")


class HartRange(NamedTuple):
    """Rows of one hart: *number* is the number of the first one in the list, *begin* and *end* are those in the hart's
    own history.
    """

    number: int
    hart: int
    begin: int
    end: int


class Interleaved:
    """All rows of *histories*, numbered from 1 on, and the place where the next page begins."""

    def __init__(self, histories: Mapping[int, History]) -> None:
        self.histories = histories
        there = [hart for hart in sorted(histories) if len(histories[hart])]
        self._timed = {hart: _Timed(histories[hart]) for hart in there if histories[hart].times}
        self._untimed = [hart for hart in there if hart not in self._timed]
        self._length = sum(len(histories[hart]) for hart in there)
        self._cursor = Cursor()
        self._told = len(there) < 2

    def __len__(self) -> int:
        return self._length

    def notes(self) -> list[str]:
        """Return the notes about the order, when they are asked for first."""
        if self._told:
            return []
        self._told = True
        if not self._timed:
            return ["note:     the trace has no timestamps: one hart after the other, which is not the order in time"]
        return [f"note:     hart {hart} has no timestamps and comes last" for hart in self._untimed]

    def select(self, args: str, size: int | None, at: HistoryNumber | None = None) -> PageSelection:
        """Return the rows that `trace history -all ARGS` shows; HART:NUMBER may replace a number of the list.

        *at*: where the selected hart is in the past, None in the present. Raises RangeError.
        """
        numbers = _PLACE.sub(lambda place: str(self._number_of(HistoryNumber(int(place[1]), int(place[2])))), args)
        return self._cursor.select(numbers, size, len(self), None if at is None else self.number(at))

    def number(self, place: HistoryNumber) -> int:
        """Return the number in the list of a hart's row. The number after a hart's last row follows that row's."""
        hart, number = place
        position = min(number, len(self.histories[hart])) - 1
        before = self._before(hart, position) if hart in self._timed else self._behind(hart)
        if hart not in self._timed:
            before += position
        return before + 1 + (number - 1 - position)

    def runs(self, begin: int, end: int) -> Iterator[HartRange]:
        """Yield the rows numbered *begin* to *end* - 1, in runs of one hart that are as long as possible."""
        current: HartRange | None = None
        for run in self._pieces(begin - 1, min(end - 1, len(self))):
            if current is not None and current.hart == run.hart:
                current = current._replace(end=run.end)
                continue
            if current is not None:
                yield current
            current = run
        if current is not None:
            yield current

    def _number_of(self, place: HistoryNumber) -> int:
        hart, number = place
        if hart not in self.histories:
            there = ", ".join(map(str, sorted(self.histories)))
            raise RangeError(f"hart {hart} is not in this trace, which has hart {there}")
        if not 1 <= number <= len(self.histories[hart]):
            raise RangeError(f"Range out of bounds: numbers of hart {hart} go from 1 to {len(self.histories[hart])}.")
        return self.number(place)

    def _before(self, hart: int, position: int) -> int:
        """Return how many rows come before a row of a hart with timestamps."""
        time = self._timed[hart].time(position)
        earlier = sum(timed.until(time - 1) for other, timed in self._timed.items() if other != hart)
        same = sum(timed.at(time) for other, timed in self._timed.items() if other < hart)
        return position + earlier + same

    def _behind(self, hart: int) -> int:
        """Return how many rows come before the first row of a hart without timestamps."""
        others = [*self._timed, *(other for other in self._untimed if other < hart)]
        return sum(len(self.histories[other]) for other in others)

    def _pieces(self, begin: int, end: int) -> Iterator[HartRange]:
        """Yield the rows at indices *begin* to *end* - 1, which count from 0."""
        time = self._time_of(begin)
        at = sum(timed.until(time - 1) for timed in self._timed.values())
        pieces = merge(*(timed.pieces(hart, time) for hart, timed in self._timed.items()))
        last = ((hart, 0, len(self.histories[hart])) for hart in self._untimed)
        for hart, first, stop in chain((piece[1:] for piece in pieces), last):
            if at >= end:
                return
            cut, upto = max(begin - at, 0), min(end - at, stop - first)
            if cut < upto:
                yield HartRange(at + cut + 1, hart, first + cut + 1, first + upto + 1)
            at += stop - first

    def _time_of(self, index: int) -> int:
        """Return when the row with an index ran: the first time up to which more rows than *index* ran."""
        low = min((timed.times[0] for timed in self._timed.values()), default=0)
        high = max((timed.times[-1] for timed in self._timed.values()), default=0)
        while low < high:
            middle = (low + high) // 2
            if sum(timed.until(middle) for timed in self._timed.values()) > index:
                high = middle
            else:
                low = middle + 1
        return low


class _Timed:
    """A history whose timestamps never decrease: one that is lower than its predecessor is replaced by that."""

    def __init__(self, history: History) -> None:
        self.positions, self.times = history.times.arrays
        if not all(map(le, self.times, islice(self.times, 1, None))):
            self.times = array("Q", accumulate(self.times, max))
        self._length = len(history)

    def time(self, position: int) -> int:
        """Return when a position ran. Positions before the first timestamp get that one."""
        return self.times[max(bisect_right(self.positions, position) - 1, 0)]

    def until(self, time: int) -> int:
        """Return how many positions ran up to and including a time."""
        return self._begin(bisect_right(self.times, time)) if time >= 0 else 0

    def at(self, time: int) -> int:
        """Return how many positions have exactly this time."""
        return self.until(time) - self.until(time - 1)

    def pieces(self, hart: int, time: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (time, hart, first position, end position) for each timestamp from *time* on."""
        i = bisect_left(self.times, time)
        while i < len(self.times):
            now = self.times[i]
            following = bisect_right(self.times, now, i)
            if self._begin(i) < self._begin(following):
                yield now, hart, self._begin(i), self._begin(following)
            i = following

    def _begin(self, i: int) -> int:
        """Return the first position of the timestamp with an index; all earlier positions come before that time."""
        if i == 0:
            return 0
        return self.positions[i] if i < len(self.positions) else self._length
