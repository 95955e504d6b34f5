"""What is told between the instructions of a listing, and the session's methods that tell it; worked out by hand."""

import json
from pathlib import Path as File
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import (
    Accounting,
    ContextChange,
    EventKind,
    Loss,
    LossCause,
    Start,
    StartReason,
    Stop,
    StopReason,
    Trap,
)
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.rows.list_rows import Annotation, Happened, Place
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.queries.lists.history_rows import AT_MOST, annotations
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from tests.helpers import reference_streams
from tests.helpers.event_facts import DISABLED, ENABLED, EXCEPTION, INTERRUPT, STARTS, STOPS, SYNCHRONIZED, lost, note
from tests.session.queries.lists.test_search import HANDLER, LEAF, MAIN, PROCESS, program

ONE = Path(((MAIN,),))


Told = tuple[str, str, Place | None]


def told(history: History, begin: int = 1, end: int | None = None, *, times: bool = True) -> dict[int, list[Told]]:
    rows = annotations(history, program(), begin, len(history) + 1 if end is None else end, times=times)
    return {row.number: [it[:3] for it in row.events] for row in rows if row.events}


def finished(builder: HistoryBuilder) -> History:
    return builder.finish(Accounting(0, 0, 0, 0))


def trap(text: str, hit: Place | None) -> Told:
    return "trap", text, hit


def test_a_trap_says_where_it_hit() -> None:
    """Behind the instruction that ran last, which need not be the one that trapped; in a process with its name."""
    builder = HistoryBuilder()
    builder.append(Path(((MAIN, MAIN + 4),)))
    builder.event(EventKind.TRAP, 5, Trap.with_cause(2, interrupt=False), last_pc=LEAF, next_pc=HANDLER)
    builder.append(Path(((HANDLER,),)))
    builder.context(ProgramContext(0, scontext=7))
    builder.append(Path(((PROCESS,),)))
    builder.event(EventKind.TRAP, 9, INTERRUPT, last_pc=PROCESS + 4, next_pc=HANDLER)
    builder.event(EventKind.TRAP, 9, EXCEPTION, next_pc=HANDLER)
    builder.context(ProgramContext(3, scontext=7))
    builder.append(Path(((HANDLER,),)))
    assert told(finished(builder)) == {
        3: [trap("exception 2 (illegal instruction)", (LEAF,))],
        4: [("context", "U-mode, scontext 7", None)],
        5: [trap("interrupt", (PROCESS + 4, "work", 4)), trap("exception", None), ("context", "M-mode", None)],
    }


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (ProgramContext(), ProgramContext(3), "M-mode"),
        (ProgramContext(3), ProgramContext(0), "U-mode"),
        (ProgramContext(1), ProgramContext(1, virtual=True), "VS-mode"),
        (ProgramContext(0, scontext=1), ProgramContext(0, scontext=2), "scontext 2"),
        (ProgramContext(0, scontext=1, hcontext=5), ProgramContext(3, scontext=1, hcontext=5), "M-mode"),
        (ProgramContext(0, scontext=1, hcontext=5), ProgramContext(1, True, 2, 6), "VS-mode, scontext 2, hcontext 6"),
        (ProgramContext(0, scontext=1), ProgramContext(0), "U-mode"),
        (ProgramContext(0), ProgramContext(), "unknown context"),
        (ProgramContext(3), ProgramContext(3), None),
    ],
)
def test_of_a_context_what_is_new(before: ProgramContext, now: ProgramContext, text: str | None) -> None:
    builder = HistoryBuilder()
    builder.context(before)
    builder.append(ONE)
    builder.context(now)
    builder.event(EventKind.CONTEXT, 0, ContextChange(before, now))
    builder.append(ONE)
    assert told(finished(builder)).get(2) == (None if text is None else [("context", text, None)])


def test_a_gap_is_not_said_twice_but_what_else_is_there() -> None:
    builder = HistoryBuilder()
    builder.append(ONE)
    builder.event(EventKind.TRAP, 3, INTERRUPT)
    builder.gap(EventKind.OVERFLOW, 16, Loss(LossCause.PACKETS_LOST))
    builder.gap(EventKind.LOSS, 20, lost("nonsense"))
    builder.event(EventKind.SYNC, 30, SYNCHRONIZED, next_pc=MAIN)
    builder.resume(MAIN, 30)
    builder.append(ONE)
    history = finished(builder)
    assert history.gap_at(1) and told(history) == {2: [trap("interrupt", None)]}


def test_a_loss_that_has_no_gap_is_said() -> None:
    """Nothing had run before it."""
    builder = HistoryBuilder()
    builder.gap(EventKind.LOSS, 0x1F, lost("7 bytes skipped"))
    builder.event(EventKind.SYNC, 0x26, Start(StartReason.PERIODIC), next_pc=MAIN)
    builder.append(ONE)
    assert told(finished(builder)) == {1: [("loss", "7 bytes skipped; trace byte 0x1f", None)]}


def switched(off: Stop, on: Start) -> History:
    builder = HistoryBuilder()
    builder.event(EventKind.TRACE_ON, 0, ENABLED, next_pc=MAIN)
    builder.append(ONE)
    builder.event(EventKind.TRACE_OFF, 4, off)
    builder.event(EventKind.TRACE_ON, 8, on, next_pc=MAIN)
    builder.resume(MAIN, 8)
    builder.append(ONE)
    builder.event(EventKind.TRACE_OFF, 12, DISABLED)
    return finished(builder)


