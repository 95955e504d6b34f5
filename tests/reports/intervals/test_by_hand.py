"""Intervals of small histories, by hand: each expectation is what a reader of the places would say."""

from array import array
from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause, Trap, TrapKind
from rvtrace_gdb.decode.history.history import Event, Times
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.search import ExecutionSearch, entries_of
from rvtrace_gdb.reports.intervals.between import Occurrences, Order, intervals_between
from rvtrace_gdb.reports.intervals.calls import Calls, calls_of
from rvtrace_gdb.reports.intervals.distinctions import BranchWay, TrapCame, distinctions
from rvtrace_gdb.reports.intervals.intervals import HistoryInterval, HistoryIntervals
from rvtrace_gdb.reports.intervals.paths import variations
from rvtrace_gdb.reports.intervals.statistics import histogram, percentile, statistics
from rvtrace_gdb.reports.intervals.times import durations
from rvtrace_gdb.reports.intervals.traps import trap_intervals
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of, in_small_blocks
from tests.decode.calls.test_call_history import CALL, HANDLED, NOP, PLAIN, RET, Code

small_blocks = pytest.fixture(in_small_blocks, autouse=True, scope="module")

DEEP = Code(main=[NOP, CALL, NOP], f=[asm.beq(12), NOP, CALL, RET])


def calls(code: Code, places: str, function: str, *events: Event) -> Calls:
    history = history_of(code.pcs(places), events)
    found = CallHistory(history, ContextImages(code.image))
    entries = ExecutionSearch(found, entries_of(code.starts[function], code.image)).positions()
    return calls_of(found, [code.starts[function]], entries)


def counts(found: HistoryIntervals) -> tuple[int, int, int]:
    return found.cut, found.began, found.open


def of(*intervals: tuple[int, int]) -> HistoryIntervals:
    found = HistoryIntervals()
    for begin, end in intervals:
        found.append(HistoryInterval(begin, end))
    return found


def test_a_recursion_is_measured_by_level() -> None:
    places = "main.1 f.0 f.1 f.2 f.0 f.1 f.2 f.0 f.3 f.3 f.3 main.2"
    found = calls(DEEP, places, "f").intervals
    assert list(found) == [(1, 11, 0), (4, 10, 1), (7, 9, 2)]
    assert counts(found) == (0, 0, 0)


def test_what_a_gap_and_the_ends_cut() -> None:
    """f began before the trace; one is whole; one ends in the gap, one began in it; the last has not ended."""
    places = "f.2 main.1 f.0 f.1 g.0 g.1 f.2 main.2 main.1 f.0 - f.2 main.1 f.0"
    found = calls(PLAIN, places, "f")
    assert list(found.intervals) == [(2, 7, 0)]
    assert counts(found.intervals) == (1, 2, 1) and found.intervals.oldest == 13
    assert list(found.returns) == [1, 7, 12]


def test_a_call_ends_where_what_it_jumped_to_returns() -> None:
    code = Code(main=[NOP, CALL, NOP], f=[NOP, asm.jal(4)], g=[NOP, RET])
    assert list(calls(code, "main.1 f.0 f.1 g.0 g.1 main.2", "f").intervals) == [(1, 5, 0)]
    assert list(calls(code, "main.1 f.0 f.1 g.0 g.1 main.2", "g").intervals) == [(3, 5, 0)]


def test_a_loss_without_a_place_makes_what_is_before_it_doubtful() -> None:
    lost = Event(8, EventKind.LOSS, 0, Loss(LossCause.MESSAGES_MISSING, (1, 2)))
    found = calls(PLAIN, "main.1 f.0 f.1 g.0 g.1 f.2 main.2 main.1 f.0 f.1 g.0 g.1 f.2 main.2", "f", lost)
    assert list(found.intervals) == [(8, 13, 0)]
    assert counts(found.intervals) == (1, 0, 0)


def traps(places: str, *events: Event) -> HistoryIntervals:
    history = history_of(HANDLED.pcs(places), events)
    return trap_intervals(CallHistory(history, ContextImages(HANDLED.image)), lambda trap: True)


def test_traps_within_traps_and_one_right_after_the_other() -> None:
    """The third one comes before the first instruction after the second has returned."""
    places = "main.0 handler.0 handler.0 handler.2 handler.2 handler.0 handler.2 main.1"
    hits = [(1, "main.1"), (2, "handler.2"), (5, "main.1")]
    found = traps(places, *(HANDLED.trap(at, epc, "handler.0") for at, epc in hits))
    assert list(found) == [(1, 5, 0), (2, 4, 1), (5, 7, 0)]


def test_traps_that_are_cut() -> None:
    places = "main.0 handler.0 - handler.2 main.1 handler.0"
    found = traps(places, HANDLED.trap(1, "main.1", "handler.0"), HANDLED.trap(5, "main.2", "handler.0"))
    assert list(found) == [] and counts(found) == (1, 0, 1)


