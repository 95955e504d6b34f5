"""`rvtrace data`: list the accesses to memory in a trace, as `trace data` does in gdb."""

import argparse
from collections.abc import Iterator, Mapping

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.options.locations import memory_place
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session import report
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.queries.lists.search import no_access_message, no_accesses_error
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.views import json_rows, text_rows


class DataError(RvtraceError):
    """Arguments of `rvtrace data` that make no sense."""


EXAMPLES = (
    ("data demo.rvt", "every load and store in the trace"),
    ("data demo.rvt counter", "those of the variable `counter`"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace data`."""
    parser.usage = "%(prog)s FILE [ADDRESS[,SIZE] | SYMBOL] [--hart N] [options]"
    parser.description = (
        "Prints the loads, stores and other accesses that an encoder with data trace has sent: number, instruction,"
        " access. Only E-Trace and tandem traces have them."
    )
    what = 'a capture, or raw bytes with --etrace or --tandem; "-": standard input'
    parser.add_argument("capture", metavar="FILE", help=what)
    parser.add_argument(
        "where", nargs="?", metavar="PLACE",
        help="only accesses to this memory: ADDRESS (one byte), ADDRESS,SIZE or a symbol of the program",
    )  # fmt: skip
    parser.add_argument(
        "--hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N", help="the hart to list (default: all harts)",
    )  # fmt: skip
    trace_answer.add_arguments(parser, "each access", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print the accesses. Raises as `raw.trace_request`, `Session.open_capture` and `Session.harts`, and DataError."""
    request = raw.trace_request(args, args.capture)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session = Session()
        about = request.open(session)
        decoded = session.harts(progress=shown.progress)
        hint = hints_of_history(session.capture(), decoded, shown.progress)
        found = decoded.harts.histories
        if args.hart is not None:
            found = {args.hart: found[decoded.harts.number(args.hart)]}
        shown.say([*about, *report.histories(decoded.harts), *session.warnings(), *hint])
        if not any(history.accesses for history in found.values()):
            raise no_accesses_error(next(iter(found.values())))
        where = None if args.where is None else _memory_place(args.where, decoded.program.all_programs)
        if not shown.rows(_access_rows(found, decoded, where, shown)) and where is not None:
            shown.say([no_access_message((access for history in found.values() for access in history.accesses), where)])
    return 0


def _access_rows(
    histories: Mapping[int, History], decoded: Decoded, where: tuple[int, int] | None, shown: CommandOutput
) -> Iterator[str]:
    for hart, history in histories.items():
        if shown.json:
            yield from json_rows.accesses(hart, history, decoded.program, where)
            continue
        before = f"hart {hart}\t" if len(histories) > 1 else ""
        yield from (before + line for line in text_rows.access_lines(history, decoded.program, where, shown.paint))


def _memory_place(text: str, image: Image) -> tuple[int, int]:
    """Return (address, size) of a place in memory. Raises DataError and LocationError."""
    found = memory_place(text, image)
    if found is None or found[1] <= 0:
        raise DataError(f"{text}: neither ADDRESS, nor ADDRESS,SIZE, nor a symbol of {image.path}")
    return found
