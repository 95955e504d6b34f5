"""Statistics of intervals, and their histograms as pictures."""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.support.text import printable

_WIDTH, _HEIGHT, _GAP = 640, 120, 2
_WIDEST = 64
"""So wide is a bar at most."""


class IntervalFigures(NamedTuple):
    """The lengths of intervals, such as the calls of a function, in a *unit*: "ticks" or "instructions".

    measured     how many lengths are known; *unmeasured*: how many more intervals have a gap, or no beginning or end
    percentiles  (P, length)
    histogram    (first, last, times): so many lengths are first to last
    """

    name: str
    unit: str
    measured: int
    unmeasured: int
    least: int
    mean: float
    greatest: int
    percentiles: Sequence[tuple[int, int]]
    histogram: Sequence[tuple[int, int, int]]


class HistogramBar(NamedTuple):
    """A bar of a picture, in its units: the left upper corner and the size. *label*: its bucket; *times*: how many are
    in it.
    """

    left: float
    top: float
    width: float
    height: float
    label: str
    times: int


class HistogramPicture(NamedTuple):
    """A histogram as a picture of *width* times *height*, with the figures."""

    figures: IntervalFigures
    name: str
    width: int
    height: int
    bars: list[HistogramBar]


def picture(figures: IntervalFigures) -> HistogramPicture:
    """Return the picture of a histogram. A bucket with anything in it has a bar that can be seen."""
    most = max((times for _, _, times in figures.histogram), default=1)
    step = min(_WIDTH / max(len(figures.histogram), 1), _WIDEST)
    bars = []
    for number, (first, last, times) in enumerate(figures.histogram):
        height = max(_HEIGHT * times / most, 2.0) if times else 0.0
        label = f"{first:,}" if first == last else f"{first:,} to {last:,}"
        corner = round(number * step, 2), round(_HEIGHT - height, 2)
        bars.append(HistogramBar(*corner, round(step - _GAP, 2), round(height, 2), label, times))
    return HistogramPicture(figures, printable(figures.name), _WIDTH, _HEIGHT, bars)
