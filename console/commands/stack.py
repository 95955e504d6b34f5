"""`rvtrace stack`: how deep the stacks of a program were, as `trace stack` says it in gdb."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import inputs, part, raw, trace_answer
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import ShellText, parts_of_text, say_about_trace
from rvtrace_gdb.rows.stack_rows import StackDepth
from rvtrace_gdb.rows.stack_text import SHOWN, stack_fields, stack_lines
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.stack.depth import stack_depths
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.text import json_line

EXAMPLES = (
    ("stack demo.rvt", "how deep the stacks were, and what took them"),
    ("stack demo.rvt 1,5000 --top 0", "the same of a part of what ran, with all frames and functions"),
)


@dataclass(frozen=True)
class StackRequest:
    """What the command line asks for. *hart*: None: all; *numbers*: a RANGE, "" for
    everything; *top*: how many frames and functions are shown, 0: all.
    """

    trace: RequestedTrace
    hart: int | None
    numbers: str
    top: int


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace stack`."""
    parser.usage = "%(prog)s FILE [RANGE] [--hart N] [options]"
    parser.description = (
        "Says how deep the stack was: of each area that sp was in, how much of it was used, by trap levels; the chain"
        " of calls at the deepest place with the size of each frame; and the functions with the largest frames. As"
        " `trace stack` does in gdb."
    )
    part.add_arguments(parser, f"look at these instructions alone: {part.RANGE_FORMS}")
    parser.add_argument(
        "--top", type=inputs.number_from(0, 1 << 31), default=SHOWN, metavar="N",
        help=f"how many frames and functions of a stack are shown, 0: all (default: {SHOWN})",
    )  # fmt: skip
    trace_answer.add_arguments(parser, "each hart", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print how deep the stacks were. Raises NoRange, RangeError, and as `raw.trace_request` and `Session.harts`."""
    request = StackRequest(raw.trace_request(args, args.capture), args.hart, part.checked_range(args.part), args.top)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session = Session()
        say_about_trace(request.trace, session, shown)
        found = stack_depths(session, Context(hart=request.hart), request.numbers, shown.progress)
        shown.rows(_stack_lines(found, shown, request.top))
    return 0


def _stack_lines(each: Sequence[StackDepth], shown: CommandOutput, top: int) -> Iterator[str]:
    if shown.json:
        yield from (json_line(stack_fields(it)) for it in each)
        return
    symbols = ShellText(shown)
    yield from parts_of_text(stack_lines(one, symbols, several=len(each) > 1, most=top) for one in each)
