"""`rvtrace log`: what a dprintf would have printed, as `trace log` in gdb."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.lists import ListError
from rvtrace_gdb.console.commands.shown_list import ShownTrace, print_harts
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.locations import LocationError, Locations
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import say_about_trace
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows.log_text import LogArguments, log_arguments
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.queries.lists.history_part import HistoryPart
from rvtrace_gdb.session.rpc.lists import log
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.session import Session

EXAMPLES = (
    ("log demo.rvt fib n", "the argument of each call of fib, behind its prologue"),
    ("log demo.rvt demo.c:36 'i, sum' --if 'sum==100'", "two variables each time that line ran with that sum"),
    ("log demo.rvt classify '\"value %#x\"' value", "with a format, as dprintf in gdb takes it"),
    ("log demo.rvt on_trap '$mcause' '$sp' 1,10", "registers, the first ten times"),
)


@dataclass(frozen=True)
class LogCommandLine:
    """What the command line asks for. *hart*: None: all. *part*: of the history; *since*: from this instruction on."""

    trace: RequestedTrace
    where: str
    arguments: LogArguments
    hart: int | None
    part: HistoryPart
    since: int | None


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace log`."""
    parser.usage = "%(prog)s FILE WHERE EXPR ... [RANGE] [--if COND] [--hart N] [options]"
    parser.description = (
        "Prints what a dprintf at WHERE would have printed, each time it ran, as `trace log` does in gdb: the values of"
        " expressions at that moment of the past. What is not known is shown so. EXPR: variables, members, indices,"
        " casts, registers, with the operators of C; or a format in quotes, and expressions."
    )
    inputs.add_capture(parser)
    where = "FUNCTION, FILE:FUNCTION, FILE:LINE, ADDRESS, *FUNCTION (its first instruction), or ADDRESS,ADDRESS"
    parser.add_argument("where", metavar="WHERE", help=where)
    expressions = (
        "/LETTER as for print, expressions (or several with commas), `if` and a condition; then, if any, a RANGE of the"
        " rows: A,B or A,+N or A,-N, or A for all from A on"
    )
    parser.add_argument("expression", metavar="EXPR", nargs="+", help=expressions)
    parser.add_argument("--if", dest="condition", default="", metavar="COND", help="only where this holds")
    add_part(parser, "what ran there")
    trace_answer.add_arguments(parser, "each row", EXAMPLES, run)


def add_part(parser: CommandParser, what: str) -> None:
    """Add which part of which history counts, for lists with values. *what*: is shown of it."""
    parser.add_argument("--range", dest="part", default="", metavar="A,B", help=f"only {what}: these instructions")
    ticks = f"only {what}: at this time, or from one time to another, in ticks of the trace"
    parser.add_argument("--time", default="", metavar="T[,T]", help=ticks)
    number, hart = inputs.number_from(1, (1 << 63) - 1), inputs.number_from(0, (1 << 32) - 1)
    since = "only what is at or after this instruction of the history"
    parser.add_argument("--from", dest="since", type=number, metavar="N", help=since)
    parser.add_argument("--hart", type=hart, metavar="N", help="the hart (default: all harts)")
    values = (
        "what is reconstructed of a trace that has only addresses: registers and memory (on, the default), registers"
        " alone, or nothing"
    )
    parser.add_argument("--values", choices=("on", "registers", "off"), default="on", help=values)


def run(args: argparse.Namespace) -> int:
    """Print the log. Raises ListError, LocationError, BadQuery, RangeError, BadTime, and as `raw.trace_request`,
    `Session.open_capture` and `Session.harts`.
    """
    given = logged(args.expression, args.condition)
    if args.since is not None and given.numbers:
        raise ListError("give --from N or a RANGE, not both")
    part = HistoryPart(args.part, args.time)
    part.check(1)
    request = LogCommandLine(raw.trace_request(args, args.capture), args.where, given, args.hart, part, args.since)
    _print(request, OutputOptions.from_arguments(args), args.values)
    return 0


def logged(words: list[str], condition: str = "") -> LogArguments:
    """Return what is logged: each word may have several expressions. Raises ListError."""
    turn = words[-1] if len(words) > 1 and words[-1] in ("-", "+") else ""
    words = words[:-1] if turn else words
    texts, in_condition = [words[0]], False
    for word in words[1:]:
        in_condition = in_condition or word.split()[:1] == ["if"]
        is_joined = in_condition or texts[-1].startswith("/") or log_arguments(f"x {word}").numbers
        texts.append(f" {word}" if is_joined else f", {word}")
    given = log_arguments("".join(texts))
    if condition and given.condition:
        raise ListError(f"--if {condition}, and `if {given.condition}`: give one condition")
    if not given.expressions or "" in given.expressions:
        raise ListError("what is to be logged? Expressions, or a format in quotes and expressions")
    return given._replace(condition=condition or given.condition, numbers=turn or given.numbers)


def _print(request: LogCommandLine, options: OutputOptions, values: str) -> None:
    with CommandOutput(options, "reading the trace") as shown:
        session = Session()
        decoded = say_about_trace(request.trace, session, shown)
        harts = shown_harts(decoded, request.hart)
        request.part.check(len(harts))
        each = (ShownTrace(session, decoded, shown, hart, len(harts) > 1) for hart in harts)
        print_harts(shown, each, lambda hart: _lines(hart, request, values))


def shown_harts(decoded: Decoded, hart: int | None) -> list[int]:
    """Return the harts that are shown: *hart*, None: all."""
    if hart is not None:
        return [decoded.harts.number(hart)]
    found = decoded.harts.histories
    return [it for it in sorted(found) if len(found) == 1 or len(found[it])]


def _lines(shown: ShownTrace, request: LogCommandLine, values: str) -> Iterator[str]:
    given, part = request.arguments, request.part
    return shown.lines(
        "log",
        where=searched_place(request.where, shown.image, shown.session, shown.hart),
        context={"hart": shown.hart, "values": values},
        args=given.numbers,
        since=request.since,
        expressions=given.expressions,
        condition=given.condition,
        letter=given.letter,
        numbers=part.numbers,
        time=part.time,
    )


def searched_place(where: str, image: Image, session: Session, hart: int | None = None) -> dict[str, Any]:
    """Return the parameters of a search for a place, also of a function that is part of others (inlined). Raises
    LocationError.
    """
    of_hart = Params({"context": {"hart": hart}}, "rvtrace")
    try:
        found = Locations(image).search(where)
    except LocationError:
        inlined = log.inlined_places(session, of_hart, where)
        if not inlined:
            raise
        return {"name": where, "first": inlined[0], "others": inlined[1:]}
    if found.get("function"):
        found["others"] = log.inlined_places(session, of_hart, where)
    return found
