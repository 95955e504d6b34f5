"""`rvtrace calls-of`: each call of a function, as `trace calls-of` in gdb."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.lists import ListError
from rvtrace_gdb.console.commands.log import add_part, shown_harts
from rvtrace_gdb.console.commands.shown_list import ShownTrace, print_harts
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.locations import Locations
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import say_about_trace
from rvtrace_gdb.session.queries.lists.history_part import HistoryPart
from rvtrace_gdb.session.session import Session

EXAMPLES = (
    ("calls-of demo.rvt fib", "each call of fib: who called it, n, what it returned, how long it took"),
    ("calls-of demo.rvt util.c:update 1,10", "the first ten calls of one of several functions of that name"),
    ("calls-of demo.rvt on_trap --time 1000,2000", "the calls that began then, in ticks of the trace"),
)


@dataclass(frozen=True)
class CallsOfArguments:
    """What the command line asks for. *hart*: None: all. *numbers*: a RANGE of the rows; *part*: of the history."""

    trace: RequestedTrace
    function: str
    numbers: str
    hart: int | None
    part: HistoryPart
    since: int | None
    values: str


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace calls-of`."""
    parser.usage = "%(prog)s FILE FUNCTION [RANGE] [--hart N] [options]"
    parser.description = (
        "Prints each call of a function, as `trace calls-of` does in gdb: from where, its arguments by name, what it"
        " returned, how many instructions (and ticks) it took, and what it called. What is not known is shown so."
    )
    inputs.add_capture(parser)
    parser.add_argument("function", metavar="FUNCTION", help="FUNCTION, or FILE:FUNCTION")
    rows = "numbers of this list: A,B or A,+N or A,-N, or A for all from A on (default: all)"
    parser.add_argument("range", nargs="?", default="", metavar="RANGE", help=rows)
    add_part(parser, "calls that begin there")
    trace_answer.add_arguments(parser, "each call", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print the calls. Raises ListError, LocationError, BadQuery, RangeError, BadTime, and as `raw.trace_request`,
    `Session.open_capture` and `Session.harts`.
    """
    if args.since is not None and args.range:
        raise ListError("give --from N or a RANGE, not both")
    part = HistoryPart(args.part, args.time)
    part.check(1)
    request = CallsOfArguments(
        raw.trace_request(args, args.capture), args.function, args.range, args.hart, part, args.since, args.values
    )
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session = Session()
        decoded = say_about_trace(request.trace, session, shown)
        harts = shown_harts(decoded, request.hart)
        part.check(len(harts))
        each = (ShownTrace(session, decoded, shown, hart, len(harts) > 1) for hart in harts)
        print_harts(shown, each, lambda hart: _lines(hart, request))
    return 0


def _lines(shown: ShownTrace, request: CallsOfArguments) -> Iterator[str]:
    return shown.lines(
        "calls_of",
        where=Locations(shown.image).search(request.function),
        context={"hart": shown.hart, "values": request.values},
        args=request.numbers,
        since=request.since,
        numbers=request.part.numbers,
        time=request.part.time,
    )
