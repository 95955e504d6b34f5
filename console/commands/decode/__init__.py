"""`rvtrace decode`: the listing of a capture file, the same as `trace history` prints in gdb."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.decode import follow
from rvtrace_gdb.console.commands.decode.early_rows import EarlyRows
from rvtrace_gdb.console.commands.decode.request import DecodeError, DecodeRequest, decode_request
from rvtrace_gdb.console.help_pages import THREADS, group_of
from rvtrace_gdb.console.options import trace_answer
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.options.threads import TITLE, add_threads
from rvtrace_gdb.console.output import CommandOutput
from rvtrace_gdb.decode.history import hart_order
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.formats.imports import raw_import
from rvtrace_gdb.session.formats.imports.raw_import import is_imported
from rvtrace_gdb.session.queries.hart_events import has_events_alone
from rvtrace_gdb.session.queries.lists.history_part import positions_of_numbers
from rvtrace_gdb.session.queries.lists.parts_query import InstructionQuery
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.text import RowPiece
from rvtrace_gdb.views import json_rows, text_rows
from rvtrace_gdb.views.row_pieces import Stretch

ALL = 0  # the size of a listing that has no limit


EXAMPLES = (
    ("decode demo.rvt", "what ran; the capture names its program"),
    ("decode demo.rvt -10 --elf demo.elf", "the last 10; of a long trace the second time without decoding all"),
    ("decode demo.rvt --events", "traps, and where trace is missing"),
    ("decode raw.bin --ntrace --elf app.elf", "N-Trace that is in no capture"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace decode`."""
    parser.usage = (
        "%(prog)s FILE [/rf] [A,B | A,+N | A,-N | N | -N] [--elf FILE]\n"
        "                      [--time T[,T]] [--hart N|all] [--events] [options]\n"
        "       rvtrace decode --follow SOURCE\n"
        "                      (--ntrace | --etrace | --tandem | --settings RVT)\n"
        "                      [/rf] [--elf FILE] [--events] [-o FILE.rvt] [options]"
    )
    parser.description = (
        "Prints the instructions that ran, oldest first, as `trace history` does in gdb. Their text comes from gdb if"
        " it is installed, otherwise from objdump; without either, the encodings are shown."
    )
    parser.add_argument(
        "capture",
        metavar="FILE",
        help='a capture, or raw bytes with --ntrace, --etrace or --tandem; "-": standard input',
    )
    parser.add_argument(
        "range", nargs="*", default=[], metavar="RANGE",
        help="numbers to show, as in `trace history`, -N: the last N; default: all. /r raw bytes, /f no function names",
    )  # fmt: skip
    parser.add_argument(
        "--hart", default=None, metavar="N|all",
        help='the hart to list; default: all, by time if there are timestamps, each line after "hart N" and a tab',
    )  # fmt: skip
    parser.add_argument(
        "--time", metavar="T[,T]", help="what ran then, or from one time to another, in ticks"
    )
    parser.add_argument("--events", action="store_true", help="list the events between the instructions, one per line")
    parser.add_argument("--stop-at-error", action="store_true", help="stop decoding at the first loss")
    parser.add_argument("--check", action="store_true", help="check the trace first: what differs is a loss")
    add_threads(group_of(parser, THREADS, TITLE))
    follow.add_arguments(parser)
    of_json = "each instruction and gap; with --events, for each event"
    trace_answer.add_arguments(parser, of_json, EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print the listing. Raises as `decode_request`, `Session.open_capture` and `Session.history`."""
    request = decode_request(args)
    return _list(request) if request.stream is None else follow.run(request, request.stream)


def _list(request: DecodeRequest) -> int:
    with CommandOutput(request.output, "reading the trace") as shown, ExitStack() as cleanup:
        session = Session()
        about = request.trace.open(session, lazily=request.is_part)
        early = cleanup.enter_context(EarlyRows(request, session, shown, about))
        decoded = session.harts(progress=early.progress)
        if request.check:
            decoded = session.check(progress=shown.progress)
        hint = hints_of_history(session.capture(), decoded, shown.progress)
        if not hint:
            _check_readable(request.trace, session.capture(), decoded)
        hart = request.hart
        if hart is not None or len(decoded.harts.histories) == 1:
            hart = decoded.harts.number(hart)
        asked = _TraceRows(session, decoded, early, hart, shown)
        try:
            of_events = request.events or asked.has_events_alone(request)
            list_part = asked.part_listing if request.threads else asked.listing
            said, pieces, count = asked.events() if of_events else list_part(request)
        except NoTrace:
            shown.say(hint)
            raise
        found = [*report.histories(decoded.harts), *report.checks(decoded.checked or ())]
        shown.say([*(() if early.number else about), *found, *said, *hint])
        shown.pieces(pieces, "writing (lines)", count)
    return 0


def _check_readable(trace: RequestedTrace, capture: Capture, decoded: Decoded) -> None:
    """Raise DecodeError for imported bytes that are not a trace."""
    if trace.raw is None and not is_imported(capture):
        return
    why = raw_import.empty_history(decoded.harts) or raw_import.why_unreadable(capture, decoded.harts)
    if why is not None:
        raise DecodeError(f"{trace.name}: {why}")


class _TraceRows(NamedTuple):
    """The rows shown of a trace: of all harts, or only of *hart*. Methods return (notes, rows, number of rows)."""

    session: Session
    decoded: Decoded
    early: EarlyRows
    hart: int | None
    output: CommandOutput

    @property
    def histories(self) -> dict[int, History]:
        found = self.decoded.harts.histories
        return found if self.hart is None else {self.hart: found[self.hart]}

    def has_events_alone(self, request: DecodeRequest) -> bool:
        """Return whether no instruction can be listed, but events can, all of them."""
        return has_events_alone(self.histories.values()) and not (request.numbers or request.times or request.last)

    def events(self) -> tuple[list[str], Iterator[RowPiece], int]:
        found = self.histories
        if self.output.json:
            lines = json_rows.events(found, self.decoded.program)
        else:
            lines = text_rows.event_lines(found, self.decoded.program, self.output.paint)
        pieces = self.output.pieces_of(lines)
        return self.session.warnings(), pieces, sum(len(history.events) for history in found.values())

    def listing(self, request: DecodeRequest) -> tuple[list[str], Iterator[RowPiece], int]:
        rows, shape = self.early.rows(self.decoded.program, self.decoded.image.xlen), self.early.shape
        if self.hart is None:
            said = [*self.session.warnings(), *_order(self.histories, request)]
            pieces = rows.pieces_of(text_rows.merged_stretches(self.histories, shape, self.early.number))
            return said, pieces, sum(len(history) for history in self.histories.values()) - self.early.number
        numbers = _numbers(self.histories[self.hart], request)
        asked = self.session.history(numbers, ALL, Context(hart=self.hart), self.output.progress)
        begin = self.early.number + 1 if self.early.number else asked.begin
        stretch = Stretch(shape.frame(self.hart, False), self.histories[self.hart], begin, asked.end)
        return asked.lines, rows.pieces_of([stretch]), asked.end - begin


    def part_listing(self, request: DecodeRequest) -> tuple[list[str], Iterator[RowPiece], int]:
        """As `listing`, of what a task, a process or a thread ran; a range of rows counts these."""
        rows, shape = self.early.rows(self.decoded.program, self.decoded.image.xlen), self.early.shape
        histories, said = self.histories, self.session.warnings()
        parts = {hart: self._parts_of(hart, request) for hart in histories if len(histories[hart])}
        if self.hart is None:
            said = [*said, *_order(histories, request)]
            stretches = text_rows.merged_stretches(histories, shape)
        else:
            parts[self.hart] = _chosen_parts(parts.get(self.hart, []), self.histories[self.hart], request)
            whole = Stretch(shape.frame(self.hart, False), histories[self.hart], 1, len(histories[self.hart]) + 1)
            stretches = iter([whole])
        by_history = {id(histories[hart]): found for hart, found in parts.items()}
        cut = (it for stretch in stretches for it in stretch.stretches_in(by_history.get(id(stretch.history), ())))
        count = sum(len(part) for found in parts.values() for part in found)
        return said, rows.pieces_of(cut), count

    def _parts_of(self, hart: int, request: DecodeRequest) -> Sequence[range]:
        from rvtrace_gdb.session.rpc.lists.parts import part_query  # few listings are of parts

        context = Context(hart=hart, rtos=request.rtos)
        selected = self.session.selected(context, self.output.progress)
        params = Params(request.threads, "decode")
        return part_query(self.session, InstructionQuery(), selected, params, self.output.progress).parts


def _chosen_parts(parts: Sequence[range], history: History, request: DecodeRequest) -> Sequence[range]:
    """Return which rows of parts are asked for. Raises DecodeError, RangeError."""
    if request.times is not None:
        at = positions_of_numbers(_numbers(history, request), len(history))
        return [range(max(part.start, at.start), min(part.stop, at.stop)) for part in parts]
    length = sum(map(len, parts))
    if not request.numbers or not length:
        return parts
    chosen, before = positions_of_numbers(request.numbers, length), 0
    found = list[range]()
    for part in parts:
        found.append(part[max(chosen.start - before, 0) : max(chosen.stop - before, 0)])
        before += len(part)
    return found


def _numbers(history: History, request: DecodeRequest) -> str:
    """Return the numbers that are asked for, as `trace history` has them. Raises DecodeError."""
    length = len(history)
    if request.last is not None and length:
        return f"{max(length - request.last, 0) + 1},{length}"
    if request.times is None or not length:
        return request.numbers
    try:
        start, stop = history.positions_of_times(*request.times)
    except LookupError:
        raise DecodeError("--time: the trace has no timestamps") from None
    if start >= stop:
        raise DecodeError(f"--time {request.times[0]}: nothing ran at that time: the trace begins later")
    return f"{history_number(start)},{history_number(stop - 1)}"


def _order(histories: Mapping[int, History], request: DecodeRequest) -> list[str]:
    """Return notes about the order of several harts. Raises DecodeError, NoTrace."""
    if request.numbers or request.times:
        numbers = request.numbers or f"--time {','.join(map(str, request.times or ()))}"
        raise DecodeError(f"{numbers}: several harts are in the trace, and each has its own numbers: add --hart N")
    if not any(len(history) for history in histories.values()):
        raise NoTrace("nothing in the trace can be decoded: no synchronizing message of any hart is in it")
    untimed = hart_order.untimed(histories)
    if len(untimed) == len(histories):
        return ["note:     the trace has no timestamps: one hart after the other"]
    return [f"note:     hart {hart} has no timestamps and comes last" for hart in untimed]
