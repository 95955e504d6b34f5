"""What distinguishes the slow intervals from the others: the branches, calls and traps that came there more, or less.

The slow ones are those that are longer than the 90th percentile; the longest ones, if none is. Of both groups some are
counted, evenly spread, with what ran in each (`decode/coverage.py`): how often each branch went each way, each function
was entered, each trap came. What differs is weighed by how much its mean differs, and by the share of the intervals in
which it came. Of a branch this counts only where both groups came to it: else what led there is the difference.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.history.events import Trap
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.intervals.intervals import HistoryInterval, HistoryIntervals
from rvtrace_gdb.reports.intervals.statistics import percentile
from rvtrace_gdb.support.errors import Progress, silent

SLOW_ABOVE = 90
"""The percentile above which intervals are slow."""
MOST = 8
"""The most distinctions that are returned."""
_LEAST_WEIGHT = 0.2
_COUNTED = 256  # intervals of a group
_INSTRUCTIONS = 1 << 25  # in the intervals of a group that are counted
_ALWAYS = 4  # intervals of a group that are counted, however long they are


class BranchWay(NamedTuple):
    """A conditional branch at *pc* was *taken*, or was not; then the program ran on at *to*."""

    pc: int
    taken: bool
    to: int


class FunctionEntered(NamedTuple):
    """The function at an address was entered."""

    function: int


class TrapCame(NamedTuple):
    """A trap was taken; what xtval holds is not looked at."""

    trap: Trap


What = BranchWay | FunctionEntered | TrapCame
_KINDS: tuple[type, ...] = (TrapCame, FunctionEntered, BranchWay)  # of several that weigh the same, this comes first


class Frequency(NamedTuple):
    """The share of the intervals of a group in which something came, and its mean number in each of the group."""

    share: float
    mean: float


class Distinction(NamedTuple):
    """Something that came more often in one of the groups. *position*: in the history, of an interval in which it
    came.
    """

    what: What
    slow: Frequency
    others: Frequency
    position: int


class Distinctions(NamedTuple):
    """What distinguishes *slow* intervals, so many, from so many *others*; of these so many were counted. *above*: the
    length above which they are slow, or the greatest if none is above it.
    """

    rows: Sequence[Distinction]
    slow: int
    others: int
    slow_counted: int
    others_counted: int
    above: int


def distinctions(
    history: History,
    program: ContextImages,
    intervals: HistoryIntervals,
    lengths: Sequence[int],
    progress: Progress = silent,
) -> Distinctions | None:
    """Return what distinguishes slow intervals from the others; None if all have the same length. *lengths*: of each
    interval, in instructions or in ticks. Raises what *progress* raises.
    """
    ordered = sorted(lengths)
    if not ordered or ordered[0] == ordered[-1]:
        return None
    above = percentile(ordered, SLOW_ABOVE)
    if above == ordered[-1]:
        above = next(length for length in reversed(ordered) if length < ordered[-1])
    groups: tuple[list[HistoryInterval], list[HistoryInterval]] = [], []
    for interval, length in zip(intervals, lengths, strict=True):
        groups[length <= above].append(interval)
    counter = _IntervalCounter(history, program)
    chosen = [_chosen(group) for group in groups]
    total = sum(map(len, chosen))
    counted: list[list[_CountedInterval]] = [[], []]
    for number, group in enumerate(chosen):
        for interval in group:
            progress("comparing slow and fast (parts)", len(counted[0]) + len(counted[1]), total)
            counted[number].append(_CountedInterval(interval.begin, counter.count_interval(interval)))
    (slow, others), (slow_counted, others_counted) = map(len, groups), map(len, chosen)
    return Distinctions(_weighed(*counted), slow, others, slow_counted, others_counted, above)


class _CountedInterval(NamedTuple):
    """What came, and how often, in the interval that begins at *position*."""

    position: int
    counts: Counter[What]


def _chosen(group: Sequence[HistoryInterval]) -> list[HistoryInterval]:
    """Return some intervals of a group, evenly spread, that do not have too many instructions together."""
    most = min(len(group), _COUNTED)
    mean = sum(one.end - one.begin for one in group) // len(group) + 1
    most = max(min(most, _INSTRUCTIONS // mean), min(_ALWAYS, len(group)))
    return [group[number * len(group) // most] for number in range(most)]


class _IntervalCounter:
    """Counts what came in intervals of a history."""

    def __init__(self, history: History, program: ContextImages) -> None:
        self._history, self._program = history, program
        self._functions: dict[int, tuple[Image, dict[int, int]]] = {}  # by the id of the image

    def count_interval(self, interval: HistoryInterval) -> Counter[What]:
        """Return how often what came in an interval."""
        history = self._history
        image = self._program.image_of(history.context_at(interval.begin))
        found: Counter[What] = Counter()
        facts = (event.fact for event in history.events_between(interval.begin + 1, interval.end))
        found.update(TrapCame(fact._replace(value=None, from_hart=False)) for fact in facts if isinstance(fact, Trap))
        if interval.begin == interval.end:
            return found
        counted = coverage.counts(history, [range(interval.begin, interval.end)])
        for way, times in _ways(counted, image):
            if times:
                found[way] += times
        ends = self._ends(image)
        entered = {start: ends[start] for start in counted.ran if start in ends}
        for start, times in coverage.function_entries(counted, image, entered).items():
            if times:
                found[FunctionEntered(start)] += times
        return found

    def _ends(self, image: Image) -> dict[int, int]:
        if id(image) not in self._functions:
            ends = {function.start: function.end for function in coverage.functions(image)}
            self._functions[id(image)] = image, ends
        return self._functions[id(image)][1]


def _ways(counted: coverage.ExecutionCounts, image: Image) -> Iterator[tuple[BranchWay, int]]:
    for pc in counted.ran:
        outcomes = coverage.branch_outcomes(counted, image, pc)
        if outcomes is not None:
            yield BranchWay(pc, True, outcomes.target), outcomes.taken
            yield BranchWay(pc, False, outcomes.follows), outcomes.not_taken


def _weighed(slow: Sequence[_CountedInterval], others: Sequence[_CountedInterval]) -> list[Distinction]:
    """Return what differs most between two groups, neither of which is empty."""
    came = dict.fromkeys(what for one in (*slow, *others) for what in one.counts)
    arrivals = _branches_of_both(slow, others)
    found = [
        Distinction(what, _frequency(slow, what), _frequency(others, what), _first(slow, others, what))
        for what in came
        if not isinstance(what, BranchWay) or what.pc in arrivals
    ]
    found = [one for one in found if _weight(one) >= _LEAST_WEIGHT]
    return list(_once_per_branch(sorted(found, key=_in_order)))[:MOST]


def _in_order(one: Distinction) -> tuple[float, int, bool, float, int]:
    """Return what comes first by. Of both ways of a branch this is the one that the slow intervals took."""
    kind, is_of_slow = _KINDS.index(type(one.what)), one.slow.mean > one.others.mean
    return -round(_weight(one), 2), kind, not is_of_slow, -_difference(one), one.position


def _branches_of_both(slow: Iterable[_CountedInterval], others: Iterable[_CountedInterval]) -> set[int]:
    """Return the addresses of the branches that both groups came to."""
    both = (
        {what.pc for one in group for what, times in one.counts.items() if isinstance(what, BranchWay) and times}
        for group in (slow, others)
    )
    return set.intersection(*both)


def _once_per_branch(ordered: Iterable[Distinction]) -> Iterator[Distinction]:
    """Yield each distinction, but of both ways of a branch the first alone."""
    seen: set[int] = set()
    for one in ordered:
        if isinstance(one.what, BranchWay):
            if one.what.pc in seen:
                continue
            seen.add(one.what.pc)
        yield one


def _frequency(group: Sequence[_CountedInterval], what: What) -> Frequency:
    times = [one.counts[what] for one in group]
    return Frequency(sum(map(bool, times)) / len(group), sum(times) / len(group))


def _first(slow: Sequence[_CountedInterval], others: Sequence[_CountedInterval], what: What) -> int:
    return next(one.position for one in (*slow, *others) if one.counts[what])


def _weight(one: Distinction) -> float:
    """Return how much something distinguishes, 0 to 1: the relative difference of the means, by the greater share."""
    greater = max(one.slow.mean, one.others.mean)
    return max(one.slow.share, one.others.share) * _difference(one) / greater if greater else 0.0


def _difference(one: Distinction) -> float:
    return abs(one.slow.mean - one.others.mean)
