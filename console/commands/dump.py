"""`rvtrace dump`: list every message of a trace, one per line, for people and for grep."""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

from rvtrace_gdb.console import output
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import inputs
from rvtrace_gdb.console.options import raw as options_raw
from rvtrace_gdb.console.options.hints import hints_of_groups, hints_of_messages
from rvtrace_gdb.console.options.request import RawBytes, RequestedTrace, file_bytes
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace
from rvtrace_gdb.session.capture.model import CapturedPort, CapturedRecords, CapturedTandem
from rvtrace_gdb.session.formats import registry, sinks
from rvtrace_gdb.session.formats.format import TraceOptions
from rvtrace_gdb.session.formats.framed_sinks import AtbStream, FramedSinks, remarks_of, stream_name
from rvtrace_gdb.session.formats.imports.imported_encoders import ImportedFrames
from rvtrace_gdb.session.formats.imports.raw_import import EncoderTraceOptions
from rvtrace_gdb.session.queries.lists.pages import Cursor, RangeError
from rvtrace_gdb.support.errors import Progress, RvtraceError
from rvtrace_gdb.support.text import counted
from rvtrace_gdb.views import dump, json_rows
from rvtrace_gdb.views.dump import FramePlace

_UNBOUNDED = 1 << 62
_PIECE = 1 << 16


class DumpError(RvtraceError):
    """Arguments of `rvtrace dump` that make no sense."""


@dataclass(frozen=True)
class DumpRequest:
    """What the command line of `rvtrace dump` asks for: the messages *numbers*, of *source*, that end after *offset*;
    None: no restriction. *with_bytes*: their bytes, too.
    """

    trace: RequestedTrace
    numbers: range
    source: int | None
    offset: int | None
    with_bytes: bool


class _Trace(NamedTuple):
    """The bytes of one sink, in pieces, and how to read them."""

    name: str
    data: Iterable[bytes]
    trace_options: TraceOptions
    xlen: int
    wrapped: bool = False
    imported: bool = False
    size: int | None = None
    """The size in bytes, None if unknown."""
    place: Callable[[int], FramePlace] | None = None
    """Where in the frames a byte is, if it was in CoreSight frames."""


