"""Statistics of lengths: count, minimum, mean, maximum, percentiles, and a histogram of few buckets.

The percentile P is the nearest rank: the least of the lengths that at least P % of them do not exceed. So it is always
one of the lengths, and the 100th is the maximum.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

PERCENTILES = (50, 90, 95, 99)
"""Those that are always computed."""
BUCKETS = 20
"""The most buckets of a histogram."""
_STEPS = (1, 2, 5)


class HistogramBucket(NamedTuple):
    """How many lengths, *times*, are *first* to *last*, both included."""

    first: int
    last: int
    times: int


class Statistics(NamedTuple):
    """The statistics of lengths, of which there is one at least. *measured*: how many there are; *total*: their sum.

    percentiles  (P, length), see the module
    histogram    buckets of equal width, from the one with the least length to the one with the greatest
    """

    measured: int
    least: int
    greatest: int
    total: int
    percentiles: Sequence[tuple[int, int]]
    histogram: Sequence[HistogramBucket]

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return self.total / self.measured


def statistics(lengths: Sequence[int]) -> Statistics | None:
    """Return the statistics of lengths, None of none."""
    if not lengths:
        return None
    ordered = sorted(lengths)
    return Statistics(
        measured=len(ordered),
        least=ordered[0],
        greatest=ordered[-1],
        total=sum(ordered),
        percentiles=[(percent, percentile(ordered, percent)) for percent in PERCENTILES],
        histogram=histogram(ordered),
    )


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return a percentile, from 1 to 100, of lengths in rising order. Raises IndexError if there are none."""
    return ordered[-(-len(ordered) * percent // 100) - 1]


def histogram(ordered: Sequence[int]) -> list[HistogramBucket]:
    """Return the histogram of lengths in rising order: at most `BUCKETS`, whose width is 1, 2 or 5 times a power of
    ten, and which begin at multiples of it.
    """
    width = _bucket_width(ordered[0], ordered[-1])
    begins = range(ordered[0] - ordered[0] % width, ordered[-1] + width + 1, width)
    places = [bisect_left(ordered, begin) for begin in begins]
    found = [
        HistogramBucket(begin, begin + width - 1, after - before)
        for begin, (before, after) in zip(begins, pairwise(places), strict=False)
    ]
    while found and not found[-1].times:
        found.pop()
    return found


def _bucket_width(least: int, greatest: int) -> int:
    """Return the least width of which not more than `BUCKETS` buckets are needed."""
    scale = 1
    while True:
        for step in _STEPS:
            width = step * scale
            if greatest // width - least // width < BUCKETS:
                return width
        scale *= 10
