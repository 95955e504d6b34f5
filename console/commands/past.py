"""`rvtrace who-wrote` and `rvtrace values`: registers and memory of the past, outside gdb.

They answer what gdb's commands of these names answer, about a capture file or raw trace bytes. What is not known is
`<unavailable>`, and has no field in JSON.
"""

import argparse
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.options.value_places import WORDS, PlaceText, value_place
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import say_about_trace
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_number, history_position
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.wording import F, X, register_name, regno_of
from rvtrace_gdb.reports.program_sources import ProgramSources
from rvtrace_gdb.rows import answer_text, values_text
from rvtrace_gdb.rows.answers import ValueWriter
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.questions.why.asking import WrittenBytes, is_number_at, written_text
from rvtrace_gdb.session.rpc import analysis, values
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import json_line, printable
from rvtrace_gdb.views import json_rows, text_rows
from rvtrace_gdb.views.addresses import address_text, digits
from rvtrace_gdb.views.disassembly import Disassemblers

UNAVAILABLE = "<unavailable>"
CHOICES = ("on", "registers", "off")
_BYTES = 16  # of memory in a line


class PastError(RvtraceError):
    """Arguments that name nothing of this trace."""


@dataclass(frozen=True)
class PastRequest:
    """What a command line asks about the past. *at*: before this instruction, None: at the end. *places*: as they were
    typed, and *file*. *values*: one of `CHOICES`. *count*: how many writers of a place. *all*: also registers that are
    not known.
    """

    trace: RequestedTrace
    file: str
    output: OutputOptions
    hart: int | None
    at: int | None
    places: tuple[str, ...]
    values: str
    count: int = 1
    all: bool = False


class _PastQuery(NamedTuple):
    """A history that is asked, from *file*. *number*: of the instruction before which the answer holds; one more than
    there are: the end of the history.
    """

    file: str
    session: Session
    selected: SelectedHistory
    shown: CommandOutput
    number: int
    at: int | None

    def past(self) -> Past | None:
        return past_of(self.session, self.selected, self.shown.progress)

    @property
    def image(self) -> Image:
        history = self.selected.history
        return self.selected.program.image_of(history.context_at(min(self.number, len(history)) - 1))


EXAMPLES = {
    "who-wrote": (
        ("who-wrote demo.rvt ticks", "the store that last changed the variable `ticks`"),
        ("who-wrote demo.rvt '$a0' --at 1200 --count 3", "the last three writes to a0 before instruction 1200"),
    ),
    "values": (
        ("values demo.rvt", "how much is known of registers and memory, and why not more"),
        ("values demo.rvt --at 1200", "the registers before instruction 1200"),
        ("values demo.rvt ticks 0x80001000,64 --at 1200", "a variable, and 64 bytes of memory"),
    ),
}


def _add_common(parser: CommandParser, name: str, of_json: str, run: trace_answer.Runner) -> None:
    parser.add_argument(
        "--at", type=inputs.number_from(1, (1 << 63) - 1), metavar="N",
        help="before this instruction of the history (default: at its end)",
    )  # fmt: skip
    parser.add_argument(
        "--hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N", help="the hart (default: first)"
    )
    parser.add_argument(
        "--values", choices=CHOICES, default="on",
        help="what is reconstructed of a trace that has only addresses: registers and memory (on, the default),"
        " registers alone, or nothing",
    )  # fmt: skip
    trace_answer.add_arguments(parser, of_json, EXAMPLES[name], run)


def add_who_wrote(parser: CommandParser) -> None:
    """Define the command line of `rvtrace who-wrote`."""
    parser.usage = "%(prog)s FILE PLACE [--at N] [--count N] [--hart N] [options]"
    parser.description = (
        "Prints which instruction wrote a register or some memory last, as `trace who-wrote` does in gdb. PLACE:"
        " $REGISTER, an expression of the program (a variable, member or element), ADDRESS, or ADDRESS,SIZE."
    )
    inputs.add_capture(parser)
    parser.add_argument("place", metavar="PLACE", help=WORDS)
    parser.add_argument(
        "--count", type=inputs.number_from(1, 1 << 20), default=1, metavar="N",
        help="and who wrote it before that: N writers",
    )  # fmt: skip
    _add_common(parser, "who-wrote", "each writer", run_who_wrote)


