"""`rvtrace who-wrote` and `rvtrace values`: registers and memory of the past, outside gdb.

They answer what gdb's commands of these names answer, about a capture file or raw trace bytes. What is not known is
`<unavailable>`, and has no field in JSON. `query` is what both are asked with, `writers` and `values` answer it.
"""

import argparse
from dataclasses import replace

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.past.query import PastRequest, answer_request
from rvtrace_gdb.console.commands.past.values import value_rows
from rvtrace_gdb.console.commands.past.writers import writer_rows
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.value_places import WORDS
from rvtrace_gdb.console.output import OutputOptions

CHOICES = ("on", "registers", "off")

EXAMPLES = {
    "who-wrote": (
        ("who-wrote demo.rvt ticks", "the store that last changed the variable `ticks`"),
        ("who-wrote demo.rvt '$a0' --at 1200 --count 3", "the last three writes to a0 before instruction 1200"),
    ),
    "values": (
        ("values demo.rvt", "how much is known of registers and memory, and why not more"),
        ("values demo.rvt --at 1200", "the registers before instruction 1200"),
        ("values demo.rvt ticks 0x80001000,64 --at 1200", "a variable, and 64 bytes of memory"),
    ),
}


def _add_common(parser: CommandParser, name: str, of_json: str, run: trace_answer.Runner) -> None:
    parser.add_argument(
        "--at", type=inputs.number_from(1, (1 << 63) - 1), metavar="N",
        help="before this instruction of the history (default: at its end)",
    )  # fmt: skip
    parser.add_argument(
        "--hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N", help="the hart (default: first)"
    )
    parser.add_argument(
        "--values", choices=CHOICES, default="on",
        help="what is reconstructed of a trace that has only addresses: registers and memory (on, the default),"
        " registers alone, or nothing",
    )  # fmt: skip
    trace_answer.add_arguments(parser, of_json, EXAMPLES[name], run)


def add_who_wrote(parser: CommandParser) -> None:
    """Define the command line of `rvtrace who-wrote`."""
    parser.usage = "%(prog)s FILE PLACE [--at N] [--count N] [--hart N] [options]"
    parser.description = (
        "Prints which instruction wrote a register or some memory last, as `trace who-wrote` does in gdb. PLACE:"
        " $REGISTER, an expression of the program (a variable, member or element), ADDRESS, or ADDRESS,SIZE."
    )
    inputs.add_capture(parser)
    parser.add_argument("place", metavar="PLACE", help=WORDS)
    parser.add_argument(
        "--count", type=inputs.number_from(1, 1 << 20), default=1, metavar="N",
        help="and who wrote it before that: N writers",
    )  # fmt: skip
    _add_common(parser, "who-wrote", "each writer", run_who_wrote)


def add_values(parser: CommandParser) -> None:
    """Define the command line of `rvtrace values`."""
    parser.usage = "%(prog)s FILE [PLACE ...] [--at N] [--hart N] [options]"
    parser.description = (
        "Prints how much is known of registers and memory in the past, from what, and why not more, as `trace values`"
        " does in gdb. With --at N: the registers before that instruction; with PLACE: registers or memory. PLACE:"
        " $REGISTER, an expression of the program (a variable, member or element), ADDRESS, or ADDRESS,SIZE."
    )
    inputs.add_capture(parser)
    parser.add_argument("place", nargs="*", metavar="PLACE", help=WORDS)
    parser.add_argument("--all", action="store_true", help="with --at N: list registers that are not known, too")
    _add_common(parser, "values", "each register or piece of memory, or for the summary", run_values)


def run_who_wrote(args: argparse.Namespace) -> int:
    """Print who wrote a place. Raises PastError, and as `raw.trace_request` and `Session.selected`."""
    return answer_request(writer_rows, _request(args, (args.place,), args.count))


def run_values(args: argparse.Namespace) -> int:
    """Print values of the past. Raises PastError, and as `raw.trace_request` and `Session.selected`."""
    return answer_request(value_rows, replace(_request(args, tuple(args.place)), all=args.all))


def _request(args: argparse.Namespace, places: tuple[str, ...], count: int = 1) -> PastRequest:
    trace, options = raw.trace_request(args, args.capture), OutputOptions.from_arguments(args)
    return PastRequest(trace, args.capture, options, args.hart, args.at, places, args.values, count)
