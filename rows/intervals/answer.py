"""The answer to the question for intervals: their lengths, the ways they took, and what makes some of them slow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.rows.list_rows import Place

INSTRUCTIONS, TICKS = "instructions", "ticks"
UNITS = (INSTRUCTIONS, TICKS)
"""What lengths are counted in: instructions, or ticks of the trace's timestamps."""

Bucket = tuple[int, int, int]
"""The least and the greatest length in a bucket of a histogram, and how many are."""


class LengthsRow(NamedTuple):
    """The statistics of lengths in a *unit*, of which *measured* are known.

    percentiles  (P, length): the least length that at least P % of them do not exceed
    histogram    consecutive buckets of equal width
    resolution   of ticks: by so many each may be wrong, because the times of its ends are those of the last timestamps
    """

    unit: str
    measured: int
    least: int
    mean: float
    greatest: int
    total: int
    percentiles: Sequence[tuple[int, int]]
    histogram: Sequence[Bucket]
    resolution: int = 0


class IntervalRow(NamedTuple):
    """An interval: the numbers of its first and its last instruction, *last* is before *first* if it has none. *ticks*:
    None: not known.
    """

    first: int
    last: int
    instructions: int
    ticks: int | None


class VariationRow(NamedTuple):
    """Intervals that took the same way: how many *times*, the *instructions* of each, and the *first* one's number.

    least_ticks, greatest_ticks  of those whose times are known, None: of none
    """

    times: int
    instructions: int
    first: int
    least_ticks: int | None
    greatest_ticks: int | None


class DistinctionRow(NamedTuple):
    """Something that came in slow intervals more often than in the others, or less.

    kind   "branch", "call" or "trap"; *here*: of the branch, or the function
    way    of a branch: "taken" or "not taken"; of a trap: what it was
    target where the branch led
    slow, others              the shares of the intervals in which it came
    slow_times, others_times  how often it came in one, on average
    """

    kind: str
    way: str
    here: Place | None
    target: Place | None
    slow: float
    others: float
    slow_times: float
    others_times: float


class DepthRow(NamedTuple):
    """Intervals inside of so many others of their kind, such as the calls of a recursion: their lengths."""

    depth: int
    times: int
    least: int
    mean: float
    greatest: int


class SlowRow(NamedTuple):
    """The slow intervals, those longer than *above*: how many, and how many *others* there are; so many of both were
    compared.
    """

    above: int
    slow: int
    others: int
    slow_compared: int
    others_compared: int


class IntervalsAnswer(NamedTuple):
    """The intervals in the history of *hart*. *lines*: are printed in any case.

    name      what they are: "calls of f", "from f to g", "interrupts"
    part      they begin at these numbers of `trace history`, first and last; None: at any
    measured  how many were measured; how many more are *cut* by a gap of the trace, *began* before it or in a gap, and
              are *open* where it ends
    open_first  the number of the first instruction of the oldest open one, None: of none; up to the end of the trace it
              has so many *open_instructions*, and *open_ticks* at least, None: not known
    again     how many began before an older one had ended, because the first place came again
    unit      in which the lengths of *worst*, *depths* and *slow* are compared
    lengths   in instructions, and in ticks if times are known
    worst     the longest, in order
    ways      how many different ways there are; *variations*: the most frequent
    slow      None if all have the same length; *distinctions*: of these from the others
    """

    hart: int
    lines: Sequence[str]
    name: str
    part: Sequence[int] | None
    measured: int
    cut: int
    began: int
    open: int
    open_first: int | None
    open_instructions: int
    open_ticks: int | None
    again: int
    unit: str
    lengths: Sequence[LengthsRow]
    worst: Sequence[IntervalRow]
    ways: int
    variations: Sequence[VariationRow]
    depths: Sequence[DepthRow]
    slow: SlowRow | None
    distinctions: Sequence[DistinctionRow]


def answer_of(fields: dict[str, object]) -> IntervalsAnswer:
    """Return the answer that crossed the pipe: its rows are lists then."""
    answer = IntervalsAnswer(**fields)  # type: ignore[arg-type]
    return answer._replace(
        lengths=[LengthsRow(*it) for it in answer.lengths],
        worst=[IntervalRow(*it) for it in answer.worst],
        variations=[VariationRow(*it) for it in answer.variations],
        depths=[DepthRow(*it) for it in answer.depths],
        slow=None if answer.slow is None else SlowRow(*answer.slow),
        distinctions=[DistinctionRow(*it) for it in answer.distinctions],
    )
