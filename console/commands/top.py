"""`rvtrace top`: what runs most, while it runs: a table of what a trace probe delivers, drawn again and again."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.decode import follow
from rvtrace_gdb.console.commands.decode.follow import OpenedStream, StreamOutput
from rvtrace_gdb.console.commands.decode.follow_output import size, summary
from rvtrace_gdb.console.commands.decode.request import DecodeRequest, StreamOptions
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.output import OutputOptions, text_of
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.reports.profile.growing import GrowingProfile
from rvtrace_gdb.rows.top_rows import TOP_ROWS, TopTable
from rvtrace_gdb.rows.top_text import top_fields, top_lines
from rvtrace_gdb.session.formats.stream import Arrived, StreamCounts
from rvtrace_gdb.session.queries.reports.top import TopTables
from rvtrace_gdb.support import colours
from rvtrace_gdb.support.files import protect_inputs
from rvtrace_gdb.support.text import RowPiece, columns, json_line, printable
from rvtrace_gdb.views.text_rows import Modifiers

_PAUSE = 0.2  # seconds between two tables
_WRAP_OFF, _WRAP_ON = "\033[?7l", "\033[?7h"  # a long line must not become two, of which one would stay
_SHARE = 4  # times what a table costs pass before the next one, so that decoding has most of the time

EXAMPLES = (
    ("top tcp:probe:5555 --ntrace --src-bits 2 --elf app.elf", "what a probe delivers"),
    ("top /dev/ttyUSB0 --baud 3000000 --settings settings.rvt", "with the settings of a session"),
    ("top - --etrace --elf app.elf --json", "standard input; objects for a program"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace top`."""
    parser.usage = (
        "%(prog)s SOURCE (--ntrace | --etrace | --tandem | --settings RVT)\n"
        "                   [--elf FILE] [options]"
    )
    parser.description = (
        "Shows what runs most while it runs: functions, edges between basic blocks, traps, and what is missing, with"
        " how often so far and how often a second since the table before. On a terminal the table is drawn at most"
        " five times a second; in a pipe it is printed once, at the end. Up to the end of SOURCE, or Ctrl-C."
    )
    what = 'delivers raw bytes: a growing file, a named pipe, a serial device, tcp:HOST:PORT, unix:PATH, "-"'
    parser.add_argument("capture", metavar="SOURCE", help=what)
    hart = inputs.number_from(0, (1 << 32) - 1)
    parser.add_argument("--hart", type=hart, metavar="N", help="this hart alone (default: all harts together)")
    rows = inputs.number_from(0, (1 << 31) - 1)
    help_of_top = f"rows of each section (default {TOP_ROWS}; on a terminal as many as fit), 0: all"
    parser.add_argument("--top", type=rows, default=TOP_ROWS, metavar="N", help=help_of_top)
    parser.add_argument("--baud", type=inputs.number_from(1, 1 << 31), metavar="N", help="speed of a serial device")
    parser.add_argument("-o", "--output", metavar="FILE.rvt", help="also save the bytes as a capture")
    trace_answer.add_arguments(parser, "each table, at most five a second", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Show tables up to the end. Raises RawError, OutputError, FollowError, and as `raw.trace_request`."""
    protect_inputs(args.output, [args.capture, args.settings, *args.elf])
    trace = raw.trace_request(args, args.capture, options_first=True)
    if trace.raw is None:
        raise inputs.RawError(
            "top: how were the bytes encoded? Give --ntrace, --etrace or --tandem, or --settings FILE.rvt; of a"
            " capture, `rvtrace report` says what ran most"
        )
    options = OutputOptions.from_arguments(args)
    request = DecodeRequest(trace, options, Modifiers(), "", args.hart, True, False, None)
    return follow.run_with(
        request, StreamOptions(args.baud, args.output), lambda opened: _output(options, args.top, opened)
    )


def _output(options: OutputOptions, top: int, opened: OpenedStream) -> StreamOutput:
    tables = StreamTables(opened.contexts, options, top)
    return StreamOutput(tables, TopScreen(opened.name, tables, options))


class StreamTables:
    """The tables of what arrives. *options*: as text, or as JSON."""

    def __init__(self, program: ContextImages, options: OutputOptions, top: int) -> None:
        self._growing, self._top, self._start = GrowingProfile(program), top, time.monotonic()
        self._json, self._paint = options.json, options.paint()
        self._tables = TopTables(self._start, top)
        self._next = self._start + _PAUSE

    def pieces_of(self, arrived: Arrived) -> Iterator[RowPiece]:
        """Add a piece of a hart's history; yield a table as JSON, if that is asked for and it is time."""
        self._growing.add(arrived.hart, arrived.piece)
        if self._json and self.is_time():
            yield self._object(self.next_table(), {})

    def is_time(self) -> bool:
        """Return whether the next table is due."""
        return time.monotonic() >= self._next

    def next_table(self) -> TopTable:
        """Return the table of now."""
        began = time.monotonic()
        found = self._tables.table_at(self._growing.profile, began)
        ended = time.monotonic()
        self._next = ended + max(_PAUSE, _SHARE * (ended - began))
        return found

    def text(self, about: str, width: int, height: int) -> RowPiece:
        """Return the table of now below a line, as much of it as a terminal has room for."""
        lines = [printable(about), *top_lines(self.next_table(), self)][: max(height - 1, 1)]
        return self._piece_of([colours.beginning(line, width - 1) for line in lines])

    def paint(self, what: str, text: str) -> str:
        """Return a text in its colour."""
        return self._paint(what, printable(text))

    def end(self, counts: StreamCounts, why: str) -> Iterator[RowPiece]:
        """Yield the last table: its figures are those of everything that arrived. Its rates are of the whole run."""
        table = TopTables(self._start, self._top).table_at(self._growing.profile, time.monotonic())
        if self._json:
            yield self._object(table, {"why": why, "bytes": counts.bytes})
            return
        yield self._piece_of(list(top_lines(table, self)))

    def _object(self, table: TopTable, more: dict[str, object]) -> RowPiece:
        return self._piece_of([json_line({**top_fields(table), **more})])

    def _piece_of(self, lines: list[str]) -> RowPiece:
        return RowPiece(text_of(lines, self._paint).encode(), len(lines))


class TopScreen:
    """Draws tables on the terminal that is standard output, if this process is in its foreground."""

    def __init__(self, name: str, tables: StreamTables, options: OutputOptions) -> None:
        self._name, self._tables = name, tables
        dumb = os.environ.get("TERM", "dumb") in ("", "dumb")
        self._able = not (options.json or options.quiet or dumb or sys.stdout.closed) and sys.stdout.isatty()
        self._drawn = 0

    def show(self, counts: StreamCounts, waiting: int, *, ending: bool) -> None:
        """Draw the table, if it is time. *waiting*: the bytes that wait to be decoded; *ending*: nothing arrives."""
        if not self._able or not self._tables.is_time() or os.tcgetpgrp(1) != os.getpgrp():
            return
        end = "ending" if ending else "Ctrl-C ends"
        rest = f"; {size(waiting)} to decode" if waiting > 1 << 16 else ""
        about = f"{summary(counts)}{rest}; {end} ({self._name})"
        piece = self._tables.text(about, *shutil.get_terminal_size())
        sys.stdout.write(f"{self._cleared()}{_WRAP_OFF}{piece.text.decode()}{_WRAP_ON}")
        sys.stdout.flush()
        self._drawn = piece.number

    def clear(self) -> None:
        """Erase the table."""
        if self._drawn:
            sys.stdout.write(self._cleared())
            sys.stdout.flush()

    def _cleared(self) -> str:
        """Return what erases the table, after which there is none."""
        drawn, self._drawn = self._drawn, 0
        return f"\033[{drawn}A\r\033[J" if drawn else ""

    def say(self, lines: Iterable[str]) -> None:
        """Print lines on standard error."""
        for line in lines:
            self.clear()
            print(columns(line), file=sys.stderr, flush=True)
