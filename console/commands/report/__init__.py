"""`rvtrace report`: where the instructions and the time of a trace went, as `trace report` prints it in gdb."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from rvtrace_gdb.console.captures import readers
from rvtrace_gdb.console.captures.readers import Readers
from rvtrace_gdb.console.captures.reading import read_captures
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.report.captures import ProfiledTrace
from rvtrace_gdb.console.commands.report.page import check_page, write_page
from rvtrace_gdb.console.help_pages import THREADS, group_of
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.part import is_range
from rvtrace_gdb.console.options.threads import TITLE, add_threads, threads_asked_for
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import ShellText, parts_of_text
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.rows.report_rows import DEPTH, INTERVALS, SECTIONS, TOP, USUAL, ProfileReport
from rvtrace_gdb.rows.report_text import report_fields, report_lines
from rvtrace_gdb.rows.sampled_rows import SampledReport
from rvtrace_gdb.rows.sampled_text import sampled_fields, sampled_lines
from rvtrace_gdb.session.queries.reports.report import ReportChoice, reports
from rvtrace_gdb.session.queries.reports.sampled import merged_reports
from rvtrace_gdb.session.report import notes
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import json_line

EXAMPLES = (
    ("report demo.rvt", "everything, ten rows of each"),
    ("report demo.rvt functions lines --top 20", "the hottest functions and lines"),
    ("report demo.rvt 1,1000 calls", "who called whom in the first 1000 instructions"),
    ("report demo.rvt --html demo.html", "timeline, flame graph, source and tables, for a browser"),
    ("report a.rvt --merge b.rvt c.rvt", "of three runs together"),
)


class ReportError(RvtraceError):
    """Arguments of `rvtrace report` that make no sense."""


@dataclass(frozen=True)
class ReportRequest:
    """What the command line asks for. *by*: who reads several traces; *html*: the file of the page, "" for rows."""

    traces: tuple[ProfiledTrace, ...]
    choice: ReportChoice
    by: Readers
    html: str = ""


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace report`."""
    parser.usage = "%(prog)s FILE [RANGE] [SECTION ...] [--html OUT] [options]"
    parser.description = (
        "Prints where the instructions, and the time where the trace has it, went: the functions and the tree of calls,"
        " the hottest source lines, basic blocks, edges between them and branches, the traps with how long handlers"
        " took, and what is missing. Of all harts together, as `trace report` does in gdb."
    )
    inputs.add_capture(parser)
    parser.add_argument(
        "part", nargs="*", metavar="SECTION",
        help=f"what is shown: {', '.join(SECTIONS)} (default: all but intervals); or a RANGE, the instructions that"
        " count: A,B or A,+N or A,-N, or A for all from A on",
    )  # fmt: skip
    number = inputs.number_from(0, (1 << 31) - 1)
    parser.add_argument("--top", type=number, default=TOP, metavar="N", help=f"rows of each (default {TOP}), 0: all")
    parser.add_argument(
        "--depth", type=number, default=DEPTH, metavar="N", help=f"levels of calls (default {DEPTH}), 0: all"
    )
    hart = inputs.number_from(0, (1 << 32) - 1)
    parser.add_argument("--hart", type=hart, metavar="N", help="this hart alone (default: all harts together)")
    parser.add_argument("--each", action="store_true", help="then each hart by itself, too")
    more = "add the runs in further captures, of the same program (its build-id says so) or of others"
    parser.add_argument("--merge", nargs="+", default=[], metavar="FILE", help=more)
    add_threads(group_of(parser, THREADS, TITLE))
    readers.add_arguments(parser)
    page = 'write all of it to OUT as one page for a browser, which needs no other file; "-": standard output'
    parser.add_argument("--html", default="", metavar="OUT", help=page)
    trace_answer.add_arguments(parser, "each report: of all harts, or of one", EXAMPLES, run)


