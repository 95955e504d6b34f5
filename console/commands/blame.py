"""`rvtrace blame`: which lines and branches tell bad runs from good ones."""

import argparse
import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rvtrace_gdb.console.captures import readers
from rvtrace_gdb.console.captures.readers import Readers
from rvtrace_gdb.console.captures.reading import read_captures
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.source_coverage import CoveredTrace
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage
from rvtrace_gdb.rows import blame_text
from rvtrace_gdb.rows.blame_rows import BlameAnswer
from rvtrace_gdb.session.questions.blame.ranking import blame
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import json_line

TOP = 20
EXAMPLES = (
    ("blame --good 'ok*.rvt' --bad 'fail*.rvt'", "what failing runs did rather than the others"),
    ("blame --good a.rvt b.rvt --bad c.rvt --top 5", "the first five, of three captures"),
)


class BlameError(RvtraceError):
    """Captures that make no sense together."""


@dataclass(frozen=True)
class BlameRequest:
    """What the command line asks for. *hart*: None: all; *top*: how many rows of a kind, 0: all."""

    good: tuple[RequestedTrace, ...]
    bad: tuple[RequestedTrace, ...]
    hart: int | None
    by: Readers
    top: int


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace blame`."""
    parser.usage = "%(prog)s --good FILE ... --bad FILE ... [--top N] [options]"
    parser.description = (
        "Ranks source lines and branches of a program by how much they tell bad runs from good ones (Ochiai): first"
        " what all bad runs ran and no good one. It is a hint where to look first, no proof. A run in which lost trace"
        " hides whether a line ran does not count for that line. All captures are of the same program, by its build-id."
    )
    pattern = "captures, or patterns of their names in quotes"
    parser.add_argument("--good", nargs="+", required=True, metavar="FILE", help=f"{pattern}: of runs that were right")
    parser.add_argument("--bad", nargs="+", required=True, metavar="FILE", help="the same of runs that were not")
    number = inputs.number_from(0, (1 << 31) - 1)
    parser.add_argument("--top", type=number, default=TOP, metavar="N", help=f"rows (default {TOP}); 0: all")
    parser.add_argument(
        "--hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N", help="the hart (default: all together)"
    )
    readers.add_arguments(parser)
    trace_answer.add_arguments(parser, "each row, and one for the numbers of runs", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print the ranking. Raises BlameError, and as `raw.trace_request` and `read_captures`."""
    good, bad = _files_of(args.good), _files_of(args.bad)
    both = sorted(set(map(os.path.realpath, good)) & set(map(os.path.realpath, bad)))
    if both:
        raise BlameError(f"{both[0]}: is among the good captures and among the bad ones")
    traces = [tuple(raw.trace_request(args, file) for file in files) for files in (good, bad)]
    request = BlameRequest(traces[0], traces[1], args.hart, Readers.from_arguments(args), args.top)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the traces") as shown:
        answer = _blame_answer(request, shown)
        shown.rows(_lines(answer, request.top, shown))
    return 0


def _files_of(words: Sequence[str]) -> list[str]:
    """Return the files that names and patterns mean, each once. Raises BlameError: a pattern means none."""
    files: list[str] = []
    for word in words:
        matching = [word] if os.path.exists(word) or not glob.has_magic(word) else sorted(glob.glob(word))
        if not matching:
            raise BlameError(f"{word}: there is no such capture")
        files += matching
    return list(dict.fromkeys(files))


def _blame_answer(request: BlameRequest, shown: CommandOutput) -> BlameAnswer:
    """Return the ranking. Raises BlameError: a capture is of another program."""
    traces = [CoveredTrace(trace, request.hart, "", reads_sources=False) for trace in (*request.bad, *request.good)]
    runs: list[ProgramCoverage] = []
    for trace, found in zip(traces, read_captures(traces, request.by, shown.progress), strict=True):
        shown.say(found.lines)
        if not found.programs:
            raise BlameError(f"{trace.trace.name}: nothing of a program ran there")
        runs.append(found.programs[0])
        if runs[-1].identity != runs[0].identity:
            names = f"{trace.trace.name} is of another program than {traces[0].trace.name}"
            raise BlameError(f"{names}: lines of different builds are not those of one program")
    return blame(runs[len(request.bad) :], runs[: len(request.bad)], shown.progress)


def _lines(answer: BlameAnswer, top: int, shown: CommandOutput) -> Iterator[str]:
    if not shown.json:
        yield from blame_text.lines(answer, top, shown.paint)
        return
    for row in (*answer.suspects, *answer.missing):
        yield json_line(blame_text.fields(row))
    yield json_line({"good-runs": answer.good, "bad-runs": answer.bad, "unknown-lines": answer.unknown})
