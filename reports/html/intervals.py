"""The intervals of a page: how long each call of the functions took in which most instructions ran, and each trap."""

from array import array
from collections import Counter
from collections.abc import Iterator
from heapq import nlargest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.call_tree import CallNode, call_tree
from rvtrace_gdb.decode.calls.frame import UNKNOWN
from rvtrace_gdb.decode.history.events import Trap, TrapKind
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.search import ExecutionSearch, entries_of
from rvtrace_gdb.reports.html.histograms import IntervalFigures
from rvtrace_gdb.reports.html.timeline import INSTRUCTIONS, TICKS
from rvtrace_gdb.reports.intervals.calls import calls_of
from rvtrace_gdb.reports.intervals.intervals import HistoryIntervals
from rvtrace_gdb.reports.intervals.statistics import statistics
from rvtrace_gdb.reports.intervals.times import durations
from rvtrace_gdb.reports.intervals.traps import trap_intervals
from rvtrace_gdb.support.errors import Progress, silent

FUNCTIONS = 12
"""So many functions have their calls measured, of each hart."""
MOST = 1_000_000
"""Functions that were called more often are not measured: that takes long."""


def interval_figures(
    calls: CallHistory, hart: str = "", progress: Progress = silent, part: range | None = None
) -> Iterator[IntervalFigures]:
    """Yield the figures of the traps of a history, and of the calls of functions that were called several times, those
    with the most instructions first. *hart*: is put in front of their names; *part*: of those that begin there alone.

    Raises what *progress* raises.
    """
    for kind, name in ((TrapKind.INTERRUPT, "interrupts"), (TrapKind.EXCEPTION, "exceptions")):
        intervals = trap_intervals(calls, lambda trap, kind=kind: _is_of(trap, kind), progress, part)  # type: ignore[misc]
        yield from _figures(calls, intervals, hart + name)
    for function in largest_functions(call_tree(calls, progress, part)):
        image = next((it for it in calls.images if it.function(function) == function), None)
        symbol = None if image is None else image.symbol(function)
        if image is None or symbol is None:
            continue
        entries = _entry_positions(calls, function, image, progress)
        if 1 < len(entries) <= MOST:
            measured = calls_of(calls, [function], entries, progress, part).intervals
            yield from _figures(calls, measured, f"{hart}calls of {symbol[0]}")


def _is_of(trap: Trap, kind: TrapKind) -> bool:
    return trap.kind is kind


def _entry_positions(calls: CallHistory, function: int, image: Image, progress: Progress) -> "array[int]":
    search = ExecutionSearch(calls, entries_of(function, image), progress)
    return array("Q", search.positions(progress) if len(search) <= MOST else ())


def largest_functions(root: CallNode) -> list[int]:
    """Return the functions that were called several times, with the most instructions in them and what they called."""
    called, totals = Counter[int](), Counter[int]()
    waiting = list(root.children.values())
    while waiting:
        node = waiting.pop()
        called[node.function] += node.calls
        if not _is_inside_itself(node):
            totals[node.function] += node.total
        waiting += node.children.values()
    candidates = [it for it in totals if called[it] > 1 and it != UNKNOWN]
    return nlargest(FUNCTIONS, candidates, key=lambda it: (totals[it], -it))


def _is_inside_itself(node: CallNode) -> bool:
    above = node.parent
    while above is not None:
        if above.function == node.function and above.parent is not None:
            return True
        above = above.parent
    return False


def _figures(calls: CallHistory, intervals: HistoryIntervals, name: str) -> Iterator[IntervalFigures]:
    """Yield the figures of intervals, if any was measured: in ticks where these are known, else in instructions."""
    unmeasured, times = intervals.cut + intervals.began + intervals.open, durations(calls.history, intervals)
    lengths, unit = times.ticks_known, TICKS
    if not len(lengths):
        lengths, unit = intervals.lengths(), INSTRUCTIONS
    found = statistics(lengths)
    if found is not None:
        yield IntervalFigures(
            name, unit, found.measured, unmeasured + len(intervals) - len(lengths), found.least, found.mean,
            found.greatest, found.percentiles, [(it.first, it.last, it.times) for it in found.histogram],
        )  # fmt: skip
