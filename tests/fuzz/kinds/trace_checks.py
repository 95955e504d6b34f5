"""What the program shows of a trace, and what is always true of it: for all formats alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.format import TraceOptions
from rvtrace_gdb.session.formats.stream import Arrived, StreamFollower, StreamSource
from rvtrace_gdb.session.queries.check import row_of
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery
from rvtrace_gdb.session.queries.lists.functions import FunctionList
from rvtrace_gdb.session.queries.lists.search import Accesses, EventQuery, GapQuery, PagedResults
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.views import dump, json_rows, text_rows
from rvtrace_gdb.views.disassembly import Disassembler
from rvtrace_gdb.views.instruction_text import InstructionText
from tests.fuzz.exercise import Exercise, Input, first, refused

ROWS = 40
"""Of each list so many are looked at."""


class Trace(NamedTuple):
    """A sound trace, and how it is read."""

    data: bytes
    program: ContextImages
    trace_options: TraceOptions
    wrapped: bool = False


class Traces(Exercise):
    """Traces by name, each looked at in each way: a variant is a name and a way."""

    def __init__(self, traces: Mapping[str, Trace]) -> None:
        super().__init__()
        self.traces = traces
        self.seeds = [Input(f"{name} {way}", trace.data) for name, trace in traces.items() for way in WAYS]

    def run(self, variant: str, data: bytes) -> None:
        name, _, way = variant.rpartition(" ")
        WAYS[way](self.traces[name]._replace(data=data))


class NoDisassembler(Disassembler):
    """The addresses stand for the text: disassemblers are programs of their own, which take long to start."""

    def texts(self, addresses: Iterable[int], progress: Progress = silent) -> Mapping[int, InstructionText]:
        return {address: InstructionText(self._image.symbol(address), hex(address)) for address in addresses}


class Disassembled:
    """The disassemblers of a program."""

    def __init__(self, program: ContextImages) -> None:
        self._program, self._known = program, dict[int, NoDisassembler]()

    def disassembler_of(self, context: ProgramContext) -> NoDisassembler:
        image = self._program.image_of(context)
        return self._known.setdefault(id(image), NoDisassembler(image))


def decoded(trace: Trace) -> dict[int, History]:
    """Raises AssertionError where bytes are not accounted for."""
    found = registry.decode(trace.data, trace.program, trace.trace_options, wrapped=trace.wrapped)
    check_accounting(found.accounting, len(trace.data))
    for history in found.histories.values():
        check_accounting(history.accounting, None)
    return found.histories


def check_accounting(accounting: tuple[int, int, int, int], size: int | None) -> None:
    """That every byte was decoded, skipped or idle. *size*: how many there were."""
    total, used, idle, skipped = accounting
    assert min(accounting) >= 0 and total == used + idle + skipped, f"bytes are not accounted for: {accounting}"
    assert size is None or total == size, f"{size} bytes, and {total} are accounted for"


def _listing(trace: Trace) -> None:
    source = Disassembled(trace.program)
    for history in decoded(trace).values():
        size = len(history)
        for shape in (text_rows.Modifiers(True, False), json_rows.HistoryRows()):
            for begin, end in ((1, min(size, ROWS) + 1), (max(size - ROWS, 0) + 1, size + 1)):
                list(text_rows.lines(history, source, trace.program.xlen, begin, end, shape))


def _events(trace: Trace) -> None:
    histories = decoded(trace)
    first(text_rows.event_lines(histories, trace.program), ROWS)
    first(json_rows.events(histories, trace.program), ROWS)


def _data(trace: Trace) -> None:
    for hart, history in decoded(trace).items():
        first(text_rows.access_lines(history, trace.program), ROWS)
        first(json_rows.accesses(hart, history, trace.program), ROWS)
        of_history = Accesses(history, trace.program)
        with refused:
            of_history.select("", 10)
        of_history.rows(1, ROWS)


def _calls(trace: Trace) -> None:
    for history in decoded(trace).values():
        if len(history):
            functions = FunctionList(history, trace.program)
            functions.rows(1, ROWS, lines=len(history) < 1 << 16)
            functions.tree(3)
            functions.tree_rows(1, ROWS)


def _find(trace: Trace) -> None:
    for history in decoded(trace).values():
        if not len(history):
            continue
        calls = FunctionList(history, trace.program).calls
        pc = next((pc for pc in history.pcs(0, min(len(history), ROWS)) if pc != GAP), 0)
        for question in (EventQuery(), GapQuery(), ExecutionQuery("it", pc), ExecutionQuery("it", pc, pc + 16)):
            found = PagedResults(history, trace.program, question, calls=lambda calls=calls: calls)  # type: ignore[misc]
            found.rows(1, ROWS)
            if len(found):
                found.rows(len(found) - 1, len(found) + 1)


def _follow(trace: Trace) -> None:
    """As it arrives, in small pieces."""
    if isinstance(trace.trace_options, CtrRegisterValues):
        return
    following = StreamFollower(
        StreamSource(trace.trace_options, None, alone=False), trace.program, wrapped=trace.wrapped
    )
    for at in range(0, len(trace.data), 37):
        _pieces(following.feed(trace.data[at : at + 37]), trace.program)
    _pieces(following.finish(), trace.program)


def _pieces(arrived: Iterable[Arrived], program: Program) -> None:
    """What is shown of them: their numbers go on."""
    for _, piece in arrived:
        first(piece.history.pcs(piece.begin, min(piece.end, piece.begin + ROWS)))
        for event in piece.events[:ROWS]:
            text_rows.event_line(piece.history, event, program)


def _dump(trace: Trace) -> None:
    """The messages, in words and as JSON, which need no program."""
    xlen, data = trace.program.xlen, trace.data
    trace_format = registry.format_of(trace.trace_options)
    plain, remembering = (
        trace_format.itemizer(trace.trace_options, xlen, wrapped=trace.wrapped) for _ in range(2)
    )
    wording, half = trace_format.wording(trace.trace_options), len(data) // 2
    pieces = [data[:half], data[half:]]
    texts = dump.texts_of(pieces, remembering, wording, trace_format.source_of, raw=True)
    lines = dump.lines_of(pieces, plain, wording, raw=True)
    for (number, item, line), (offset, end, _, text) in zip(lines, texts, strict=True):
        assert (item.offset, item.end, line) == (offset, end, dump.item_line(number, offset, text))
        if number < ROWS:
            json_rows.message("it", number, item.offset, line.partition(" ")[2])
            registry.format_of(trace.trace_options).source_of(item)
            wording.is_odd(item)


def _check(trace: Trace) -> None:
    """Raises AssertionError where the check does not come to an end as it should, whatever the bytes are."""
    try:
        made = registry.format_of(trace.trace_options).checker(
            trace.program, trace.trace_options, silent, wrapped=trace.wrapped, total=len(trace.data)
        )
    except Unsupported:
        return
    try:
        made.feed(trace.data)
        for hart, verdict in made.verdicts().items():
            row = row_of(hart, verdict)
            assert row.intervals == row.agree + row.differ + row.lost + row.unchecked
            assert all(0 <= one.start <= one.end <= len(trace.data) for one in row.differing)
    except RvtraceError as error:
        raise AssertionError(f"the check ends with {error}") from error


WAYS: Mapping[str, Callable[[Trace], None]] = {
    "listing": _listing, "events": _events, "data": _data, "calls": _calls, "find": _find, "follow": _follow,
    "dump": _dump, "check": _check,
}  # fmt: skip


def nowhere(xlen: int = 64) -> ContextImages:
    """A program of which nothing is known."""
    return ContextImages(Image(xlen))
