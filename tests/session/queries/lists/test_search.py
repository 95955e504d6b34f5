"""Pages of events, gaps and executions: which are shown, how they are numbered, what is said when there are none."""

from dataclasses import replace
from typing import Any

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, ContextChange, EventKind, Loss, LossCause, Trap
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.elf import Elf, ElfSection, Symbol
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows.list_rows import FoundRow, Place
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery
from rvtrace_gdb.session.queries.lists.pages import PageSelection, RangeError
from rvtrace_gdb.session.queries.lists.search import BadQuery, EventQuery, GapQuery, ListQuery, PagedResults
from rvtrace_gdb.session.rpc.protocol import BadRequest
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from tests.decode.tandem.groups import NOP, csr, group, pc, tandem, x
from tests.helpers.event_facts import STARTS, STOPS, lost

MAIN, LEAF, HANDLER, PROCESS = 0x8000_0000, 0x8000_0010, 0x8000_0020, 0x1_0000


def program() -> ContextImages:
    """main, leaf and on_trap in a row, 16 bytes each; and a process, scontext 7, with `work` at 0x10000."""
    names = [Symbol(MAIN, "main", 16, True), Symbol(LEAF, "leaf", 16, True), Symbol(HANDLER, "on_trap", 16, True)]
    image = _named("kernel.elf", MAIN, names)
    image.path = "kernel.elf"
    program = ContextImages(image)
    program.attach(_named("process.elf", PROCESS, [Symbol(PROCESS, "work", 16, True)]), scontext=7)
    return program


def _named(path: str, start: int, names: list[Symbol]) -> Image:
    image = Image(64)
    image.add_elf(replace(Elf(path, "", 64), sections=[ElfSection(start, start + 0x100, names)]))
    return image


def history() -> History:
    """Positions 1 2 3 main, main, leaf; 4 5 on_trap; 6 a gap of two causes; 7 8 leaf, main; 9 of the process."""
    builder = HistoryBuilder()
    builder.event(EventKind.TRACE_ON, 0, STARTS, next_pc=MAIN)
    builder.resume(MAIN, 0)
    builder.append(Path([(MAIN, MAIN + 4, LEAF)]))
    builder.time(100)
    builder.event(EventKind.TRAP, 8, Trap.with_cause(7, interrupt=True), last_pc=LEAF + 4, next_pc=HANDLER)
    builder.append(Path([(HANDLER, HANDLER + 4)]))
    builder.gap(EventKind.OVERFLOW, 16, Loss(LossCause.PACKETS_LOST))
    builder.gap(EventKind.LOSS, 20, lost("nonsense"))
    builder.resume(LEAF, 22)
    builder.append(Path([(LEAF, MAIN + 8)]))
    builder.context(ProgramContext(0, scontext=7))
    builder.event(
        EventKind.CONTEXT, 24, ContextChange(ProgramContext(), ProgramContext(0, scontext=7)), next_pc=PROCESS
    )
    builder.append(Path([(PROCESS,)]))
    builder.event(EventKind.TRACE_OFF, 30, STOPS)
    return builder.finish(Accounting(32, 32, 0, 0))


def rows(question: ListQuery, of: History | None = None) -> list[FoundRow]:
    found = PagedResults(history() if of is None else of, program(), question)
    return [row._replace(facts=None) for row in found.rows(1, 1000)]


def found(
    number: int, position: int, here: Place | str, kind: str, text: str, source: Place | str | None,
    target: Place | None, time: int | None, offset: int | None,
) -> FoundRow:  # fmt: skip
    """A row with these columns; the others have no value."""
    others: dict[str, Any] = dict.fromkeys(FoundRow._fields)
    columns = {"number": number, "position": position, "here": here, "kind": kind, "text": text, "source": source}
    return FoundRow(**{**others, **columns, "target": target, "time": time, "offset": offset})


TRAP = found(
    2, 4, (HANDLER,), "trap", "interrupt 7 (machine timer interrupt)", (LEAF + 4,), None, 100, 8
)  # fmt: skip


def test_a_trap_whose_cause_a_tandem_trace_does_not_tell_is_both() -> None:
    """A pc and no instruction; mcause, which says how far it was, is told with the second one."""
    told = group(pc(0x200), csr(0x341, 0x204), csr(0x342, 2), csr(0x300, 0), csr(0x343, 0))
    groups = [group(pc(0x104), NOP, x(5, 1)), group(pc(0x200)), group(pc(0x204), NOP), told]
    of = tandem(groups).history
    kinds = ("trap", "exception", "interrupt")
    found = {kind: [row.position for row in rows(EventQuery((kind,)), of)] for kind in kinds}
    assert found == {"trap": [2, 3], "exception": [2, 3], "interrupt": [2]}


@pytest.mark.parametrize(
    ("places", "positions"),
    [
        ([ExecutionQuery("leaf", LEAF), ExecutionQuery("on_trap", HANDLER, function=True)], [3, 4, 7]),
        ([ExecutionQuery("leaf", LEAF), ExecutionQuery("*leaf", LEAF), ExecutionQuery("main", MAIN)], [1, 3, 7]),
        ([ExecutionQuery("main", MAIN, MAIN + 15), ExecutionQuery("work", PROCESS)], [1, 8, 9]),
        ([ExecutionQuery("main", MAIN, MAIN + 15), ExecutionQuery("leaf", LEAF, LEAF + 15)], [1, 3, 7, 8]),
        ([ExecutionQuery("nowhere", 0x10), ExecutionQuery("on_trap", HANDLER)], [4]),
    ],
)  # fmt: skip
def test_several_places_in_one_list(places: list[ExecutionQuery], positions: list[int]) -> None:
    asked = places[0]._replace(also=tuple(places[1:]))
    found = rows(asked)
    assert [(row.number, row.position) for row in found] == list(enumerate(positions, 1))


