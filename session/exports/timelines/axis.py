"""The units of the axis of a timeline in a file, and what is too short to be drawn on it."""

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.slices.axis import HistoryAxis
from rvtrace_gdb.session.exports.export import ExportedTrace

TICKS, INSTRUCTIONS = "1 ns is 1 tick of the trace's time", "1 ns is 1 instruction"
"""What a unit of the axis is, in files whose unit is the nanosecond."""
SLICES = 250_000
"""So many slices, some 20 MB, are a file that viewers like. Unless a resolution is given it gets coarser after them."""
_FINEST = 1 << 16
"""So many slices of the least length fill a track."""


class Resolution:
    """The rule for what is too short to be drawn of a *part*: shorter than *least*. At the positions of *exact* nothing
    is. What reaches over the border of a part is not: it is looked at more closely.

    *grows*: after every `SLICES` slices *least* is doubled, so that a file has an end.
    """

    def __init__(self, axis: HistoryAxis, least: int, part: range, exact: range, *, grows: bool = False) -> None:
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


def resolution_of(trace: ExportedTrace, axis: HistoryAxis, calls: CallHistory) -> Resolution:
    """Return the resolution that was asked for, or one by the length of the part and the number of calls in it."""
    least, part = trace.resolution, trace.part
    if least is None:
        is_small = len(calls) * len(part) <= SLICES * len(trace.history)
        least = 0 if is_small else max((axis(part.stop) - axis(part.start)) // _FINEST, 1)
    return Resolution(axis, least, part, trace.exact, grows=trace.resolution is None and least > 0)