def test_tracing_off_and_on_is_said_unless_the_debugger_did_it() -> None:
    """Each `stepi` would have such a line; and that a history begins and ends needs none."""
    assert told(switched(Stop(StopReason.DEBUG_MODE, 0), Start(StartReason.EXIT_FROM_DEBUG, 3))) == {}
    assert told(switched(STOPS, STARTS)) == {}
    off = ("trace-off", "trace disabled; trace byte 0x4", None)
    assert told(switched(DISABLED, ENABLED)) == {2: [off, ("trace-on", "trace enabled", None)]}


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (StartReason.EXTERNAL_TRIGGER, "external trigger"),
        (StartReason.TRACE_EVENT, "trace event"),
        (StartReason.NOTIFICATION, "trace event: notification by a trigger"),
    ],
)
def test_a_trigger_is_said_wherever_it_is(reason: StartReason, text: str) -> None:
    builder = HistoryBuilder()
    for _ in range(2):
        builder.event(EventKind.SYNC, 0, Start(reason), next_pc=MAIN)
        builder.append(ONE)
    trigger = [("sync", text, None)]
    assert told(finished(builder)) == {1: trigger, 2: trigger}


def test_times_with_the_ticks_since_the_one_before() -> None:
    """Also before the rows that are asked for; a clock that is set back is not hidden, one that stands still is."""
    builder = HistoryBuilder()
    for time in (100, 132, None, 140, 3, 3, 3):
        if time is not None:
            builder.time(time)
        builder.append(ONE)
    builder.event(EventKind.TRAP, 0, INTERRUPT)
    builder.time(3)
    history = finished(builder)
    expected = {1: (100, None), 2: (132, 32), 4: (140, 8), 5: (3, -137), 8: (3, 0)}
    rows = list(annotations(history, program(), 1, 8))
    assert {row.number: (row.time, row.ticks) for row in rows} == expected
    assert list(annotations(history, program(), 4, 5)) == [Annotation(4, [], 140, 8)]
    last = Annotation(8, [Happened("trap", "interrupt", None, True)], None, None)
    assert list(annotations(history, program(), 1, 8, times=False)) == [last]


def test_of_many_events_at_one_place_the_first_are_told() -> None:
    builder = HistoryBuilder()
    builder.append(ONE)
    for number in range(AT_MOST + 3):
        builder.event(EventKind.NOTE, number, note(f"note {number}"))
    [said] = told(finished(builder)).values()
    assert [text for _, text, _ in said[:-1]] == [f"note {number}" for number in range(AT_MOST)]
    assert said[-1] == ("note", "and 3 more: `trace events` has them", None)


ELF = reference_streams.FOLDER / "median.elf"
STREAM = (reference_streams.FOLDER / "median.1.nex").read_bytes()


@pytest.fixture
def methods(tmp_path: File) -> Methods:
    """Of a capture of two harts without timestamps."""
    data = reference_streams.in_turn(
        reference_streams.from_source(STREAM, 1, 0), reference_streams.from_source(STREAM[:400], 1, 1)
    )
    (tmp_path / "raw.bin").write_bytes(data)
    words = ["--elf", str(ELF), "-o", str(tmp_path / "x.rvt"), "--src-bits", "1"]
    assert main(["import", str(tmp_path / "raw.bin"), *words]) == 0
    session = Session(environ={})
    session.open(tmp_path / "x.rvt", None)
    return Methods(session)


def call(methods: Methods, method: str, **params: Any) -> Any:
    return json.loads(json.dumps(methods.call(method, params, silent)))


def test_nothing_is_told_of_what_was_not_asked_for() -> None:
    for what in ("history", "interleaved"):
        with pytest.raises(NoTrace):
            call(Methods(Session(environ={})), "rows", what=what, begin=1, end=2, hart=0)


def page_of(methods: Methods, what: str, args: str = "", **more: Any) -> Any:
    return call(methods, "page", what=what, args=args, **{"size": 10, "context": {}, **more})


def test_all_harts_by_requests(methods: Methods) -> None:
    """The rows are those of each hart; without times one hart comes after the other, which is said once."""
    found = page_of(methods, "interleaved", "1,1000000")
    lengths = [page_of(methods, "history", size=1, context={"hart": hart})["end"] - 1 for hart in (0, 1)]
    assert (found["begin"], found["end"], found["length"], found["hart"]) == (1, sum(lengths) + 1, sum(lengths), 0)
    assert [line for line in found["lines"] if "no timestamps" in line]
    assert not page_of(methods, "interleaved", "-")["lines"]
    first = lengths[0]
    pieces = call(methods, "rows", what="interleaved", begin=first - 2, end=first + 3, hart=0)["rows"]
    assert [(number, hart, len(rows), events) for number, hart, rows, events in pieces] == [
        (first - 2, 0, 3, []),
        (first + 1, 1, 2, []),
    ]
    for _, hart, rows, _ in pieces:
        asked = {"what": "history", "begin": rows[0][0], "end": rows[-1][0] + 1, "hart": hart}
        assert rows == call(methods, "rows", **asked)["rows"]


def test_a_page_in_the_past_is_around_the_place(methods: Methods) -> None:
    page = page_of(methods, "history", at=50, context={"thread_hart": 1})
    assert (page["begin"], page["end"], page["hart"]) == (50, 60, 1)
    last = page_of(methods, "history")["length"]
    page = page_of(methods, "interleaved", at=50, context={"thread_hart": 1})
    assert (page["begin"], page["end"]) == (last + 50, last + 60)
    page = page_of(methods, "interleaved", at=51, context={"thread_hart": 0})
    assert (page["begin"], page["end"]) == (51, 61)
