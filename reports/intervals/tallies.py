"""How long the calls of the functions with the most instructions took, and the traps by cause, as tallies that add up.

A tally has how often each length came. So the figures of several harts or captures together are those that one history
of all of them would have, in whatever order they are added.
"""

from array import array
from collections import Counter
from collections.abc import Iterator
from heapq import merge, nsmallest
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.search import ExecutionSearch, entries_of
from rvtrace_gdb.reports.intervals.calls import calls_of_each
from rvtrace_gdb.reports.intervals.intervals import HistoryIntervals
from rvtrace_gdb.reports.intervals.times import durations
from rvtrace_gdb.reports.intervals.traps import trap_intervals_by_kind
from rvtrace_gdb.reports.profile import hottest
from rvtrace_gdb.reports.profile.model import NOWHERE, IntervalTally, MeasuredKind, Profile, TrapCause
from rvtrace_gdb.reports.profile.places import CodePlaces
from rvtrace_gdb.support.errors import Progress

FUNCTIONS = 16
"""So many functions have their calls measured, of each hart: those with the most instructions."""
MOST = 1_000_000
"""Functions that were called more often are not measured: that takes long."""


class _Measured(NamedTuple):
    """A function that is measured, and where it was entered."""

    kind: MeasuredKind
    start: int
    entries: "array[int]"


def add_intervals(
    profile: Profile, places: CodePlaces, calls: CallHistory, positions: range, progress: Progress
) -> None:
    """Put the tallies of a history into its *profile*, of the intervals that begin at some *positions*. Of functions
    that are not measured, the number of calls is. Raises what *progress* raises.
    """
    part = None if len(positions) == len(calls.history) else positions
    for kind, intervals in trap_intervals_by_kind(
        calls, lambda trap: MeasuredKind(NOWHERE, TrapCause(trap.kind.value, trap.cause)), progress, part
    ).items():
        _add_tally(profile, kind, _tally(calls, intervals))
    chosen = list(_chosen(profile, places, calls, progress))
    for it in hottest.hot_functions(profile):
        kind = MeasuredKind(it.function)
        if it.calls and it.function != NOWHERE and all(one.kind != kind for one in chosen):
            _add_tally(profile, kind, IntervalTally(unmeasured=it.calls))
    entries = array("Q", merge(*(it.entries for it in chosen)))
    found = calls_of_each(calls, [[it.start] for it in chosen], entries, progress, part) if chosen else ()
    for one, measured in zip(chosen, found, strict=True):
        _add_tally(profile, one.kind, _tally(calls, measured.intervals))


def _chosen(profile: Profile, places: CodePlaces, calls: CallHistory, progress: Progress) -> Iterator[_Measured]:
    """Yield the functions that are measured."""
    rows = [it for it in hottest.hot_functions(profile) if it.calls > 1 and it.function in places.functions]
    for row in nsmallest(FUNCTIONS, rows, key=lambda it: (-it.total, it.function)):
        image, start = places.functions[row.function]
        search = ExecutionSearch(calls, entries_of(start, image), progress)
        if len(search) <= MOST:
            yield _Measured(MeasuredKind(row.function), start, search.positions(progress))


def _tally(calls: CallHistory, intervals: HistoryIntervals) -> IntervalTally:
    times = durations(calls.history, intervals)
    return IntervalTally(
        Counter(intervals.lengths()),
        Counter(times.ticks_known),
        times.resolution if len(times.ticks_known) else 0,
        intervals.cut + intervals.began + intervals.open,
    )


def _add_tally(profile: Profile, kind: MeasuredKind, tally: IntervalTally) -> None:
    before = profile.intervals.get(kind)
    profile.intervals[kind] = tally if before is None else before.plus(tally)
