"""`rvtrace itc`: what programs wrote into their trace, as a console log."""

import argparse
from collections.abc import Iterator

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.decode import follow
from rvtrace_gdb.console.commands.decode.follow import OpenedStream, StreamOutput
from rvtrace_gdb.console.commands.decode.follow_output import FollowStatus
from rvtrace_gdb.console.commands.decode.request import DecodeRequest, StreamOptions
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.output import CommandOutput, OutputOptions, text_of
from rvtrace_gdb.rows.itc_rows import ItcRow
from rvtrace_gdb.rows.itc_text import itc_fields, itc_line
from rvtrace_gdb.session import report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.formats.stream import Arrived, StreamCounts
from rvtrace_gdb.session.queries.itc import ConsoleLog, console_log, formats_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.files import protect_inputs
from rvtrace_gdb.support.text import RowPiece, json_line, printable
from rvtrace_gdb.views.text_rows import Modifiers

EXAMPLES = (
    ("itc demo.rvt", "what the program wrote, line by line"),
    ("itc raw.rtd --ntrace --elf app.elf --channel 0", "of raw bytes, one channel alone"),
    ("itc --follow /dev/ttyUSB0 --baud 3000000 --settings settings.rvt", "as a probe delivers it"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace itc`."""
    parser.usage = "%(prog)s FILE [--channel N] [--hart N] [--follow] [options]"
    parser.description = (
        "Prints what programs wrote into their trace (ITC, the instrumentation trace component: DataAcquisition"
        " messages of N-Trace), as a console log: a line for each line of text, with its channel and the times of its"
        " first and last write. What is not text is shown as values."
    )
    what = 'a capture, or raw bytes with --ntrace; "-": standard input'
    parser.add_argument("capture", metavar="FILE", help=what)
    number = inputs.number_from(0, (1 << 32) - 1)
    parser.add_argument("--channel", type=number, metavar="N", help="this channel alone (default: all)")
    parser.add_argument("--hart", type=number, metavar="N", help="this hart alone (default: all harts)")
    follow.add_arguments(parser)
    trace_answer.add_arguments(parser, "each line", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print the log. Raises RawError, NoTrace, FollowError, and as `raw.trace_request`."""
    if args.follow:
        return run_following(args)
    if args.output is not None or args.baud is not None:
        raise inputs.RawError("--output and --baud belong to --follow")
    request = raw.trace_request(args, args.capture)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session = Session()
        about = request.open(session)
        decoded = session.harts(progress=shown.progress)
        hint = hints_of_history(session.capture(), decoded, shown.progress)
        shown.say([*about, *report.histories(decoded.harts), *session.warnings(), *hint])
        found = console_log(session, Context(hart=args.hart), args.channel, shown.progress)
        several = args.hart is None and len(decoded.harts.histories) > 1
        shown.rows(_log_line(row, shown, several=several) for row in found)
    return 0


def _log_line(row: ItcRow, shown: CommandOutput, *, several: bool) -> str:
    if shown.json:
        return json_line(itc_fields(row))
    return itc_line(row._replace(text=printable(row.text)), shown.paint, several=several)


def run_following(args: argparse.Namespace) -> int:
    protect_inputs(args.output, [args.capture, args.settings, *args.elf])
    trace = raw.trace_request(args, args.capture, options_first=True)
    if trace.raw is None:
        raise inputs.RawError("itc --follow: how were the bytes encoded? Give --ntrace, or --settings FILE.rvt")
    options = OutputOptions.from_arguments(args)
    request = DecodeRequest(trace, options, Modifiers(), "", args.hart, True, False, None)

    def output_of(opened: OpenedStream) -> StreamOutput:
        return StreamOutput(_FollowedLog(opened, options, args.channel), FollowStatus(opened.name, not options.quiet))

    return follow.run_with(request, StreamOptions(args.baud, args.output), output_of)


class _FollowedLog:
    """The log of what arrives."""

    def __init__(self, opened: OpenedStream, options: OutputOptions, channel: int | None) -> None:
        self._formats, self._channel = formats_of(opened.contexts.all_programs), channel
        self._json, self._paint, self._several = options.json, options.paint(), opened.several
        self._logs: dict[int, ConsoleLog] = {}

    def pieces_of(self, arrived: Arrived) -> Iterator[RowPiece]:
        """Yield the lines that what arrived completes."""
        log = self._logs.get(arrived.hart)
        if log is None:
            log = self._logs[arrived.hart] = ConsoleLog(arrived.hart, self._formats, self._channel)
        yield from self._row_pieces(log.rows(arrived.piece.fresh))

    def end(self, counts: StreamCounts, why: str) -> Iterator[RowPiece]:
        """Yield the lines that nothing has ended."""
        for hart in sorted(self._logs):
            yield from self._row_pieces(self._logs[hart].end())

    def _row_pieces(self, rows: Iterator[ItcRow]) -> Iterator[RowPiece]:
        for row in rows:
            if self._json:
                line = json_line(itc_fields(row))
            else:
                line = itc_line(row._replace(text=printable(row.text)), self._paint, several=self._several)
            yield RowPiece(text_of([line], self._paint).encode(), 1)