def test_several_places_of_which_some_did_not_run() -> None:
    nowhere = ExecutionQuery("f", 0x10), ExecutionQuery("g", 0x20)
    some = PagedResults(history(), program(), ExecutionQuery("leaf", LEAF, also=nowhere))
    assert some.notes == ["f and g did not run in this history. It has gaps: see `trace gaps`."]
    none = PagedResults(history(), program(), nowhere[0]._replace(also=(nowhere[1], ExecutionQuery("h", 0x30))))
    assert none.none_message == "f, g and h did not run in this history. It has gaps: see `trace gaps`."
    assert not none.notes


@pytest.mark.parametrize("other", [ExecutionQuery("*0x80000012", LEAF + 2), ExecutionQuery("a,b", MAIN, LEAF)])
def test_places_with_code_in_common_are_refused(other: ExecutionQuery) -> None:
    """One instruction would be an execution of both, and an arrival in one of them alone."""
    with pytest.raises(BadQuery, match=r"leaf,leaf.*have code in common: search for one after the other"):
        rows(ExecutionQuery("leaf,leaf+15", LEAF, LEAF + 15, also=(other,)))


def test_the_page_from_an_instruction_on() -> None:
    """Forward from there, then on; back from there; numbers are those of the whole list."""
    found = PagedResults(history(), program(), EventQuery())
    found.restart(found.number_from(5))
    assert found.select("", 2) == PageSelection(3, 5) and found.select("+", 2) == PageSelection(5, 7)
    found.restart(found.number_from(5))
    assert found.select("-", 1) == PageSelection(2, 3)
    assert [found.number_from(number) for number in (1, 4, 6, 9)] == [1, 2, 3, 5]
    with pytest.raises(RangeError, match="-from 10: the history has the numbers 1 to 9"):
        found.number_from(10)


def test_gaps() -> None:
    """One line for one, though it has two causes; that tracing stops where the trace ends is none."""
    text = "the encoder lost packets (and 1 more: `trace events` has them)"
    assert rows(GapQuery()) == [found(1, 6, "gap", "overflow", text, (HANDLER + 4,), (LEAF,), 100, 16)]


def test_tracing_that_was_off_is_a_gap() -> None:
    builder = HistoryBuilder()
    builder.append(Path([(MAIN,)]))
    builder.event(EventKind.TRACE_OFF, 4, STOPS)
    builder.add_gap(STARTS)
    builder.resume(LEAF, 8)
    builder.append(Path([(LEAF,)]))
    of = builder.finish(Accounting(0, 0, 0, 0))
    text = "tracing stops, then tracing starts at another place"
    assert rows(GapQuery(), of) == [found(1, 2, "gap", "trace-off", text, (MAIN,), (LEAF,), None, 4)]


def test_executions() -> None:
    """With what came before: an instruction, what a trap hit, a gap, nothing."""
    assert rows(ExecutionQuery("leaf", LEAF)) == [
        found(1, 3, (LEAF,), "execution", "", (MAIN + 4,), None, None, None),
        found(2, 7, (LEAF,), "execution", "", "gap", None, 100, None),
    ]
    assert rows(ExecutionQuery("on_trap", HANDLER, function=True)) == [
        found(1, 4, (HANDLER,), "execution", TRAP.text, (LEAF + 4,), None, 100, None)
    ]
    assert rows(ExecutionQuery("main", MAIN))[0].source == "start"
    assert rows(ExecutionQuery("work", PROCESS))[0].here == (PROCESS, "work", 0)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (EventQuery(("exception", "sync")), "No event of the kind exception or sync is in this trace."),
        (ExecutionQuery("f", 0x10), "f did not run in this history. It has gaps: see `trace gaps`."),
    ],
)
def test_what_is_said_when_there_is_nothing(question: ListQuery, says: str) -> None:
    assert PagedResults(history(), program(), question).select("", 10) == PageSelection(1, 1, says)


def test_what_is_said_of_a_history_that_is_complete() -> None:
    builder = HistoryBuilder()
    builder.append(Path([(MAIN,)]))
    whole = builder.finish(Accounting(0, 0, 0, 0))
    assert PagedResults(whole, program(), GapQuery()).select("", 10).notice == "No gaps: the history is complete."
    not_run = PagedResults(whole, program(), ExecutionQuery("f", 0x10))
    assert not_run.select("3", 10).notice == "f did not run in this history."


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"what": "nonsense"},
        {"what": "events", "kinds": "trap"},
        {"what": "executions", "name": "f"},
        {"what": "executions", "name": "f", "first": -1},
        {"what": "executions", "name": "f", "first": 1, "last": "2"},
        {"what": "executions", "name": "f", "first": 1, "others": [-1]},
        {"what": "executions", "name": "f", "first": 1, "others": 2},
    ],
)
def test_requests_that_make_no_sense(params: dict[str, object]) -> None:
    with pytest.raises(BadRequest, match=r"^page: \w+ is .*, which is not what protocol 2 says$"):
        Methods(Session()).call("page", params, silent)


def test_whether_it_is_what_is_asked_for() -> None:
    of = history()
    found = PagedResults(of, program(), ExecutionQuery("leaf", LEAF))
    assert found.is_for(of, ExecutionQuery("leaf", LEAF))
    assert not found.is_for(of, ExecutionQuery("leaf", LEAF, LEAF)) and not found.is_for(of, GapQuery())
    assert not found.is_for(history(), ExecutionQuery("leaf", LEAF))
