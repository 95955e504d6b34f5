"""`assert intervals ...`: limits of how long calls and traps take, and of what is between two places.

    assert intervals of on_tick max < 500 instructions
    assert intervals from interrupt to on_tick p99 <= 40 ticks
"""

import re
from typing import NamedTuple

from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.bench.intervals import Intervals, Lengths
from rvtrace_gdb.console.bench.trace_queries import CheckFailed
from rvtrace_gdb.console.scripts.language import SIGNS

COUNT, MAX = "count", "max"
FIGURES = (COUNT, "min", "mean", MAX, "p50", "p90", "p95", "p99")
"""What can be limited: their number, and the figures of their lengths; pN: the percentile."""
TICKS = "ticks"
_TEXT = re.compile(
    rf"intervals\s+(?:of\s+(?P<of>.+?)|from\s+(?P<first>.+?)\s+to\s+(?P<last>.+?))\s+(?P<figure>{'|'.join(FIGURES)})"
)
_ONLY_MORE = {(COUNT, ">"), (COUNT, ">="), (MAX, ">"), (MAX, ">="), ("min", "<"), ("min", "<=")}
"""What holds whatever more there was."""


class Judged(NamedTuple):
    """Whether a limit holds, the *measured* figure, and *why* not."""

    passed: bool
    measured: float
    why: str = ""


class IntervalFigure(NamedTuple):
    """A figure of the intervals of a function or a kind of trap, or from one of two *places* to the other."""

    places: tuple[str, ...]
    figure: str
    unit: str = "instructions"

    def measure(self, bench: Bench) -> float:
        """Return the figure. Raises CheckFailed."""
        return self._value(self._intervals(bench))

    def judge(self, bench: Bench, sign: str, limit: int) -> Judged:
        """Compare with a limit. Raises CheckFailed: there is nothing to compare.

        If something is missing, or a time is not exact, nothing passes that this could change.
        """
        found = self._intervals(bench)
        value = self._value(found)
        if not SIGNS[sign](value, limit):
            why = f"{self.figure} of {found.what} is {_text(value)}, not {sign} {limit}"
            return Judged(False, value, why + self._longest(found, sign))
        doubt = self._doubt(found, sign, limit)
        if not doubt and (self.figure, sign) not in _ONLY_MORE:
            doubt = _loss_doubt(found, bench)
        return Judged(not doubt, value, doubt)

    def _longest(self, measured: Intervals, sign: str) -> str:
        """Return where the longest is, for a figure that is too great, else ""."""
        if sign not in ("<", "<=") or self.figure in (COUNT, "min") or not measured.worst:
            return ""
        worst = measured.worst[0]
        length = worst.ticks if self.unit == TICKS else worst.instructions
        return f": the longest, {length} {self.unit}, is @{worst.first} to @{max(worst.last, worst.first)}"

    def _intervals(self, bench: Bench) -> Intervals:
        return bench.intervals(*self.places, ticks=self.unit == TICKS)

    def _lengths(self, measured: Intervals) -> Lengths | None:
        return measured.ticks if self.unit == TICKS else measured.instructions

    def _value(self, measured: Intervals) -> float:
        if self.figure == COUNT:
            return measured.measured
        lengths = self._lengths(measured)
        if lengths is None:
            why = f": {self._open_text(measured)}" if measured.open else ""
            raise CheckFailed(f"{measured.what}: none was measured in {self.unit}{why}")
        if self.figure == "mean":
            return lengths.mean
        known = {"min": lengths.least, MAX: lengths.greatest}
        return known[self.figure] if self.figure in known else lengths.percentiles[int(self.figure[1:])]

    def _open_length(self, measured: Intervals) -> int | None:
        """Return how long the oldest is that has not ended, None if that is not known."""
        return measured.open_ticks if self.unit == TICKS else measured.open_instructions

    def _open_text(self, measured: Intervals) -> str:
        length = self._open_length(measured)
        after = "" if length is None else f", after {length} {self.unit}"
        return f"one has not ended where the trace ends{after}, from @{measured.open_first} on"

    def _doubt(self, measured: Intervals, sign: str, limit: int) -> str:
        """Return why a figure that is within its limit may not be, "" if nothing speaks against it."""
        so_far = self._open_length(measured)
        is_upper = self.figure == MAX and sign in ("<", "<=")
        if is_upper and measured.open and so_far is not None and not SIGNS[sign](so_far, limit):
            return self._open_text(measured)
        lengths = self._lengths(measured)
        if self.figure == COUNT or lengths is None:
            return ""
        if lengths.measured < measured.measured:
            return f"cannot be told, {measured.measured - lengths.measured} have no known time"
        value, within = self._value(measured), lengths.resolution
        if not all(SIGNS[sign](value + error, limit) for error in (-within, 0, within)):
            return f"cannot be told, the {_text(value)} ticks may be wrong by {within}"
        return ""


def _loss_doubt(measured: Intervals, bench: Bench) -> str:
    """Return why there may be more intervals, "" if there are not."""
    if measured.cut:
        are = "is" if measured.cut == 1 else "are"
        return f"cannot be told, {measured.cut} of them {are} cut by a gap in the trace"
    lost = bench.losses()
    return f"cannot be told, the trace is not complete: {lost[0]}" if lost else ""


def _text(value: float) -> str:
    return f"{value:.1f}" if value != int(value) else f"{value:.0f}"


def figure_of(text: str) -> IntervalFigure | None:
    """Parse `intervals of PLACE FIGURE`, or `intervals from PLACE to PLACE FIGURE`; None for anything else."""
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        return None
    places = (found["of"],) if found["of"] else (found["first"], found["last"])
    return IntervalFigure(places, found["figure"])