def test_a_return_that_traps_itself_ends_nothing() -> None:
    fault = Trap(TrapKind.EXCEPTION, 2)
    mret, handler = HANDLED.at("handler.2"), HANDLED.at("handler.0")
    events = [HANDLED.trap(1, "main.1", "handler.0"), Event(3, EventKind.TRAP, 0, fault, mret, handler)]
    found = traps("main.0 handler.0 handler.2 handler.0 handler.2 handler.2 main.1", *events)
    assert list(found) == [(1, 6, 0), (3, 5, 1)]


def test_from_one_place_to_another() -> None:
    history = history_of(PLAIN.pcs("main.0 main.0 f.0 - main.0 f.0 main.0"))
    found = intervals_between(history, Occurrences([0, 1, 4, 6]), Occurrences([2, 5]))
    assert list(found.intervals) == [(0, 2, 0), (1, 2, 0), (4, 5, 0)] and found.overlapping == 1
    assert counts(found.intervals) == (0, 0, 1)
    across = intervals_between(history, Occurrences([2]), Occurrences([5]))
    assert list(across.intervals) == [] and counts(across.intervals) == (1, 0, 0)
    periods = intervals_between(history, Occurrences([0, 1, 2]), Occurrences([0, 1, 2]))
    assert list(periods.intervals) == [(0, 1, 0), (1, 2, 0)]


def test_a_trap_comes_before_the_instruction_of_its_position() -> None:
    history = history_of(PLAIN.pcs("main.0 f.0 f.1"))
    trap, entry = Occurrences([1], Order.TRAP), Occurrences([1])
    assert list(intervals_between(history, trap, entry).intervals) == [(1, 1, 0)]
    assert len(intervals_between(history, entry, trap).intervals) == 0


def test_statistics() -> None:
    found = statistics([5, 1, 3, 2, 4, 6, 7, 8, 9, 30])
    assert found is not None and found.mean == 7.5
    assert found[:4] == (10, 1, 30, 75)
    assert list(found.percentiles) == [(50, 5), (90, 9), (95, 30), (99, 30)]
    assert list(map(tuple, found.histogram)) == [(first, first + 1, 2 - (first == 0)) for first in range(0, 10, 2)] + [
        *((first, first + 1, 0) for first in range(10, 30, 2)), (30, 31, 1),
    ]  # fmt: skip
    assert statistics([]) is None
    assert percentile([4], 1) == percentile([4], 100) == 4
    assert len(histogram([0, 10**9])) <= 20 and histogram([7, 7]) == [(7, 7, 2)]


def test_times_are_wrong_by_the_resolution_at_most() -> None:
    history = history_of(PLAIN.pcs("main.0 " * 10))
    history.times = Times(array("Q", [1, 4, 8]), array("Q", [100, 130, 190]))
    found = durations(history, of((1, 4), (2, 4), (4, 6), (0, 4), (4, 9)))
    assert list(found.ticks) == [30, 30, 0, None, None]
    assert found.resolution == 60


def test_ways_do_not_depend_on_how_they_are_stored() -> None:
    history = history_of(PLAIN.pcs("f.0 f.1 g.0 f.0 f.1 g.0 f.0 f.1 h.0"))
    found = variations(history, of((0, 3), (3, 6), (6, 9), (0, 2)))
    assert [(one.length, list(one.numbers)) for one in found] == [(3, [0, 1]), (2, [3]), (3, [2])]


BRANCHED = Code(main=[NOP, CALL, NOP], f=[asm.beq(8), CALL, RET], log=[NOP, NOP, RET], handler=[asm.MRET])


def test_what_distinguishes_the_slow_ones() -> None:
    """One of the calls did not branch away from the call of log, one was interrupted."""
    fast, logs = "main.1 f.0 f.2 main.2 ", "main.1 f.0 f.1 log.0 log.1 log.2 f.2 main.2 "
    traced = fast * 9 + logs + "main.1 f.0 handler.0 f.2 main.2"
    at = len((fast * 9 + logs).split()) + 2
    history = history_of(BRANCHED.pcs(traced), [BRANCHED.trap(at, "f.2", "handler.0")])
    every = calls(BRANCHED, traced, "f", BRANCHED.trap(at, "f.2", "handler.0")).intervals
    lengths: Sequence[int] = every.lengths()
    assert sorted(lengths) == [2] * 9 + [3, 6]
    found = distinctions(history, ContextImages(BRANCHED.image), every, [1 + (it == 6) for it in lengths])
    assert found is not None and (found.slow, found.others, found.above) == (1, 10, 1)
    by_what = {one.what: (one.slow.share, one.others.share) for one in found.rows}
    assert by_what[BranchWay(BRANCHED.at("f.0"), False, BRANCHED.at("f.1"))] == (1, 0)
    interrupted = distinctions(history, ContextImages(BRANCHED.image), every, [1 + (it == 3) for it in lengths])
    assert interrupted is not None
    assert isinstance(interrupted.rows[0].what, TrapCame)
    assert distinctions(history, ContextImages(BRANCHED.image), every, [1] * len(every)) is None
