"""`rvtrace pgo`: write what a compiler or a linker takes to make the program faster, from one capture or several."""

import argparse
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple

from rvtrace_gdb.console import output
from rvtrace_gdb.console.captures import readers
from rvtrace_gdb.console.captures.readers import Readers
from rvtrace_gdb.console.captures.reading import read_captures
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import inputs, raw
from rvtrace_gdb.console.options.request import LoadedTrace, RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.reports.pgo.program_counts import ProgramCounts, program_counts
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.reports.profile.sums import sum_of
from rvtrace_gdb.session import report
from rvtrace_gdb.session.exports.pgo.forms import FORMS, PgoError, PgoProfile, form_named
from rvtrace_gdb.session.exports.pgo.gcda import gcda_profile
from rvtrace_gdb.session.queries.program_counts import profiles_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.files import protect_inputs

GCDA = "gcda"
"""The form that needs a compiler's notes, too."""
EXAMPLES = (
    ("pgo demo.rvt --to llvm -o demo.prof", "for clang -fprofile-sample-use=demo.prof"),
    ("pgo demo.rvt --to symbol-order -o demo.order", "for ld.lld --symbol-ordering-file demo.order"),
)


@dataclass(frozen=True)
class PgoRequest:
    """What is asked for: the profile of all *traces* together, in a *form*, in the file *output*.

    *hart*: None: all. *by*: who reads several traces. *program*: the name of the program's file, "" if only one ran.
    *notes*: the .gcno of `GCDA`.
    """

    traces: tuple[RequestedTrace, ...]
    hart: int | None
    by: Readers
    form: str
    output: str
    program: str
    notes: str


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace pgo`."""
    parser.usage = "%(prog)s FILE ... --to NAME -o OUT [--hart N]\n                   [--program NAME] [options]"
    parser.description = (
        "Writes what compilers and linkers take to make a program faster, from what the harts ran. "
        + " ".join(f"{form.name}: {form.help}." for form in FORMS)
        + f" {GCDA}: the counts of a source file, for gcc -fprofile-use."
        + " Several captures of the same program add up; its build-id is compared."
    )
    what = 'captures, or raw bytes with --ntrace, --etrace or --tandem; "-": standard input'
    parser.add_argument("captures", nargs="+", metavar="FILE", help=what)
    names = [*(form.name for form in FORMS), GCDA]
    parser.add_argument("--to", required=True, choices=names, metavar="NAME", help="the form, one of the names above")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help='the file to write; "-": standard output')
    hart = inputs.number_from(0, (1 << 32) - 1)
    parser.add_argument("--hart", type=hart, metavar="N", help="the hart (default: all)")
    parser.add_argument("--program", default="", metavar="NAME", help="the file, where several programs ran")
    notes = f"with --to {GCDA}: GCC's notes of the source file, written by -ftest-coverage"
    parser.add_argument("--gcno", default="", metavar="NOTES", help=notes)
    readers.add_arguments(parser)
    output.add_arguments(parser, "what was written")
    inputs.add_program_arguments(parser)
    raw.add_arguments(parser)
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the profile. Raises PgoError, OutputError, and as `raw.trace_request` and `read_captures`."""
    request = _request(args)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        profile, elves = _profile_of_traces(request, shown)
        program = _chosen(program_counts(profile, elves), request.program)
        gaps = sum(hart.gaps for hart in profile.harts)
        if request.form == GCDA and gaps:
            raise PgoError(f"the trace has {gaps} gaps: the counts of arcs are not determined (docs/pgo.md)")
        is_gcda = request.form == GCDA
        written = gcda_profile(program, request.notes) if is_gcda else form_named(request.form).make(program)
        missing = [f"the trace has {gaps} gaps: what ran there is not counted"] if gaps else []
        with shown.file(request.output) as (file, _):
            file.write(written.content)
        notes = [*written.notes, *report.notes(missing)]
        if shown.json:
            shown.facts(_facts(request, program, written, gaps, notes))
        else:
            shown.say([*notes, _written_line(request, program, written)])
    return 0


def _request(args: argparse.Namespace) -> PgoRequest:
    if args.json and args.output == "-":
        raise PgoError("--json and -o - would both write to standard output")
    if bool(args.gcno) != (args.to == GCDA):
        raise PgoError(f"--to {GCDA} and --gcno NOTES belong together")
    protect_inputs(args.output, [*args.captures, *args.elf, *([args.gcno] if args.gcno else [])])
    traces = tuple(raw.trace_request(args, file) for file in args.captures)
    return PgoRequest(traces, args.hart, Readers.from_arguments(args), args.to, args.output, args.program, args.gcno)


class CountedRuns(NamedTuple):
    """The profiles of the harts of a trace, its programs, and the lines that the user gets about it."""

    profiles: list[Profile]
    elves: list[Elf]
    lines: list[str]


class CountedTrace(NamedTuple):
    """A trace whose instructions are to be counted. *hart*: None: all."""

    trace: RequestedTrace | LoadedTrace
    hart: int | None
    reads_sources: bool = False

    def with_trace(self, trace: LoadedTrace) -> "CountedTrace":
        """Return the same of a trace that has been loaded."""
        return self._replace(trace=trace)

    def read(self, progress: Progress = silent) -> CountedRuns:
        """Read the trace. Raises as `RequestedTrace.open` and `Session.harts`."""
        session = Session()
        about = self.trace.open(session)
        found = profiles_of(session, self.hart, progress)
        decoded = session.harts(progress=progress)
        lines = [*about, *report.histories(decoded.harts), *session.warnings()]
        return CountedRuns(found, [elf for elf, _ in decoded.image.elves], lines)


def _profile_of_traces(request: PgoRequest, shown: CommandOutput) -> tuple[Profile, list[Elf]]:
    """Return the sum of what ran, and the programs. Raises PgoError: the captures have no program in common."""
    profiles: list[Profile] = []
    elves: list[Elf] = []
    common: set[str] | None = None
    counted = [CountedTrace(trace, request.hart) for trace in request.traces]
    for trace, found in zip(request.traces, read_captures(counted, request.by, shown.progress), strict=True):
        elves += found.elves
        shown.say(found.lines)
        ran = {program.identity for profile in found.profiles for program in profile.programs}
        common = ran if common is None else common & ran
        if len(request.traces) > 1 and not common:
            raise PgoError(f"{trace.name}: ran another program than {request.traces[0].name}, which does not add up")
        profiles += found.profiles
    protect_inputs(request.output, [elf.path for elf in elves])
    return sum_of(profiles), elves


def _chosen(programs: list[ProgramCounts], name: str) -> ProgramCounts:
    """Return the program that is meant. Raises PgoError: none, or which one is not said."""
    ran = [program for program in programs if program.ran]
    if name:
        ran = [program for program in ran if name in (program.elf.path, PurePath(program.elf.path).name)]
    if len(ran) == 1:
        return ran[0]
    if ran:
        names = ", ".join(sorted({PurePath(program.elf.path).name for program in ran}))
        raise PgoError(f"several programs ran: say which one (--program NAME): {names}")
    raise PgoError(f"{name}: no such program ran" if name else "nothing ran of a program that is known (--elf FILE)")


def _written_line(request: PgoRequest, program: ProgramCounts, written: PgoProfile) -> str:
    functions = "" if written.functions is None else f" of {written.functions} functions"
    where = "standard output" if request.output == "-" else request.output
    name = Path(program.elf.path).name
    return f"{where}: {request.form}, {sum(program.ran.values())} instructions{functions} of {name}"


def _facts(
    request: PgoRequest, program: ProgramCounts, written: PgoProfile, gaps: int, notes: list[str]
) -> dict[str, object]:
    functions = {} if written.functions is None else {"functions": written.functions}
    return {
        "file": request.output, "format": request.form, "program": program.elf.path, **functions,
        "instructions": sum(program.ran.values()), "gaps": gaps, "messages": list(map(str, notes)),
    }  # fmt: skip
