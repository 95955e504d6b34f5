"""`rvtrace coverage` by source files, of one capture or several: the table, files for other programs, and limits."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.console.captures import readers
from rvtrace_gdb.console.captures.covered_pieces import coverage_in_pieces
from rvtrace_gdb.console.captures.packed_sources import PackedSources
from rvtrace_gdb.console.captures.readers import Readers, ReadWhole
from rvtrace_gdb.console.captures.reading import read_captures
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import raw
from rvtrace_gdb.console.options.request import LoadedTrace, RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage, merged
from rvtrace_gdb.reports.coverage.source_coverage import FileCoverage, source_coverage
from rvtrace_gdb.reports.coverage.totals import Share
from rvtrace_gdb.session import report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.exports.coverage.covered_sources import of_files
from rvtrace_gdb.session.exports.coverage.forms import FORMS, write_sources
from rvtrace_gdb.session.queries.coverage.program_coverage import MEASURES, coverage_of, totals, unknown_counts
from rvtrace_gdb.session.queries.lists.pages import Cursor
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.files import protect_inputs
from rvtrace_gdb.support.text import counted, json_line, printable, warning

BELOW, UNSURE = 3, 4
"""The exit statuses of --fail-under: the share is below it; it cannot be told, because of what is unknown."""


class CoverageError(RvtraceError):
    """Captures or arguments that make no sense together."""


@dataclass(frozen=True)
class CoverageRequest:
    """What is requested: the coverage of all *traces* together.

    *hart*: None: all. *by*: who reads several traces. *form*, *output*: the export that is written, and its file, ""
    for none. *least*: the least percentage of a *measure*, None: no limit.
    """

    traces: tuple[RequestedTrace, ...]
    hart: int | None
    range: str
    by: Readers
    form: str
    output: str
    measure: str
    least: float | None


def add_arguments(parser: CommandParser) -> None:
    """Add the options of coverage by source files."""
    group = parser.add_argument_group("coverage by source files, of all harts")
    group.add_argument("--files", action="store_true", help="how much of each source file ran, instead of functions")
    more = "add further captures of the same program (by build-id)"
    group.add_argument("--merge", nargs="+", default=[], metavar="FILE", help=more)
    readers.add_arguments(group)
    group.add_argument("--to", choices=FORMS, default="", help="write the coverage in this form, too")
    group.add_argument("-o", "--output", default="", metavar="OUT", help="the file of --to")
    least = f"exit status {BELOW} if less is covered, {UNSURE} if gaps leave it open whether it is"
    group.add_argument("--fail-under", type=_percentage, metavar="PERCENT", help=least)
    group.add_argument("--of", choices=MEASURES, help="what --fail-under is about (default: lines)")


def run_if_requested(args: argparse.Namespace) -> int | None:
    """Print the table, and write the file, if the command line asks for coverage by source files; else return None.

    Raises CoverageError, RangeError, OutputError, and as `raw.trace_request` and `read_captures`.
    """
    if not (args.files or args.merge or args.to or args.output or args.of or args.fail_under is not None):
        if Readers.from_arguments(args) != Readers():
            raise CoverageError("--jobs and --cluster are for coverage by source files: add --files, or --merge FILE")
        return None
    request = _request(args)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        files = list(source_coverage(_programs(request, shown), shown.progress).values())
        shown.rows(_lines(files, shown))
        unknown = unknown_counts(totals(files))
        shown.say(report.notes(f"unknown: {number} {what}" for what, number in unknown.items() if number))
        left = sum(it.covered is None for file in files for it in file.decisions)
        shown.say(report.notes([f"not determined: the conditions of {counted(left, 'decision')}"] if left else []))
        if request.form:
            with shown.file(request.output) as (file, _):
                written = write_sources(request.form, of_files(files), file)
            shown.say(written.summary(request.form, request.output)[-1:])
        return 0 if request.least is None else _limit_status(files, request.measure, request.least, shown)


def _percentage(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text}: not a percentage, 0 to 100")
    return value


def _request(args: argparse.Namespace) -> CoverageRequest:
    if bool(args.to) != bool(args.output):
        raise CoverageError("--to NAME and -o OUT belong together")
    if args.of and args.fail_under is None:
        raise CoverageError(f"--of {args.of}: says what --fail-under PERCENT is about, which is not given")
    if args.range and args.merge:
        raise CoverageError("a RANGE is of one capture, and --merge adds others")
    if args.output == "-":
        raise CoverageError("-o -: the table is written to standard output; `rvtrace export` writes the form alone")
    if args.output:
        protect_inputs(args.output, [args.capture, *args.merge, *args.elf])
    traces = tuple(raw.trace_request(args, file) for file in (args.capture, *args.merge))
    return CoverageRequest(
        traces, args.hart, args.range, Readers.from_arguments(args), args.to, args.output, args.of or "lines",
        args.fail_under,
    )  # fmt: skip


def _programs(request: CoverageRequest, shown: CommandOutput) -> list[ProgramCoverage]:
    """Return the coverage of the programs of all traces. Raises CoverageError: one has another program."""
    found: list[ProgramCoverage] = []
    first = None
    covered = [CoveredTrace(trace, request.hart, request.range) for trace in request.traces]
    results = read_captures(covered, request.by, shown.progress, lambda why: shown.say(report.notes([why])))
    sources = PackedSources()
    for trace, (programs, lines, packed) in zip(request.traces, results, strict=True):
        shown.say(lines)
        sources.add(trace.name, packed)
        if request.output:
            protect_inputs(request.output, [program.elf.path for program in programs])
        if first is not None and programs and programs[0].identity != first.identity:
            other, this = (f"{name} ({_short(it)})" for name, it in (
                (request.traces[0].name, first), (trace.name, programs[0])
            ))  # fmt: skip
            raise CoverageError(f"{this}: ran another program than {other}, runs of different programs do not add up")
        first = first or next(iter(programs), None)
        found += programs
    shown.say(sources.used())
    return merged(found)


def _short(program: ProgramCoverage) -> str:
    kind, _, digits = program.identity.partition(" ")
    return f"{kind} {digits[:12]}"


class CoveredPrograms(NamedTuple):
    """The coverage of the programs of a trace, and the lines that the user gets about it. *sources*: where the sources
    are that came with it, by their paths.
    """

    programs: list[ProgramCoverage]
    lines: list[str]
    sources: Mapping[str, str]


class CoveredTrace(NamedTuple):
    """A trace whose coverage is asked for. *hart*: None: all; *range*: "" for all of it."""

    trace: RequestedTrace | LoadedTrace
    hart: int | None
    range: str
    reads_sources: bool = True
    """For the conditions of decisions."""

    def with_trace(self, trace: LoadedTrace) -> "CoveredTrace":
        """Return the same of a trace that has been loaded."""
        return self._replace(trace=trace)

    def read(self, progress: Progress = silent) -> CoveredPrograms:
        """Read the trace. Raises CoverageError, RangeError, and as `RequestedTrace.open` and `Session.harts`."""
        session = Session()
        about = self.trace.open(session)
        decoded = session.harts(progress=progress)
        numbers = [decoded.harts.number(self.hart)] if self.hart is not None else sorted(decoded.harts.histories)
        if self.range and len(numbers) > 1:
            raise CoverageError("a RANGE has the numbers of one hart, and there are several: say which one (--hart N)")
        found: list[ProgramCoverage] = []
        for hart in numbers:
            selected = session.selected_or_empty(Context(hart=hart), progress)
            chosen = Cursor().select(self.range, None, len(selected.history)) if self.range else None
            part = None if chosen is None else range(chosen.begin - 1, chosen.end - 1)
            found += coverage_of(session, selected, part, progress, conditions=self.reads_sources)
        return _covered(session, merged(found), about, decoded)

    def read_by(self, by: Readers, progress: Progress) -> CoveredPrograms:
        """Read the trace in pieces. Raises as `coverage_in_pieces`."""
        if self.range:
            raise ReadWhole(f"a RANGE ({self.range}) is of its whole history")
        session, about, programs = coverage_in_pieces(self.trace.loaded(), self.hart, by, progress)
        return _covered(session, programs, about, session.harts(progress=progress))


def _covered(
    session: Session, programs: list[ProgramCoverage], about: Sequence[str], decoded: Decoded
) -> CoveredPrograms:
    unpacked = session.capture().unpacked
    lines = [*about, *report.histories(decoded.harts), *session.warnings()]
    return CoveredPrograms(programs, lines, {} if unpacked is None else unpacked.sources)


class _FileRow(NamedTuple):
    name: str
    shares: dict[str, Share]


def _lines(files: Sequence[FileCoverage], shown: CommandOutput) -> Iterator[str]:
    rows = [_FileRow(file.path, file.shares()) for file in files]
    if shown.json:
        for row in rows:
            yield json_line({"file": row.name, **_fields(row.shares)})
        yield json_line({"total": _fields(totals(files))})
        return
    yield shown.paint("heading", "".join(f"{measure:>14}" for measure in MEASURES) + "  file")
    for row in [*rows, _FileRow("all files", totals(files))]:
        shares = "".join(_share_text(row.shares[measure], shown) for measure in MEASURES)
        yield f"{shares}  {printable(row.name)}"


def _fields(shares: dict[str, Share]) -> dict[str, object]:
    return {measure: share._asdict() for measure, share in shares.items()}


def _share_text(share: Share, shown: CommandOutput) -> str:
    """Return covered/known and the percentage, rounded down, with "?" where some are unknown."""
    percent = share.percent()
    if not share.total:
        return f"{'-':>13} "
    mark = "?" if share.unknown else " "
    text = f"{share.covered}/{share.determined} {'-' if percent is None else int(percent):>3}%{mark}"
    return shown.paint("gap", f"{text:>14}") if not share.covered else f"{text:>14}"


def _limit_status(files: Sequence[FileCoverage], measure: str, least: float, shown: CommandOutput) -> int:
    """Say whether a limit is kept, and return the exit status."""
    share = totals(files)[measure]
    low, high = share.bounds()
    unknown = f", {share.unknown} are unknown" if share.unknown else ""
    what = f"{share.covered} of {share.determined} {measure} are covered{unknown}"
    percent = f"{low:.1f}%" if not share.unknown else f"{low:.1f}% to {high:.1f}%"
    if low >= least:
        shown.say([f"{what}: {percent}, {least:g}% are needed"])
        return 0
    shown.say([warning(f"{what}: {percent}, {least:g}% are needed{', which is open' if high >= least else ''}")])
    return UNSURE if high >= least else BELOW