def _request(args: argparse.Namespace) -> ReportRequest:
    """Return what the command line asks for. Raises ReportError, and as `raw.trace_request`."""
    ranges = [word for word in args.part if is_range(word)]
    sections = [word for word in args.part if word not in ranges]
    unknown = [word for word in sections if word not in SECTIONS]
    if unknown:
        raise ReportError(
            f"{unknown[0]}: neither a RANGE (A,B or A,+N or A,-N, or A) nor a section: {', '.join(SECTIONS)}"
        )
    if len(ranges) > 1:
        raise ReportError(f"{ranges[0]} and {ranges[1]}: give one RANGE")
    files = [args.capture, *args.merge]
    if args.html and sections:
        raise ReportError(f"{sections[0]}: a page has all sections; leave it out, or --html")
    if args.html and len(files) > 1:
        raise ReportError("--html: a page is of one capture, and --merge adds others")
    if args.html and args.cluster:
        raise ReportError("--html: a page is made here, not on a cluster (--cluster)")
    if args.json and args.html == "-":
        raise ReportError("--json and --html - would both write to standard output")
    if args.html and (threads := threads_asked_for(args)):
        raise ReportError(f"--{next(iter(threads))}: a page has everything, with a track for each task; leave it out")
    if args.html:  # before a long trace is read
        check_page(args.html, [args.capture, *args.elf])
    if len(files) > 1 and ranges:
        raise ReportError(f"{ranges[0]}: a RANGE is of one capture, and --merge adds others")
    if len(files) > 1 and "-" in files:
        raise ReportError("-: with --merge each capture is a file")
    names = files if len(files) > 1 else [""]
    choice = ReportChoice(tuple(sections) or USUAL, args.top, args.depth, args.each)
    of_each = choice if len(files) == 1 else choice._replace(top=0, each=False)
    traces = tuple(
        ProfiledTrace(
            raw.trace_request(args, file), args.hart, "".join(ranges), name, INTERVALS in sections, of_each,
            threads=threads_asked_for(args), rtos=args.rtos,
        )
        for file, name in zip(files, names, strict=True)
    )  # fmt: skip
    return ReportRequest(traces, choice, Readers.from_arguments(args), args.html)


def run(args: argparse.Namespace) -> int:
    """Print the report. Raises ReportError, CaptureError, and as `raw.trace_request` and `read_captures`."""
    request = _request(args)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        if request.html:
            if request.by.wants_pieces:
                shown.say(notes(["the trace is read whole, not in pieces: a page is of its whole history"]))
            write_page(request.traces[0], request.html, shown)
            return 0
        sampled: list[SampledReport] = []
        profiles = _profiles(request, shown, sampled)
        first = next(profiles, None)
        if first is None and sampled:
            several = len(request.traces) > 1
            _print_sampled([merged_reports(sampled, request.choice.top)] if several else sampled, shown)
        else:
            profiles = _all_with_flow(profiles, sampled)
            print_reports(reports(profiles if first is None else chain([first], profiles), request.choice), shown)
    return 0


def _all_with_flow(profiles: Iterator[Profile], sampled: Sequence[SampledReport]) -> Iterator[Profile]:
    """Yield profiles. Raises ReportError if other captures have samples alone, which are not the same sort of count."""
    yield from profiles
    if sampled:
        raise ReportError("some of these captures have PC samples or calls without a flow: report them by themselves")


def _print_sampled(sampled: Sequence[SampledReport], shown: CommandOutput) -> None:
    text = ShellText(shown)
    lines = (json_line(sampled_fields(one)) for one in sampled)
    shown.rows(lines if shown.json else parts_of_text(sampled_lines(one, text.paint) for one in sampled))


def _profiles(request: ReportRequest, shown: CommandOutput, sampled: list[SampledReport]) -> Iterator[Profile]:
    """Yield the profiles of all harts, and say what there is to say about their traces. The reports of a trace without
    a flow are added to *sampled*.
    """
    def note(why: str) -> None:
        shown.say(notes([why]))

    for found in read_captures(request.traces, request.by, shown.progress, note):
        shown.say(found.lines)
        sampled += found.sampled
        yield from found.profiles


def print_reports(shown_reports: Sequence[ProfileReport], shown: CommandOutput) -> None:
    """Print reports."""
    shown.rows([json_line(report_fields(one)) for one in shown_reports] if shown.json else _lines(shown_reports, shown))


def _lines(shown_reports: Sequence[ProfileReport], shown: CommandOutput) -> Iterator[str]:
    text = ShellText(shown)
    yield from parts_of_text(report_lines(one, text) for one in shown_reports)
