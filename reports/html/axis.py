"""The axis of the timeline in a page: the times of the trace where it has them, else the numbers of instructions."""

from bisect import bisect_right
from operator import le

from rvtrace_gdb.decode.history.history import History

TICKS, INSTRUCTIONS = "ticks", "instructions"
_ENDLESS = 1 << 63


class PageAxis:
    """Where a position of a history is on the axis. *unit*: of the axis; *goes_back*: the trace has times, but they do
    not always rise, so that instructions are counted.

    What lies between two known times ran at the earlier one, as everywhere in rvtrace; before the first one, at that.
    """

    def __init__(self, history: History) -> None:
        self._positions, self._times = history.times.arrays
        rises = all(map(le, self._times, self._times[1:]))
        self._timed = bool(self._times) and rises
        self.goes_back = bool(self._times) and not rises
        self.unit = TICKS if self._timed else INSTRUCTIONS
        self._low, self._high, self._now = 0, -1, 0

    def __call__(self, position: int) -> int:
        """Return the place of a position on the axis."""
        if not self._timed:
            return position
        if not self._low <= position < self._high:
            number = bisect_right(self._positions, position)
            self._low = self._positions[number - 1] if number else 0
            self._high = self._positions[number] if number < len(self._positions) else _ENDLESS
            self._now = self._times[max(number - 1, 0)]
        return self._now