EXAMPLES = (
    ("dump demo.rvt", "the messages of a capture"),
    ("dump demo.rvt 1,20 --raw", "the first 20, with their bytes"),
    ("dump raw.bin --etrace", "packets of E-Trace that are in no capture"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace dump`."""
    parser.usage = (
        "%(prog)s FILE [/r] [A,B | A,+N | A,-N | N] [--offset BYTE]\n"
        "                    [--raw] [--src N] [options]"
    )
    parser.description = (
        "Prints every message, one per line: number, byte offset (in CoreSight frames that in the bytes of the ATB ID,"
        " then ID@ and that in the frames), name, the fields as sent (I-CNT=3), what they stand"
        " for (addr=0x80000000 hist=TTN time=90), and after # the meaning. Padding and bytes that are not a message"
        " have lines, too. For a tandem trace, it prints the groups. No program is needed."
    )
    parser.add_argument(
        "file", metavar="FILE", help='a capture, or raw bytes with --ntrace, --etrace or --tandem; "-": standard input'
    )
    parser.add_argument(
        "range", nargs="*", default=[], metavar="RANGE",
        help="numbers of the messages to show; default: all. /r: as --raw",
    )  # fmt: skip
    parser.add_argument(
        "--offset", type=inputs.number_from(0, (1 << 62) - 1), metavar="BYTE",
        help="start with the message that contains this byte",
    )  # fmt: skip
    parser.add_argument("--raw", action="store_true", help="also the bytes of each message (RAW=...)")
    parser.add_argument(
        "--elf", action="append", default=[], metavar="FILE",
        help="the program: core dumps of ESP-IDF need it, and raw tandem traces take XLEN and FLEN from it",
    )  # fmt: skip
    output.add_arguments(parser, "each message")
    options_raw.add_arguments(parser, program=False)
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the messages. Raises CaptureError, RawError, Unsupported, NoTrace, RangeError, DumpError."""
    numbers, with_bytes = _shown_range(args.range)
    named = options_raw.trace_request(args, args.file, options_first=True, also_for_captures=("src",))
    request = DumpRequest(named, numbers, args.src, args.offset, args.raw or with_bytes)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        traces, remarks = _traces(request.trace, shown.progress)
        for trace in traces:
            if len(traces) > 1:
                shown.say([f"sink {trace.name}:"])
            _print_dump(shown, trace, request)
        shown.say(remarks)
    return 0


def _shown_range(words: Sequence[str]) -> tuple[range, bool]:
    """The numbers to show, and whether with the bytes, which /r says too, as in gdb."""
    modifiers = {word for word in words if word.startswith("/")}
    if modifiers - {"/r"}:
        raise DumpError(f"{min(modifiers - {'/r'})}: there is no such modifier, only /r")
    selected = Cursor().select(" ".join(word for word in words if word not in modifiers), None, _UNBOUNDED)
    return range(selected.begin, selected.end), bool(modifiers)


def _print_dump(shown: CommandOutput, trace: _Trace, request: DumpRequest) -> None:
    looked = _Looked(trace, request)
    shown.rows(looked.rows(shown))
    if trace.imported and isinstance(trace.trace_options, EncoderTraceOptions):
        shown.say(
            hints_of_messages(bytes(looked.beginning), trace.trace_options, trace.xlen, trace.wrapped)
        )
    if isinstance(trace.trace_options, CapturedPort):
        shown.say(hints_of_groups(bytes(looked.beginning), trace.trace_options.parameters, trace.wrapped))
    if not looked.shown:
        raise RangeError(_nothing_there(trace, request, looked.count))


class _Looked:
    """The selected messages of a trace. *shown*: how many were shown; *count*: how many were read."""

    def __init__(self, trace: _Trace, request: DumpRequest) -> None:
        self._trace, self._request = trace, request
        self.beginning = bytearray()
        self.shown = self.count = self._read = 0

    def rows(self, output: CommandOutput) -> Iterator[str]:
        trace, request, numbers = self._trace, self._request, self._request.numbers
        trace_format = registry.format_of(trace.trace_options)
        itemizer = trace_format.itemizer(trace.trace_options, trace.xlen, wrapped=trace.wrapped)
        wording = trace_format.wording(trace.trace_options)
        source, least, place = request.source, request.offset, trace.place
        row = json_rows.message_row(trace.name) if output.json else dump.item_line
        pieces = self._pieces(output)
        texts = dump.texts_of(pieces, itemizer, wording, trace_format.source_of, raw=request.with_bytes)
        for number, (offset, end, sender, text) in enumerate(texts, 1):
            if number >= numbers.stop:
                break
            self.count = number
            if number < numbers.start or (least is not None and end <= least):
                continue
            if source is None or sender == source:
                self.shown += 1
                yield row(number, offset, text) if place is None else row(number, offset, text, place(offset))

    def _pieces(self, output: CommandOutput) -> Iterator[bytes]:
        """Return the trace in pieces; its beginning is stored."""
        for piece in self._trace.data:
            output.progress("reading messages", self._read, self._trace.size)
            self.beginning += piece[: _PIECE - len(self.beginning)]
            self._read += len(piece)
            yield piece


def _nothing_there(trace: _Trace, request: DumpRequest, count: int) -> str:
    """Return the error for an empty selection. *count*: the number of messages that were read."""
    if count < request.numbers.start or (request.offset is not None and request.numbers.stop > _UNBOUNDED):
        return f"{trace.name} has nothing there: it has {counted(count, 'message')}"
    what = "no message" if request.source is None else f"no message of SRC {request.source}"
    return f"{trace.name} has {what} there"


class _Dumped(NamedTuple):
    """The traces to list, and lines on what is beside them."""

    traces: list[_Trace]
    remarks: list[str]


def _traces(request: RequestedTrace, progress: Progress) -> _Dumped:
    raw, file = request.raw, request.file
    if raw is not None and raw.frames is not None:
        return _framed_traces(raw, raw.frames, request, progress)
    if raw is not None:
        pieces = iter(inputs.pieces(file))
        beginning = next(pieces, b"")
        trace_options, xlen = raw.messages(file, request.programs, beginning)
        data, size = chain([beginning], pieces), _file_size(file)
        return _Dumped([_Trace(file, data, trace_options, xlen, raw.wrapped, True, size)], [])
    capture, framed, found = request.capture(), FramedSinks(), list[_Trace]()
    for it in framed.streams(capture.captured, progress):
        sent = sinks.options_of_sink(it, capture.encoders)
        xlen = it.in_force.parameters.xlen if isinstance(it, CapturedTandem) else capture.xlen
        wrapped = not isinstance(it, CapturedRecords) and it.wrapped
        place = partial(_place_of_byte, it.atb_id, it.offset_in_frames) if isinstance(it, AtbStream) else None
        found.append(_Trace(it.in_force.name, _trace_pieces(it.data), sent, xlen, wrapped, False, len(it.data), place))
    return _Dumped(found, framed.remarks())


def _framed_traces(raw: RawBytes, frames: ImportedFrames, request: RequestedTrace, progress: Progress) -> _Dumped:
    """Return what each ATB ID of raw bytes sent. Raises DumpError."""
    file, (trace_options, xlen) = request.file, raw.messages(request.file, request.programs)
    trace = DemultiplexedTrace(frames.form, file_bytes(file), progress)
    remarks = remarks_of(frames.form, trace.accounting, trace.firsts, request.name, trace.atb_ids)
    found = []
    for atb_id in filter(frames.is_chosen, trace.atb_ids):
        data, name = trace.stream(atb_id), stream_name(request.name, atb_id)
        place = partial(_place_of_byte, atb_id, partial(trace.offset_of, atb_id))
        found.append(_Trace(name, _trace_pieces(data), trace_options, xlen, raw.wrapped, True, len(data), place))
    if not found:
        what = "nothing of the ATB IDs given" if trace.atb_ids else "no ATB ID of a trace source"
        raise DumpError(f"{request.name}: {what} in {counted(len(trace.frames), 'byte')}: are these CoreSight frames?")
    return _Dumped(found, list(remarks))


def _place_of_byte(atb_id: int, offset_of: Callable[[int], int], offset: int) -> FramePlace:
    """Return where in the frames a byte of an ATB ID is."""
    return FramePlace(atb_id, offset_of(offset))


def _trace_pieces(data: bytes) -> Iterator[bytes]:
    """Return the trace in pieces, so that the first lines appear at once."""
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]


def _file_size(file: str) -> int | None:
    """Return the size of a file in bytes, None if it is not a regular file."""
    try:
        return os.path.getsize(file) or None
    except OSError:
        return None
