"""The axis on which calls are drawn: the times of the trace where it has them, else the numbers of instructions."""

from bisect import bisect_right
from operator import le

from rvtrace_gdb.decode.history.history import History

_ENDLESS = 1 << 63


class HistoryAxis:
    """Where a position is on the axis of a history. *timed*: it has the times of the trace; *goes_back*: the trace has
    times, but they do not always rise, so that instructions are counted.

    What lies between two known times ran at the earlier one, as everywhere in rvtrace; before the first one, at that.
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
            self._high = self._positions[number] if number < len(self._positions) else _ENDLESS
            self._now = self._times[max(number - 1, 0)]
        return self._now
