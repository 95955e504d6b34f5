"""The axis of a timeline: the times of the trace where it has them, else the numbers of instructions; and what is too
short to be drawn on it.
"""

from bisect import bisect_right
from operator import le

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.exports.export import ExportedTrace

TICKS, INSTRUCTIONS = "1 ns is 1 tick of the trace's time", "1 ns is 1 instruction"
"""What a unit of the axis is, in files whose unit is the nanosecond."""
SLICES = 250_000
"""So many slices, some 20 MB, are a file that viewers like. Unless a resolution is given it gets coarser after them."""
_FINEST = 1 << 16
"""So many slices of the least length fill a track."""


class Axis:
    """Where a position is on the axis of a history. *timed*: it has the times of the trace.

    Times are used if all of them rise. What lies between two known times ran at the earlier one; before the first one,
    at the first.
    """

    def __init__(self, history: History) -> None:
        self._positions, self._times = history.times.arrays
        self.timed = bool(self._times) and all(map(le, self._times, self._times[1:]))
        self.goes_back = bool(self._times) and not self.timed
        self._low, self._high, self._now = 0, -1, 0

    def __call__(self, position: int) -> int:
        """Return the place of a position on the axis."""
        if not self.timed:
            return position
        if not self._low <= position < self._high:
            number = bisect_right(self._positions, position)
            self._low = self._positions[number - 1] if number else 0
            self._high = self._positions[number] if number < len(self._positions) else 1 << 63
            self._now = self._times[max(number - 1, 0)]
        return self._now


class Resolution:
    """The rule for what is too short to be drawn of a *part*: shorter than *least*. At the positions of *exact* nothing
    is. What reaches over the border of a part is not: it is looked at more closely.

    *grows*: after every `SLICES` slices *least* is doubled, so that a file has an end.
    """

    def __init__(self, axis: Axis, least: int, part: range, exact: range, *, grows: bool = False) -> None:
        self.least, self._axis, self._part, self._exact, self._grows = least, axis, part, exact, grows
        self._timed, self._drawn = axis.timed, 0

    def __call__(self, begin: int, end: int) -> bool:
        """Return whether what ran from one position up to another is too short to be drawn, all of it."""
        if (self._axis(end) - self._axis(begin) if self._timed else end - begin) >= self.least:
            return False
        part, exact = self._part, self._exact
        if begin < part.start < end or begin < part.stop < end:
            return False
        return not (begin < exact.stop and end > exact.start)

    def draw(self) -> None:
        """Count a slice that is drawn."""
        self._drawn += 1
        if self._grows and self._drawn % SLICES == 0:
            self.least = 2 * max(self.least, 1)


def resolution_of(trace: ExportedTrace, axis: Axis, calls: CallHistory) -> Resolution:
    """Return the resolution that was asked for, or one by the length of the part and the number of calls in it."""
    least, part = trace.resolution, trace.part
    if least is None:
        is_small = len(calls) * len(part) <= SLICES * len(trace.history)
        least = 0 if is_small else max((axis(part.stop) - axis(part.start)) // _FINEST, 1)
    return Resolution(axis, least, part, trace.exact, grows=trace.resolution is None and least > 0)
