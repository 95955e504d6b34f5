"""The events of a trace as the text of `perf script`: for people, FlameGraph's stackcollapse-perf.pl, llvm-profgen.

    hart0     1 [000]     0.000000120:  1 branches:   80000010 leaf+0x0 (/a.elf) =>  80000004 main+0x4 (/a.elf)

A line has the fields that are chosen, in perf's order and with perf's widths; a call chain has a line for each frame,
and an empty one behind it. Several harts are merged by their times, as in `rvtrace decode`.

Source: Linux, tools/perf/builtin-script.c and util/evsel_fprintf.c.
"""

from collections.abc import Callable, Iterable, Iterator

from rvtrace_gdb.decode.history.hart_order import HartOrder, HistoryRun
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.exports.missing import cause
from rvtrace_gdb.session.exports.perf.address_texts import CodeAddressTexts
from rvtrace_gdb.session.exports.perf.branch_stacks import mapping_texts
from rvtrace_gdb.session.exports.perf.call_depths import CallDepths
from rvtrace_gdb.session.exports.perf.events import EventStretch, HartEvents, PerfEvent
from rvtrace_gdb.session.exports.perf.itrace import Itrace, PerfEventKind
from rvtrace_gdb.session.exports.perf.processes import ExportedProcess
from rvtrace_gdb.session.exports.perf.transfers import Transfer, TransferKind
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import RowPiece, printable
from rvtrace_gdb.views.disassembly import Disassemblers

_SECOND = 10**9
_ROWS, _POSITIONS = 1 << 10, 1 << 16  # of a piece
_INDENT, _COLUMNS, _STAYS = 4, 32, 52  # of functions that are called: perf_sample__fprintf_callindent


class ScriptText:
    """The text of the events of all harts that are written."""

    def __init__(self, trace: ExportedTrace, itrace: Itrace, fields: frozenset[str], progress: Progress) -> None:
        self._trace, self._itrace, self._fields, self._progress = trace, itrace, fields, progress

    def pieces(self, *, mappings: bool = False) -> Iterator[RowPiece]:
        """Yield the lines in pieces. *mappings*: first those of the mappings of all processes. Raises NoTimes, what
        the progress raises, and OutOfMemory.
        """
        with Disassemblers(self._trace.program) as source:
            harts = {it.hart: self._hart_text(it, source) for it in self._trace.harts}
            for hart in harts.values() if mappings else ():
                yield _piece(hart.mapping_lines())
            done, total = 0, sum(len(it.part) for it in self._trace.harts)
            for run in self._runs():
                for piece, ran in harts[run.hart].pieces(run):
                    yield piece
                    self._progress("writing (instructions)", done + ran, total)
                done += run.end - run.begin
            for hart in harts.values():
                yield _piece(hart.rest())

    def _hart_text(self, trace: ExportedTrace, source: Disassemblers) -> "_HartText":
        return _HartText(trace, self._itrace, self._fields, source, self._progress)

    def _runs(self) -> Iterator[HistoryRun]:
        """Yield the parts of all harts, merged by their times."""
        parts = {it.hart: it.part for it in self._trace.harts}
        if len(parts) == 1:
            [(hart, part)] = parts.items()
            yield HistoryRun(hart, part.start, part.stop)
            return
        for run in HartOrder({it.hart: it.history for it in self._trace.harts}).runs():
            part = parts[run.hart]
            begin, end = max(run.begin, part.start), min(run.end, part.stop)
            if begin < end:
                yield HistoryRun(run.hart, begin, end)


def _piece(lines: Iterator[str]) -> RowPiece:
    made = list(lines)
    return RowPiece("".join(made).encode("utf-8", "replace"), len(made))


