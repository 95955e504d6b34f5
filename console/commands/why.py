"""`rvtrace why`: why values of the past are what they are, outside gdb.

It answers what gdb's command `trace why` answers, about a capture file or raw trace bytes.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.shown_list import ShownTrace
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.options.value_places import WORDS, PlaceText, value_place
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import say_about_trace
from rvtrace_gdb.decode.history.positions import history_position
from rvtrace_gdb.rows.why_text import rounds_hint
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.why.answer import DEPTH
from rvtrace_gdb.session.rpc.lists.why import WhyPage
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable

EXAMPLES = (
    ("why demo.rvt ticks", "what made the variable `ticks` what it is at the end"),
    ("why demo.rvt '$a0' --at 1200 --branches", "and what let that run, before instruction 1200"),
)


class WhyError(RvtraceError):
    """Arguments that name nothing of this trace."""


@dataclass(frozen=True)
class WhyRequest:
    """What a command line asks. *file* and *places*: as they were typed. *at*: before this instruction, None: at the
    end.
    """

    trace: RequestedTrace
    file: str
    output: OutputOptions
    hart: int | None
    at: int | None
    places: tuple[str, ...]
    branches: bool
    thin: bool
    depth: int


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace why`."""
    parser.usage = "%(prog)s FILE EXPR ... [--at N] [--branches] [--depth N] [options]"
    parser.description = (
        "Prints why values of the past are what they are, as `trace why` does in gdb: what wrote them, the values that"
        " used, and where those came from, down to constants, inputs, or the edge of what is known. EXPR: $REGISTER, an"
        " expression of the program, ADDRESS, or ADDRESS,SIZE."
    )
    inputs.add_capture(parser)
    parser.add_argument("place", nargs="+", metavar="EXPR", help=WORDS)
    parser.add_argument(
        "--at", type=inputs.number_from(1, (1 << 63) - 1), metavar="N",
        help="before this instruction of the history (default: at its end)",
    )  # fmt: skip
    parser.add_argument("--branches", action="store_true", help="also which branches let it run, with their values")
    parser.add_argument("--thin", action="store_true", help="without what addresses and indices were made of")
    parser.add_argument(
        "--depth", type=inputs.number_from(1, 1000), default=DEPTH, metavar="N", help=f"levels (default {DEPTH})"
    )
    parser.add_argument(
        "--hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N", help="the hart (default: first)"
    )
    trace_answer.add_arguments(parser, "each value, and each branch", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print the answers. Raises WhyError, PlaceError, and as `raw.trace_request` and `Session.selected`."""
    return _print_answers(
        WhyRequest(
            raw.trace_request(args, args.capture), args.capture, OutputOptions.from_arguments(args), args.hart,
            args.at, tuple(args.place), args.branches, args.thin, args.depth,
        )
    )  # fmt: skip


def _print_answers(request: WhyRequest) -> int:
    with CommandOutput(request.output, "reading the trace") as shown:
        session = Session()
        decoded = say_about_trace(request.trace, session, shown)
        selected = session.selected(Context(hart=request.hart), shown.progress)
        length = len(selected.history)
        if request.at is not None and request.at > length:
            raise WhyError(f"--at {request.at}: the history has the numbers 1 to {length}")
        trace = ShownTrace(session, decoded, shown, selected.hart, is_one_of_several=False)
        for text in request.places:
            shown.rows(_answer_rows(trace, request, text))
    return 0


def _answer_rows(trace: ShownTrace, request: WhyRequest, text: str) -> Iterator[str]:
    options = {"branches": request.branches or None, "thin": request.thin or None, "depth": request.depth}
    given = _place_parameters(trace, request, text)
    yield from trace.lines("why", name=printable(text), at=request.at, anew=True, **given, **options)
    if not trace.output.json:
        page, _ = WhyPage.requested(trace.session, trace.params(what="why"), trace.output.progress)
        hint = rounds_hint(page.rows, f"rvtrace log {printable(request.file)} ")
        trace.output.say([hint] if hint else [])


def _place_parameters(trace: ShownTrace, request: WhyRequest, text: str) -> Mapping[str, object]:
    """Return a place as the parameters of the list. Raises PlaceError."""
    session = trace.session
    selected = session.selected(Context(hart=trace.hart), trace.output.progress)
    position = len(selected.history) if request.at is None else history_position(request.at)
    named = PlaceText(text, trace.image, printable(request.file))
    return value_place(session, selected, named, position, trace.output.progress)