def add_values(parser: CommandParser) -> None:
    """Define the command line of `rvtrace values`."""
    parser.usage = "%(prog)s FILE [PLACE ...] [--at N] [--hart N] [options]"
    parser.description = (
        "Prints how much is known of registers and memory in the past, from what, and why not more, as `trace values`"
        " does in gdb. With --at N: the registers before that instruction; with PLACE: registers or memory. PLACE:"
        " $REGISTER, an expression of the program (a variable, member or element), ADDRESS, or ADDRESS,SIZE."
    )
    inputs.add_capture(parser)
    parser.add_argument("place", nargs="*", metavar="PLACE", help=WORDS)
    parser.add_argument("--all", action="store_true", help="with --at N: list registers that are not known, too")
    _add_common(parser, "values", "each register or piece of memory, or for the summary", run_values)


def run_who_wrote(args: argparse.Namespace) -> int:
    """Print who wrote a place. Raises PastError, and as `raw.trace_request` and `Session.selected`."""
    return _answer_request(_who_wrote, _request(args, (args.place,), args.count))


def run_values(args: argparse.Namespace) -> int:
    """Print values of the past. Raises PastError, and as `raw.trace_request` and `Session.selected`."""
    return _answer_request(_value_lines, replace(_request(args, tuple(args.place)), all=args.all))


def _request(args: argparse.Namespace, places: tuple[str, ...], count: int = 1) -> PastRequest:
    trace, options = raw.trace_request(args, args.capture), OutputOptions.from_arguments(args)
    return PastRequest(trace, args.capture, options, args.hart, args.at, places, args.values, count)


def _answer_request(show: Callable[[_PastQuery, PastRequest], Iterator[str]], request: PastRequest) -> int:
    with CommandOutput(request.output, "reading the trace") as shown:
        session = Session()
        say_about_trace(request.trace, session, shown)
        selected = session.selected(Context(hart=request.hart, values=request.values), shown.progress)
        length = len(selected.history)
        if request.at is not None and request.at > length:
            raise PastError(f"--at {request.at}: the history has the numbers 1 to {length}")
        number = length + 1 if request.at is None else request.at
        shown.rows(show(_PastQuery(request.file, session, selected, shown, number, request.at), request))
    return 0


# Who wrote it


def _who_wrote(query: _PastQuery, request: PastRequest) -> Iterator[str]:
    (name,) = request.places
    place = _place_parameters(name, query)
    below = previous = None
    for _ in range(request.count):
        context = {"hart": query.selected.hart, "values": request.values}
        params = Params({"context": context, "at": query.at, "below": below, **place}, "who-wrote")
        found = analysis.who_wrote(query.session, params, query.shown.progress)
        if found["writer"] is None:
            if not query.shown.json:
                yield from found["none"]
            elif previous is None:
                yield json_line({"hart": query.selected.hart, "messages": list(found["none"])})
            return
        writer = ValueWriter(**found["writer"])
        yield from _writer_lines(query, place["name"], writer, previous)
        below, previous = found["below"], writer.ago


def _writer_lines(query: _PastQuery, name: str, writer: ValueWriter, previous: int | None) -> Iterator[str]:
    change = _change(query, name, writer)
    if query.shown.json:
        yield json_line(_writer_fields(query, change, writer))
        return
    line, code = _source_line(query, writer)
    yield f"{change}, {answer_text.written_when(writer, query.at, previous)}"
    if writer.written_as is not None:
        yield f"It was written as {writer.written_as}, which shares bits with it."
    yield from writer.doubts
    if writer.number is None:
        return
    if line:
        yield f"{line}\t{code}"
    history, program = query.selected.history, query.selected.program
    with Disassemblers(program) as source:
        shape = text_rows.Modifiers(paint=query.shown.paint)
        yield from text_rows.lines(history, source, program.xlen, writer.number, writer.number + 1, shape)