class _HartText:
    """The lines of a hart, each with its end."""

    def __init__(
        self, trace: ExportedTrace, itrace: Itrace, fields: frozenset[str], source: Disassemblers, progress: Progress
    ) -> None:
        self._events, self._fields, self._itrace = HartEvents(trace, itrace, progress), fields, itrace
        self._trace, self._source, self._progress, self._processes = trace, source, progress, self._events.processes
        self._places: dict[int, CodeAddressTexts] = {}
        self._depths = CallDepths(trace.calls(progress)) if "callindent" in fields and itrace.transfers else None
        self._name_width = max((len(kind.value) for kind in itrace.event_kinds), default=0)
        self._spacing = 0
        self._lines_of: Callable[[EventStretch], Iterable[str]] = self._lines
        if itrace == Itrace(instructions=True, errors=itrace.errors):
            self._lines_of = self._listing
        elif not itrace.has_samples and self._depths is None and not trace.history.code_varies:
            self._lines_of = self._transfer_lines
        self._transfer_ends: dict[int, dict[Transfer, str]] = {}

    def mapping_lines(self) -> Iterator[str]:
        """Yield the lines of the mappings of the hart's processes."""
        for process, text in mapping_texts(self._processes):
            yield f"{self._line_head(process)}{self._time_text(0)}{text}\n"

    def pieces(self, run: HistoryRun) -> Iterator[tuple[RowPiece, int]]:
        """Yield the lines of what happened at some positions, in pieces; and how many positions these are so far."""
        waiting, since = list[str](), run.begin
        for stretch in self._events.stretches(run.begin, run.end):
            waiting += self._lines_of(stretch)
            if len(waiting) >= _ROWS or stretch.end - since >= _POSITIONS:
                yield _piece(iter(waiting)), stretch.end - run.begin
                waiting, since = [], stretch.end
        if waiting:
            yield _piece(iter(waiting)), run.end - run.begin

    def rest(self) -> Iterator[str]:
        """Yield the lines behind the last instruction."""
        yield from map(self._error_line, self._events.errors(self._trace.part.stop))

    def _lines(self, stretch: EventStretch) -> Iterator[str]:
        places = self._address_texts(stretch)
        places.disassemble(stretch.pcs)
        head, timed = self._stretch_head(stretch)
        for event in self._events.events(stretch):
            if event.kind is PerfEventKind.ERROR:
                yield self._error_line(event)
                continue
            start = f"{head}{timed(event.position)}{self._event_name(event.kind, event.period)}"
            what = (
                self._sample_end(event, places)
                if event.transfer is None
                else self._transfer_end(event.position, event.transfer, places)
            )
            yield f"{start}{what}\n"

    def _listing(self, stretch: EventStretch) -> list[str]:
        """Return the lines of a stretch of which each instruction is an event."""
        places = self._address_texts(stretch)
        head, timed = self._stretch_head(stretch)
        name = self._event_name(PerfEventKind.INSTRUCTIONS, 1)
        bodies = places.bodies(stretch.pcs, self._trace.history.code(stretch.begin, stretch.end), stretch.begin)
        begin, end = stretch.begin, stretch.end
        if "time" in self._fields and not self._events.axis.timed and begin // _SECOND == (end - 1) // _SECOND:
            second, first = f"{head}{begin // _SECOND:5d}.", begin % _SECOND
            found = [f"{second}{at:09d}: {name}{body}\n" for at, body in enumerate(bodies, first)]
        elif "time" in self._fields and not self._events.axis.timed:
            found = [f"{head}{timed(at)}{name}{body}\n" for at, body in enumerate(bodies, begin)]
        else:
            start = f"{head}{timed(begin)}{name}"
            found = [f"{start}{body}\n" for body in bodies]
        return [*map(self._error_line, self._events.errors(begin)), *found]

    def _transfer_lines(self, stretch: EventStretch) -> list[str]:
        """Return the lines of a stretch of which transfers alone are events, with the same end for equal ones."""
        places = self._address_texts(stretch)
        places.disassemble(stretch.pcs)
        ends = self._transfer_ends.setdefault(id(places), {})
        head, timed = self._stretch_head(stretch)
        name, found = (
            self._event_name(PerfEventKind.BRANCHES, 1),
            list(map(self._error_line, self._events.errors(stretch.begin))),
        )
        for offset, transfer in self._events.wanted_transfers(stretch):
            end = ends.get(transfer)
            if end is None:
                end = ends[transfer] = self._transfer_end(stretch.begin + offset, transfer, places)
            found.append(f"{head}{timed(stretch.begin + offset)}{name}{end}\n")
        return found

    def _address_texts(self, stretch: EventStretch) -> CodeAddressTexts:
        image = self._events.image(stretch.context)
        found = self._places.get(id(image))
        if found is None:
            disassembler = self._source.disassembler_of(stretch.context)
            found = self._places[id(image)] = CodeAddressTexts(image, self._fields, disassembler, self._progress)
        return found

    def _stretch_head(self, stretch: EventStretch) -> tuple[str, Callable[[int], str]]:
        """Return the beginning of lines, and what says the time at a position."""
        head = self._line_head(self._processes.process_at(stretch.begin))
        if "time" not in self._fields:
            return head, lambda position: ""
        if self._events.axis.timed:
            time = self._time_text(self._events.axis(stretch.begin))
            return head, lambda position: time
        return head, self._time_text

    def _line_head(self, process: ExportedProcess) -> str:
        """Return the fields before the time."""
        chosen = self._fields
        narrow = "ip" in chosen and self._itrace.chain
        found = ("%s " if narrow else "%16s ") % process.comm if "comm" in chosen else ""
        if {"pid", "tid"} <= chosen:
            found += f"{process.pid:5d}/{process.tid:<5d} "
        elif chosen & {"pid", "tid"}:
            found += f"{process.pid if 'pid' in chosen else process.tid:5d} "
        return found + (f"[{self._trace.hart:03d}] " if "cpu" in chosen else "")

    def _time_text(self, time: int) -> str:
        return f"{time // _SECOND:5d}.{time % _SECOND:09d}: " if "time" in self._fields else ""

    def _event_name(self, kind: PerfEventKind, period: int) -> str:
        name = f"{period:10d} " if "period" in self._fields else ""
        return f"{name}{kind.value:>{self._name_width}}: " if "event" in self._fields else name

    def _sample_end(self, event: PerfEvent, places: CodeAddressTexts) -> str:
        found = ""
        if "flags" in self._fields:
            found = f"  {'':<21} "
        if event.chain and "ip" in self._fields:
            found += "\n" + "".join(f"\t{places.place(it.address, it.inside)}\n" for it in event.chain)
        elif "ip" in self._fields:
            found += f" {places.place(event.ip)}"
            found += places.source_line(event.ip)
        found += self._branch_stack(event.last_branches, places)
        return found + places.code_fields(event.ip, self._code_at(event.position))

    def _transfer_end(self, position: int, transfer: Transfer, places: CodeAddressTexts) -> str:
        source, target, kind = transfer
        found = f"  {kind.text:<21} " if "flags" in self._fields else ""
        if self._depths is not None:
            found += self._call_indent(position, transfer, places)
        if "ip" in self._fields:
            found += f" {places.place(source)}"
        if "addr" in self._fields:
            found += f" => {places.place(target)}"
        found += places.source_line(source)
        return found + (places.code_fields(source, self._code_at(position)) if source else "")

    def _code_at(self, position: int) -> bytes | None:
        """Return the bytes of an instruction that need not be the program's, else None."""
        return self._trace.history.code(position, position + 1).get(position)

    def _call_indent(self, position: int, transfer: Transfer, places: CodeAddressTexts) -> str:
        assert self._depths is not None
        kind, behind = transfer.kind, position + (transfer.kind is not TransferKind.TRACE_BEGIN)
        name, depth = "", 0
        if kind is TransferKind.TRACE_END:
            name, depth = places.name(transfer.source), self._depths.level_at(position)
        elif kind.calls or kind is TransferKind.TRACE_BEGIN:
            name, depth = places.name(transfer.target), self._depths.level_at(behind)
        elif kind.returns:
            name, depth = places.name(transfer.source), self._depths.level_before(behind)
        text = f"{'':{_INDENT * max(depth, 0)}}{name}" if name else ""
        length = len(text)
        if length > self._spacing or (length and length < self._spacing - _STAYS):
            self._spacing = -(-(length + 4) // _COLUMNS) * _COLUMNS
        return f"{text:<{self._spacing}}"

    def _branch_stack(self, branches: tuple[Transfer, ...], places: CodeAddressTexts) -> str:
        if "brstack" in self._fields:
            return "".join(f" 0x{it.source:x}/0x{it.target:x}/P/-/-/0/{it.kind.branch_name} " for it in branches)
        if "brstacksym" in self._fields:
            found = (
                (places.symbol_text(it.source), places.symbol_text(it.target), it.kind.branch_name) for it in branches
            )
            return "".join(f" {source}/{target}/P/-/-/0/{name} " for source, target, name in found)
        return ""

    def _error_line(self, event: PerfEvent) -> str:
        assert event.missing is not None
        process, time = self._processes.process_at(event.position), self._events.axis(event.position)
        where = f"cpu {self._trace.hart} pid {process.pid} tid {process.tid} ip 0x{event.ip:x}"
        what = printable(f"{cause(event.missing.event)}; trace byte 0x{event.missing.event.offset:x}")
        when = f"{time // _SECOND}.{time % _SECOND:09d}"
        return f" instruction trace error type 1 time {when} {where} code 0: {what}\n"
