"""`rvtrace pgo`: write what a compiler or a linker takes to make the program faster, from one capture or several."""

import argparse
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.console.captures import readers
from rvtrace_gdb.console.captures.profiled_pieces import profiles_in_pieces
from rvtrace_gdb.console.captures.readers import Readers, ReadWhole
from rvtrace_gdb.console.captures.reading import read_captures
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.request import LoadedTrace, RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.reports.profile.sums import sum_of
from rvtrace_gdb.session import report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports.pgo.forms import PgoError
from rvtrace_gdb.session.exports.pgo.profile import GCDA, HELP, PgoChoice, made_profile
from rvtrace_gdb.session.queries.coverage.program_counts import CountedHarts, counted_harts
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.files import protect_inputs

EXAMPLES = (
    ("pgo demo.rvt --to llvm -o demo.prof", "for clang -fprofile-sample-use=demo.prof"),
    ("pgo demo.rvt --to symbol-order -o demo.order", "for ld.lld --symbol-ordering-file demo.order"),
)


@dataclass(frozen=True)
class PgoRequest:
    """What is asked for: the profile of all *traces* together, as it is chosen, in the file *output*.

    *hart*: None: all. *by*: who reads several traces.
    """

    traces: tuple[RequestedTrace, ...]
    hart: int | None
    by: Readers
    choice: PgoChoice
    output: str


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace pgo`."""
    parser.usage = "%(prog)s FILE ... --to NAME -o OUT [--hart N]\n                   [--program NAME] [options]"
    parser.description = (
        "Writes what compilers and linkers take to make a program faster, from what the harts ran. "
        + " ".join(f"{name}: {text}." for name, text in HELP.items())
        + " Several captures of the same program add up; its build-id is compared."
    )
    what = 'captures, or raw bytes with --ntrace, --etrace or --tandem; "-": standard input'
    parser.add_argument("captures", nargs="+", metavar="FILE", help=what)
    form = "the form, one of the names above"
    parser.add_argument("--to", required=True, choices=list(HELP), metavar="NAME", help=form)
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help='the file to write; "-": standard output')
    hart = inputs.number_from(0, (1 << 32) - 1)
    parser.add_argument("--hart", type=hart, metavar="N", help="the hart (default: all)")
    parser.add_argument("--program", default="", metavar="NAME", help="the file, where several programs ran")
    notes = f"with --to {GCDA}: GCC's notes of the source file, written by -ftest-coverage"
    parser.add_argument("--gcno", default="", metavar="NOTES", help=notes)
    readers.add_arguments(parser)
    trace_answer.add_arguments(parser, "what was written", EXAMPLES, run, color=False)


def run(args: argparse.Namespace) -> int:
    """Write the profile. Raises PgoError, OutputError, and as `raw.trace_request` and `read_captures`."""
    request = _request(args)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        counted = _counted_traces(request, shown)
        made = made_profile(sum_of(counted.profiles), counted.elves, counted.contexts, request.choice)
        with shown.file(request.output) as (file, _):
            file.write(made.content)
        if shown.json:
            shown.facts(made.written_facts(request.output))
        else:
            shown.say(made.summary_lines("standard output" if request.output == "-" else request.output))
    return 0


def _request(args: argparse.Namespace) -> PgoRequest:
    if args.json and args.output == "-":
        raise PgoError("--json and -o - would both write to standard output")
    choice = PgoChoice(args.to, args.program, args.gcno)
    choice.check()
    protect_inputs(args.output, [*args.captures, *args.elf, *([args.gcno] if args.gcno else [])])
    traces = tuple(raw.trace_request(args, file) for file in args.captures)
    return PgoRequest(traces, args.hart, Readers.from_arguments(args), choice, args.output)


class CountedRuns(NamedTuple):
    """What the harts of a trace ran, and the lines that the user gets about the trace."""

    harts: CountedHarts
    lines: list[str]


class CountedTrace(NamedTuple):
    """A trace whose instructions are to be counted, on a *hart*, None: all, and, if it *has_contexts*, by contexts."""

    trace: RequestedTrace | LoadedTrace
    hart: int | None
    has_contexts: bool
    reads_sources: bool = False

    def with_trace(self, trace: LoadedTrace) -> "CountedTrace":
        """Return the same of a trace that has been loaded."""
        return self._replace(trace=trace)

    def read(self, progress: Progress = silent) -> CountedRuns:
        """Read the trace. Raises as `RequestedTrace.open` and `Session.harts`."""
        session = Session()
        about = self.trace.open(session)
        found = counted_harts(session, self.hart, progress, has_contexts=self.has_contexts)
        lines = [*about, *report.histories(session.harts(progress=progress).harts), *session.warnings()]
        return CountedRuns(found, lines)

    def read_by(self, by: Readers, progress: Progress) -> CountedRuns:
        """Read the trace in pieces. Raises as `profiles_in_pieces`."""
        if self.has_contexts:
            raise ReadWhole("profiles with call contexts are of its whole history")
        found = profiles_in_pieces(self.trace.loaded(), self.hart, "", by, progress, sized=False)
        decoded = found.session.harts(progress=progress)
        for number in found.profiles:
            found.session.selected_or_empty(Context(hart=number), progress)
        lines = [*found.about, *report.histories(decoded.harts), *found.session.warnings()]
        return CountedRuns(CountedHarts(list(found.profiles.values()), decoded.program.elves, []), lines)


def _counted_traces(request: PgoRequest, shown: CommandOutput) -> CountedHarts:
    """Return what ran in all traces. Raises PgoError: the captures have no program in common."""
    total = CountedHarts([], [], [])
    common: set[str] | None = None
    counted = [CountedTrace(trace, request.hart, request.choice.has_contexts) for trace in request.traces]
    results = read_captures(counted, request.by, shown.progress, lambda why: shown.say(report.notes([why])))
    for trace, found in zip(request.traces, results, strict=True):
        shown.say(found.lines)
        ran = {program.identity for profile in found.harts.profiles for program in profile.programs}
        common = ran if common is None else common & ran
        if len(request.traces) > 1 and not common:
            raise PgoError(f"{trace.name}: ran another program than {request.traces[0].name}, which does not add up")
        total.add(found.harts)
    protect_inputs(request.output, [elf.path for elf in total.elves])
    return total
