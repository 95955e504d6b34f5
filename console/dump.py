"""`rvtrace dump`: every message of a trace, a line each, for people and for grep."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from console import raw
from decode.ntrace.options import Options
from session import capture as capture_file
from session import harts
from session.captured import CapturedSink
from session.ranges import Cursor, RangeError
from views import dump

_UNBOUNDED = 1 << 62
_PIECE = 1 << 16


class _Trace(NamedTuple):
    """The bytes of one sink, in pieces, and how to read them."""

    name: str
    data: Iterable[bytes]
    options: Options
    xlen: int
    wrapped: bool


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """The command line of `rvtrace dump`."""
    parser = subparsers.add_parser(
        "dump",
        help="list the messages in a capture file or in raw N-Trace bytes",
        usage="%(prog)s FILE [A,B | A,+N | A,-N | N] [--offset BYTE] [--raw] [--src N] [options]",
        description="Prints every message, one a line: number, byte offset, name, the fields as sent (I-CNT=3), what"
        " they stand for (addr=0x80000000 hist=TTN time=90), and after # the meaning. Filling and bytes that are no"
        " message are lines too. No program is needed.",
    )
    parser.add_argument("file", metavar="FILE", help='a capture, or raw bytes with --ntrace; "-": standard input')
    parser.add_argument(
        "range", nargs="?", default="", metavar="RANGE",
        help="numbers of the messages to show; default: all",
    )  # fmt: skip
    parser.add_argument(
        "--offset", type=raw.number_up_to(1 << 62), metavar="BYTE", help="begin with the message this byte is part of"
    )
    parser.add_argument("--raw", action="store_true", help="the bytes of each message, too (RAW=...)")
    raw.add_arguments(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the messages. Raises CaptureError, RawError, Unsupported, NoTrace, RangeError."""
    everything = Cursor().select(args.range, None, _UNBOUNDED)
    numbers = range(everything.begin, everything.end)
    traces = list(_traces(args))
    for trace in traces:
        if len(traces) > 1:
            print(f"sink {trace.name}:", file=sys.stderr)
        _print(trace, numbers, args)
    return 0


def _print(trace: _Trace, numbers: range, args: argparse.Namespace) -> None:
    shown = count = 0
    for number, item, line in dump.lines(trace.data, trace.options, trace.xlen, wrapped=trace.wrapped, raw=args.raw):
        count = number
        if number >= numbers.stop:
            return
        if number < numbers.start or (args.offset is not None and item.end <= args.offset):
            continue
        shown += 1
        if args.src is None or (item.message is not None and item.message.src == args.src):
            sys.stdout.write(line + "\n")
    if not shown and (numbers.start > 1 or args.offset is not None):
        raise RangeError(f"{trace.name} has nothing there: it has {count} messages")


def _traces(args: argparse.Namespace) -> Iterator[_Trace]:
    if raw.is_raw(args, also_for_captures=("src",)):
        yield _Trace(args.file, raw.pieces(args.file), raw.options(args), args.xlen or 64, args.wrapped)
        return
    capture = capture_file.load(args.file)
    for sink in capture.sinks:
        options = harts.options_of(harts.feeding(sink, capture.encoders))
        yield _Trace(sink.in_force.name, _pieces(sink), options, capture.xlen, sink.wrapped)


def _pieces(sink: CapturedSink) -> Iterator[bytes]:
    """In pieces, so that the first lines come at once."""
    for start in range(0, len(sink.data), _PIECE):
        yield sink.data[start : start + _PIECE]
