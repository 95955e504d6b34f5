"""`rvtrace diff`: where two runs part, and what differs after that, as `trace diff` in gdb."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.lists import ListError
from rvtrace_gdb.console.commands.shown_list import ShownTrace
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import PAGE, CommandOutput, OutputOptions
from rvtrace_gdb.rows import diff_text
from rvtrace_gdb.rows.harts_text import numbers_text
from rvtrace_gdb.rows.list_text import row_fields, row_line
from rvtrace_gdb.session import report
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.questions.divergence.question import HartComparison, compared_trace
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.text import json_line

DIFFERENT, UNSURE = 3, 4
"""The exit statuses: the runs part; it cannot be told, because nothing could be compared, or trace is lost."""

EXAMPLES = (
    ("diff good.rvt bad.rvt", "where the runs part, what was tested there, and all that differs"),
    ("diff good.rvt bad.rvt 1,20 --hart 1", "the first 20 stretches that differ, of hart 1"),
    ("diff old.rvt new.rvt --json", "two builds of a program, by functions and lines; for programs"),
)


@dataclass(frozen=True)
class DiffRequest:
    """What the command line asks for. *hart*: None: all; *other_hart*: None: those of the same numbers."""

    trace: RequestedTrace
    other: RequestedTrace
    hart: int | None
    other_hart: int | None
    range: str


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace diff`."""
    parser.usage = "%(prog)s A B [RANGE] [--hart N] [--other-hart N] [options]"
    parser.description = (
        "Compares two runs: where they part first, what the last instruction of both tested, where each went on; and"
        " the stretches that differ after that, as `trace diff` does in gdb. Interrupts are set aside, and so are lost"
        " trace and how often a loop went round that waits. Two builds of a program are compared by functions and"
        f" source lines. Exit status: 0 the runs are the same as far as both traces go, {DIFFERENT} they part,"
        f" {UNSURE} it cannot be told."
    )
    what = 'a capture, or raw bytes with --ntrace, --etrace or --tandem; "-": standard input'
    parser.add_argument("capture", metavar="A", help=what)
    parser.add_argument("other", metavar="B", help="the other one, read in the same way")
    text = "numbers of the list of differences: A,B or A,+N or A,-N, or A for all from A on (default: all)"
    parser.add_argument("range", nargs="?", default="", metavar="RANGE", help=text)
    hart = inputs.number_from(0, (1 << 32) - 1)
    parser.add_argument("--hart", type=hart, metavar="N", help="the hart (default: all harts, each with its own)")
    parser.add_argument("--other-hart", type=hart, metavar="N", help="the hart of B (default: of the same number)")
    parser.add_argument("--other-elf", metavar="FILE", help="the program of B (default: the one it names, or --elf)")
    trace_answer.add_arguments(parser, "each hart, and for each stretch that differs", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print where the runs part. Raises ListError, RangeError, NotComparable, and as `raw.trace_request`,
    `Session.open_capture` and `Session.harts`.
    """
    if args.capture == args.other == "-":
        raise ListError("- and -: standard input is one trace")
    if args.other_hart is not None and args.hart is None:
        raise ListError("--other-hart N: is compared with which hart of A? (--hart N)")
    elf = {} if args.other_elf is None else {"elf": [args.other_elf]}
    other = argparse.Namespace(**{**vars(args), **elf})
    request = DiffRequest(
        raw.trace_request(args, args.capture), raw.trace_request(other, args.other), args.hart, args.other_hart,
        args.range,
    )  # fmt: skip
    return _print(request, OutputOptions.from_arguments(args))


class _OpenedTrace(NamedTuple):
    """A trace that was read."""

    session: Session
    decoded: Decoded
    name: str


def _print(request: DiffRequest, options: OutputOptions) -> int:
    with CommandOutput(options, "reading the traces") as shown:
        one, other = _opened_trace(request.trace, shown), _opened_trace(request.other, shown)
        harts = _harts(request, one.decoded, other.decoded)
        missing = sorted(set(one.decoded.harts.histories) ^ set(other.decoded.harts.histories))
        if request.hart is None and missing and len(harts) > 1:
            shown.say(report.notes([f"harts that only one of them has: {numbers_text(missing)}"]))
        return max(_print_hart(one, other, pair, request.range, shown, len(harts) > 1) for pair in harts)


def _opened_trace(trace: RequestedTrace, shown: CommandOutput) -> _OpenedTrace:
    session = Session()
    about = trace.open(session)
    decoded = session.harts(progress=shown.progress)
    shown.say([*about, *report.histories(decoded.harts), *session.warnings()])
    return _OpenedTrace(session, decoded, trace.name)


def _harts(request: DiffRequest, one: Decoded, other: Decoded) -> Sequence[tuple[int, int]]:
    """Return the harts that are compared, of both."""
    if request.hart is not None:
        number = one.harts.number(request.hart)
        return [(number, number if request.other_hart is None else other.harts.number(request.other_hart))]
    found = sorted(hart for hart, history in one.harts.histories.items() if len(history))
    both = [hart for hart in found if len(other.harts.histories.get(hart, ()))]
    return [(hart, hart) for hart in both] or [(next(iter(one.harts.histories)), next(iter(other.harts.histories)))]


def _print_hart(
    one: _OpenedTrace, other: _OpenedTrace, pair: tuple[int, int], numbers: str, shown: CommandOutput, is_one: bool
) -> int:
    """Print the comparison of a hart, and return the exit status."""
    mine = compared_trace(one.session, pair[0], one.name, shown.progress)
    found = HartComparison(mine, compared_trace(other.session, pair[1], other.name, shown.progress), shown.progress)
    answer = found.answer(shown.progress)
    trace = ShownTrace(one.session, one.decoded, shown, pair[0], is_one)
    shown.rows(_lines(found, trace, numbers))
    if answer.first is not None:
        return DIFFERENT
    return UNSURE if answer.begin is None or answer.lost else 0


def _lines(comparison: HartComparison, trace: ShownTrace, numbers: str) -> Iterator[str]:
    answer, as_json = comparison.answer(), trace.output.json
    if as_json:
        yield json_line(diff_text.fields(answer, trace))
    else:
        yield from diff_text.lines(answer, trace)
    selection = comparison.select(numbers, PAGE.get() or len(comparison))
    for row in comparison.rows(selection.begin, selection.end):
        yield trace.line(row, row_fields, lambda row, symbols: row_line(row, symbols))
