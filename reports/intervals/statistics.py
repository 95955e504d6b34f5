"""Statistics of lengths: count, minimum, mean, maximum, percentiles, and a histogram of few buckets.

The percentile P is the nearest rank: the least of the lengths that at least P % of them do not exceed. So it is always
one of the lengths, and the 100th is the maximum.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
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


def statistics(lengths: Iterable[int]) -> Statistics | None:
    """Return the statistics of lengths, None of none."""
    return statistics_of_counts(Counter(lengths))


def statistics_of_counts(counts: Mapping[int, int]) -> Statistics | None:
    """Return the statistics of lengths, of each of which there are so many; None of none."""
    ordered = sorted(counts)
    if not ordered:
        return None
    so_far = list(accumulate(counts[length] for length in ordered))
    ranks = ((percent, -(-so_far[-1] * percent // 100)) for percent in PERCENTILES)
    return Statistics(
        measured=so_far[-1],
        least=ordered[0],
        greatest=ordered[-1],
        total=sum(length * times for length, times in counts.items()),
        percentiles=[(percent, ordered[bisect_left(so_far, rank)]) for percent, rank in ranks],
        histogram=_histogram(ordered, so_far),
    )


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return a percentile, from 1 to 100, of lengths in rising order. Raises IndexError if there are none."""
    return ordered[-(-len(ordered) * percent // 100) - 1]


def histogram(ordered: Sequence[int]) -> list[HistogramBucket]:
    """Return the histogram of lengths in rising order: at most `BUCKETS`, whose width is 1, 2 or 5 times a power of
    ten, and which begin at multiples of it.
    """
    return _histogram(ordered, range(1, len(ordered) + 1))


def _histogram(ordered: Sequence[int], so_far: Sequence[int]) -> list[HistogramBucket]:
    """Return the histogram of lengths, of which there are *so_far* up to each."""
    width = _bucket_width(ordered[0], ordered[-1])
    begins = range(ordered[0] - ordered[0] % width, ordered[-1] + width + 1, width)
    indices = (bisect_left(ordered, begin) for begin in begins)
    places = [so_far[index - 1] if index else 0 for index in indices]
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