def _change(query: _PastQuery, name: str, writer: ValueWriter) -> answer_text.ValueChange:
    """Return what a writer changed, as numbers."""
    if writer.store is None:
        bits = writer.bits or query.selected.program.xlen
        return answer_text.ValueChange(name, *(_hex(it, bits // 8) for it in (writer.old, writer.new)))
    address, size = writer.where or writer.store
    begin, end = max(writer.store[0], address) - address, min(sum(writer.store), address + size) - address
    write, position = WrittenBytes(address, begin, end, writer.window), history_position(query.number)
    part = written_text(query.session, query.selected, name, position, write, query.shown.progress)
    if part is not None:
        return answer_text.ValueChange(printable(part.name), part.old, part.new)
    if end - begin < size:
        whole = _whole_change(query, name, writer, range(address, address + size))
        if whole is not None:
            return whole
        name = f"{answer_text.bytes_text(begin, end)} of {name}"
    return answer_text.ValueChange(name, *(_hex(it, end - begin) for it in (writer.old, writer.new)))


def _whole_change(
    query: _PastQuery, name: str, writer: ValueWriter, place: range
) -> answer_text.ValueChange | None:
    """Return how a number changed of which some bytes were written; None: it is none, or not all of it is known."""
    if writer.window is None or writer.number is None:
        return None
    start, *both = writer.window
    old, new = (part[place.start - start : place.stop - start] if place.start >= start else [] for part in both)
    if len(new) < len(place) or None in new:
        return None
    position = history_position(writer.number)
    if not is_number_at(query.session, query.selected, place.start, len(place), position, query.shown.progress):
        return None
    return answer_text.ValueChange(name, *(_hex(_number(part), len(place)) for part in (old, new)))


def _number(content: Sequence[int | None]) -> int | None:
    known = [it for it in content if it is not None]
    return int.from_bytes(known, "little") if len(known) == len(content) else None


def _source_line(query: _PastQuery, writer: ValueWriter) -> tuple[str, str]:
    """Return file:line of the instruction that wrote, and the text of that line, "" for what is not known."""
    if writer.kind != "instruction" or writer.number is None:
        return "", ""
    history, position = query.selected.history, history_position(writer.number)
    pc = history.pc(position)
    if pc == GAP:
        return "", ""
    sources = ProgramSources(query.selected.program.image_of(history.context_at(position)), shown=True)
    return printable(sources.place(pc)), printable(sources.line_text(pc))


def _hex(value: int | None, size: int) -> str | None:
    return None if value is None else f"0x{value:0{2 * size}x}"


def _writer_fields(query: _PastQuery, change: answer_text.ValueChange, writer: ValueWriter) -> dict[str, object]:
    place: dict[str, object] = {}
    if writer.number is not None and (pc := query.selected.history.pc(history_position(writer.number))) != GAP:
        place = json_rows.place(pc, query.image.symbol(pc), query.selected.program.xlen)
    line, code = _source_line(query, writer)
    if line:
        place |= {"source-line": line, **({"code": code} if code else {})}
    fields = {
        "hart": query.selected.hart, "kind": writer.kind, "what": change.name, "old": change.old, "new": change.new,
        "number": writer.number, **place, "group": writer.group, "ago": writer.ago, "task": writer.task,
        "process": writer.process, "thread": writer.thread, "doubts": list(writer.doubts) or None,
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}


# Values


def _value_lines(query: _PastQuery, request: PastRequest) -> Iterator[str]:
    if request.at is None and not request.places:
        return _summary(query)
    places = [_place_parameters(text, query) for text in request.places]
    past = query.past()
    if past is None:
        raise PastError("no value is known in this trace: see `rvtrace values FILE`")
    return _known_rows(query, past, places) if places else _register_rows(query, past, every=request.all)


def _summary(query: _PastQuery) -> Iterator[str]:
    row = values.row_at(query.session, query.selected, query.at, query.shown.progress)
    if query.shown.json:
        yield json_line(values_text.fields(row))
    else:
        yield from values_text.lines(row, query.selected.program.xlen)


def _known_rows(query: _PastQuery, past: Past, places: Sequence[dict[str, Any]]) -> Iterator[str]:
    known = past.registers(history_position(query.number))
    if not query.shown.json:
        yield _where(query)
    for it in places:
        if "register" in it:
            yield _register_row(query, it["register"], known.get(_common_name(it["register"])))
    for it in places:
        if "where" in it:
            yield from _memory_rows(query, past, it["name"], *it["where"])


def _register_rows(query: _PastQuery, past: Past, *, every: bool) -> Iterator[str]:
    """Yield the registers. What is not known is listed for programs, and if *every* register is; else integer registers
    alone are, if any of them is known, and the others counted.
    """
    known, names = past.registers(history_position(query.number)), _names(past)
    if every or query.shown.json:
        shown = names
    else:
        integers = set(X) if any(name in known for name in X[1:]) else set()
        shown = [name for name in names if name in known or name in integers]
    if not query.shown.json:
        yield _where(query)
    for name in shown:
        yield _register_row(query, name, known.get(name))
    left_out = set(names).difference(shown)
    if left_out and set(shown) <= {"pc"}:
        yield f"No register is known here{_known_again(query, past)}: `rvtrace values FILE` says why."
    elif left_out:
        yield f"not known: {_counts_text(left_out)} (--all lists them, `rvtrace values FILE` says why)"


def _known_again(query: _PastQuery, past: Past) -> str:
    """Return a place soon after one without known registers where there are some, "" if none is found: the distance is
    doubled, then halved.
    """
    at, end, distance = history_position(query.number), len(query.selected.history), 1

    def knows(position: int) -> bool:
        return not {"pc"}.issuperset(past.registers(position))

    while not knows(min(at + distance, end)):
        if at + distance >= end:
            return ""
        distance *= 2
    found = at + 1 + bisect_left(range(at + 1, min(at + distance, end)), True, key=knows)
    return f"; some are before instruction {history_number(found)}" if found < end else "; some are at the end"


def _counts_text(names: set[str]) -> str:
    """Return how many registers of each kind there are."""
    kinds = {"integer register": names & set(X), "floating-point register": names & set(F)}
    kinds["CSR"] = names.difference(X, F, ["pc"])
    counts = {"pc": len(names & {"pc"}), **{kind: len(found) for kind, found in kinds.items()}}
    return ", ".join(
        kind if kind == "pc" else f"{count} {kind}{'s' * (count != 1)}" for kind, count in counts.items() if count
    )


def _common_name(name: str) -> str:
    """Return the name that a register has among those that are known: sp of x2."""
    number = regno_of(name)
    return name if name == "pc" or number is None else register_name(number).split(" ")[0]


def _where(query: _PastQuery) -> str:
    history, xlen = query.selected.history, query.selected.program.xlen
    pc = history.pc(history_position(query.number)) if query.number <= len(history) else GAP
    if pc == GAP:
        return "at the end of the trace" if query.number > len(history) else f"before instruction {query.number}, a gap"
    return f"before instruction {query.number}: {address_text(pc, xlen, query.image.symbol(pc), query.shown.paint)}"


def _names(past: Past) -> list[str]:
    traced = past.traced_registers()
    if traced is None:
        return ["pc"]
    return ["pc", *X[1:], *(F if traced.flen else ()), *traced.csrs]


def _register_row(query: _PastQuery, name: str, value: int | None) -> str:
    if not query.shown.json:
        return f"{name:<15}{UNAVAILABLE if value is None else f'{value:#x}'}"
    fields = {"hart": query.selected.hart, "number": query.number, "register": name}
    return json_line(fields if value is None else {**fields, "value": f"{value:#x}"})


def _memory_rows(query: _PastQuery, past: Past, name: str, address: int, size: int) -> Iterator[str]:
    xlen = query.selected.program.xlen
    for begin in range(0, size, _BYTES):
        found = past.memory(history_position(query.number), address + begin, min(_BYTES, size - begin))
        text = ["--" if byte is None else f"{byte:02x}" for byte in found]
        at = digits(address + begin, xlen)
        if query.shown.json:
            fields = {"hart": query.selected.hart, "number": query.number, "what": name, "addr": at}
            yield json_line({**fields, "bytes": [None if byte is None else byte for byte in found]})
        else:
            yield f"{at} <{printable(name)}+{begin}>:\t{' '.join(text)}" if begin or size > _BYTES else (
                f"{at} <{printable(name)}>:\t{' '.join(text)}"
            )


def _place_parameters(text: str, query: _PastQuery) -> dict[str, Any]:
    """Return a place, and its name, as the parameters of the method `who_wrote`. Raises PlaceError."""
    selected, position = query.selected, history_position(query.number)
    named = PlaceText(text, query.image, printable(query.file))
    found = value_place(query.session, selected, named, position, query.shown.progress)
    if "register" not in found:
        return {"name": text, **found}
    name = str(found["register"])
    return {"name": f"${name}" if text.removeprefix("$") == name else f"{text} (in ${_common_name(name)})", **found}
