"""How long intervals took, in ticks of the timestamps of a trace.

A history knows the time at some of its positions. Between two of them what ran is taken to run at the earlier one, as
everywhere in rvtrace; the time of an interval is that of its end less that of its beginning. It is wrong by the
*resolution* at most: the longest time from the last known time to the next one, around an end that has none itself.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.reports.intervals.intervals import HistoryIntervals


class IntervalTimes(NamedTuple):
    """The *ticks* of each interval, None where the time is not known at both ends. *resolution*: see the module, 0:
    all are exact.
    """

    ticks: Sequence[int | None]
    resolution: int

    @property
    def ticks_known(self) -> "array[int]":
        """Those that are known."""
        return array("Q", [one for one in self.ticks if one is not None])


class _Moment(NamedTuple):
    """A time, and by how much the right one may be later."""

    time: int
    doubt: int


def durations(history: History, intervals: HistoryIntervals) -> IntervalTimes:
    """Return how long each interval took."""
    moment, found, resolution = _Moments(history).at, list[int | None](), 0
    for begin, end in zip(intervals.begins, intervals.ends, strict=True):
        first, last = moment(begin), moment(end)
        if first is None or last is None or last.time < first.time:
            found.append(None)
        else:
            found.append(last.time - first.time)
            resolution = max(resolution, first.doubt, last.doubt)
    return IntervalTimes(found, resolution)


def ticks_since(history: History, position: int) -> int | None:
    """Return how many ticks went by at least from a position to the end of a history; None if that is not known."""
    began, (_, times) = _Moments(history).at(position), history.times.arrays
    return None if began is None else max(times[-1] - began.time - began.doubt, 0)


class _Moments:
    def __init__(self, history: History) -> None:
        self._positions, self._times = history.times.arrays

    def at(self, position: int) -> _Moment | None:
        """Return when the instruction at a position ran; None if there is no known time before it and after it."""
        index = bisect_right(self._positions, position) - 1
        if index < 0:
            return None
        time = self._times[index]
        if self._positions[index] == position:
            return _Moment(time, 0)
        if index + 1 == len(self._times) or self._times[index + 1] < time:
            return None  # how much later it is cannot be told
        return _Moment(time, self._times[index + 1] - time)
