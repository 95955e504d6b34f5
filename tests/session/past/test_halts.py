"""Which halts of a history are those at which a debugger wrote: histories and lists written by hand."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import (
    Accounting,
    EventKind,
    Loss,
    LossCause,
    Start,
    StartReason,
    Stop,
    StopReason,
)
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.session.capture.model import Captured, CapturedRecords, DebuggerWrites, not_shown
from rvtrace_gdb.session.past.choice import facts_of
from rvtrace_gdb.session.past.halts import begins_as_saved, halt_writes, hides_writes
from tests.session.captures import SMALL

LOST = "something is lost"
SINK = SMALL.sinks[0]
SMALL_RECORDS = CapturedRecords(0, CtrRegisterValues("ctr0", "1.0", 64, 16, 7, 0, 0), b"")
WRAPPED = replace(SINK, wrapped=True, missing=0, lost=())
RAN_ON = Start(StartReason.TRACE_ENABLED)


def ran(*runs: tuple[int, ...] | str | Start, before: Start | None = None, etrace: bool = False) -> History:
    """A history of stretches between halts. *before*: how it begins, if not with the exit from debug mode."""
    resumes = Start(StartReason.TRACING_STARTS if etrace else StartReason.EXIT_FROM_DEBUG)
    stops = Stop(StopReason.UNSPECIFIED if etrace else StopReason.DEBUG_MODE)
    builder, start = HistoryBuilder(), before or resumes
    for run in runs:
        if isinstance(run, Start):
            start = run
        elif isinstance(run, str):
            builder.gap(EventKind.LOSS, 0, Loss(LossCause.PACKETS_LOST))
        else:
            builder.event(EventKind.TRACE_ON, 0, start)
            if run:
                builder.append(Path((run,)))
            builder.event(EventKind.TRACE_OFF, 0, stops)
            start = resumes
    return builder.finish(Accounting(0, 0, 0, 0))


def at(pc: int | None, value: int | None = None, **more: Any) -> DebuggerWrites:
    """The halt that ended at *pc*; *value*: what a0 was set to."""
    return replace(DebuggerWrites(0, pc, {} if value is None else {0x100A: value}), **more)


def found(history: History, *written: DebuggerWrites, captured: Captured | None = None) -> dict[int, dict[int, int]]:
    return {it.position: dict(it.registers) for it in halt_writes(history, written, captured)}


A, B, C = (0x100, 0x102), (0x200, 0x202, 0x204), (0x300,)


@pytest.mark.parametrize("captured", [None, WRAPPED])
def test_the_newest_halts_of_a_trace_whose_beginning_is_lost(captured: Captured | None) -> None:
    history = ran(A, B, C, before=Start(StartReason.PERIODIC)) if captured else ran(A, LOST, B, C)
    first = 2 if captured else 3
    written = [at(0x100), at(0x100, 1), at(0x200, 2), at(0x300, 3)]
    expected = {first: {0x100A: 2}, first + 3: {0x100A: 3}}
    assert found(history, *written, captured=captured) == expected


def test_the_newest_halts_are_certain_only_if_no_other_can_be_meant() -> None:
    history = ran(A, B, B, before=Start(StartReason.PERIODIC))
    assert found(history, at(0x100), at(0x200, 5), at(0x200), captured=WRAPPED) == {}
    assert found(history, at(0x100), at(0x200), at(0x200), captured=WRAPPED) == {2: {}, 5: {}}


def test_a_full_buffer_ends_the_trace_before_the_list() -> None:
    full = replace(
        SINK, wrapped=False, missing=0, lost=(), data=bytes(SINK.in_force.size),
        in_force=replace(SINK.in_force, control=SINK.in_force.control | 1 << 8),
    )  # fmt: skip
    assert full.in_force.stop_on_wrap
    written = [at(0x100), at(0x200, 1), at(0x100), at(0x200, 2)]
    assert found(ran(A, B), *written, captured=full) == {0: {}, 2: {0x100A: 1}}


def test_halts_that_nobody_counted() -> None:
    history = ran(A, B, C, A)
    assert found(history, at(0x100), at(0x200, 2), at(None, halts=0), at(0x300, 3), at(0x100)) == {0: {}, 6: {}}


def test_many_steps_are_one_entry() -> None:
    steps = [(0x200 + 2 * n,) for n in range(50)]
    history = ran(A, *steps, C)
    written = [at(0x100), at(0x200, 5), at(0x262, halts=49), at(0x300, 6)]
    assert found(history, *written) == {0: {}, 2: {0x100A: 5}, **{n: {} for n in range(3, 52)}, 52: {0x100A: 6}}
    assert found(ran(A, *steps[:-1], C), *written) == {0: {}, 51: {0x100A: 6}}, "one step less than counted"


def test_what_hides_halts() -> None:
    """Behind a stretch that the encoder leaves out the list cannot be followed from its beginning."""
    history = ran(A, RAN_ON, B, C)
    assert found(history, at(0x100), at(0x300, 5)) == {0: {}, 5: {0x100A: 5}}
    assert found(history, at(0x100), at(0x200), at(0x300, 5)) == {0: {}, 5: {0x100A: 5}}


def test_what_was_saved_at_the_beginning_may_have_been_changed() -> None:
    for written, holds in (([], True), ([at(0x100, 5)], True), ([at(0x100, unknown=True)], False), ([at(0x80)], False)):
        assert begins_as_saved(halt_writes(ran(A), written), written) is holds


def test_a_trace_without_halts_hides_what_was_written() -> None:
    """As of QEMU: the program goes on as if nothing had been; what was written before it began is not a matter."""
    history = ran((*A, *B), before=RAN_ON)
    assert not hides_writes(history, [at(0x100, 5), at(0x200)])
    assert hides_writes(history, [at(0x100), at(0x200, 5)])
    assert hides_writes(history, [at(0x100), at(None, unknown=True)])
    assert not hides_writes(ran(A, B), [at(0x100), at(0x200, 5)])
    assert not hides_writes(ran(A, B), [at(0x100), at(None, unknown=True)])


def test_a_loop_without_halts() -> None:
    """Where nothing else shows it, the source of the trace has said so."""
    history, wrote, only_looked = ran(A, B), (at(0x100), at(0x200, 5)), (at(0x100, 5), at(0x200))
    assert hides_writes(history, not_shown(wrote), WRAPPED) and not hides_writes(history, wrote, WRAPPED)
    assert not_shown(only_looked) == only_looked and not hides_writes(history, only_looked)
    assert hides_writes(history, not_shown((), [0])) and not_shown(only_looked, [0])[:2] == only_looked
    assert hides_writes(ran(A), wrote, SMALL_RECORDS) and not hides_writes(ran(A), only_looked, SMALL_RECORDS)


def test_nothing_is_reconstructed_of_such_a_trace() -> None:
    class Source:
        def __init__(self, *written: DebuggerWrites) -> None:
            self.capture = lambda: replace(SMALL, written=written)
            self.captured_of = self.live_stop = lambda *_: None

    selected: Any = SimpleNamespace(history=ran((*A, *B), before=RAN_ON), hart=0)
    hidden: Any = Source(at(0x100), at(0x200, 5))
    assert facts_of(hidden, selected) is None
