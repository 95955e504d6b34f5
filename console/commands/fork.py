"""`rvtrace fork`: how far the simulated hart follows a trace, from a place of it on; `trace fork -check` in gdb."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import part, raw, trace_answer
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import ShellText, parts_of_text, say_about_trace
from rvtrace_gdb.rows.fork_rows import ForkCheck
from rvtrace_gdb.rows.fork_text import fork_check_fields, fork_check_lines
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.fork.check import fork_checks
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.text import json_line

EXAMPLES = (
    ("fork demo.rvt", "how far the simulated hart does what was traced"),
    ("fork demo.rvt 1200 --through-devices", "from number 1200 on, and on when a device is read"),
)


@dataclass(frozen=True)
class _ForkRequest:
    """What the command line asks for. *hart*: None: all; *numbers*: a RANGE, "" for everything."""

    trace: RequestedTrace
    hart: int | None
    numbers: str
    through_devices: bool


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace fork`."""
    parser.usage = "%(prog)s FILE [RANGE] [--hart N] [--through-devices] [options]"
    parser.description = (
        "Runs the program again on the simulated hart, from a place of the past on with the registers and the memory"
        " that are known there, and says how far it does what was traced, and why it leaves the trace: at the first"
        " read of a device, or where it would depend on a value that is not known. It checks the values of the past:"
        " where they were wrong, the hart would go elsewhere. In gdb `trace fork` makes such a fork to try things in."
    )
    part.add_arguments(parser, "from which instruction to which: A, A,B or A,+N or A,-N (default: all)")
    parser.add_argument(
        "--through-devices", action="store_true",
        help="go on over reads of devices: what they read is what the trace knows of it, else it is unknown",
    )  # fmt: skip
    trace_answer.add_arguments(parser, "each hart", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print how far forks follow the trace. Raises NoRange, NoFork, RangeError, and as `raw.trace_request` and
    `Session.harts`.
    """
    numbers = part.checked_range(args.part)
    request = _ForkRequest(raw.trace_request(args, args.capture), args.hart, numbers, args.through_devices)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session = Session()
        say_about_trace(request.trace, session, shown)
        found = fork_checks(
            session, Context(hart=request.hart), request.numbers, shown.progress,
            through_devices=request.through_devices,
        )  # fmt: skip
        shown.rows(_fork_lines(found, shown))
    return 0


def _fork_lines(each: Sequence[ForkCheck], shown: CommandOutput) -> Iterator[str]:
    if shown.json:
        yield from (json_line(fork_check_fields(it)) for it in each)
        return
    symbols = ShellText(shown)
    yield from parts_of_text(fork_check_lines(one, symbols, several=len(each) > 1) for one in each)
