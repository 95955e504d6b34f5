"""`rvtrace perf-script`: what ran as the text of `perf script`."""

import argparse
from dataclasses import dataclass

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.help_pages import PERF, group_of
from rvtrace_gdb.console.options import inputs, part, raw
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions, is_elsewhere
from rvtrace_gdb.console.progress import WATCH
from rvtrace_gdb.session import report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports import export
from rvtrace_gdb.session.exports.perf import fields as perf_fields
from rvtrace_gdb.session.exports.perf import itrace as perf_itrace
from rvtrace_gdb.session.exports.perf.event_text import ScriptText
from rvtrace_gdb.session.exports.perf.itrace import Itrace
from rvtrace_gdb.session.exports.selection import ExportOptions, exported
from rvtrace_gdb.session.session import Session

EXAMPLES = (
    ("perf-script demo.rvt --itrace=i100ig", "call stacks, for stackcollapse-perf.pl of FlameGraph"),
    ("perf-script demo.rvt --call-trace", "the calls, indented"),
    ("perf-script demo.rvt --insn-trace 1,100", "instructions"),
    ("perf-script demo.rvt --itrace=b -F +flags", "jumps, calls, returns and traps"),
    ("perf-script demo.rvt --itrace=i99il32 -F ip,brstack --show-mmap-events", "for llvm-profgen"),
)
_TRACES = {
    "insn_trace": ("i1ie", perf_fields.INSN_TRACE, "each instruction with its text"),
    "call_trace": ("ce", perf_fields.CALL_TRACE, "calls and traps, indented by their callers"),
    "call_ret_trace": ("cre", perf_fields.CALL_RETURN_TRACE, "the same with returns, and what each is"),
}


@dataclass(frozen=True)
class PerfScriptRequest:
    """What the command line asks for. *hart*: None: all; *mappings*: whether they are shown first."""

    trace: RequestedTrace
    options: ExportOptions
    hart: int | None
    itrace: Itrace
    fields: frozenset[str]
    mappings: bool


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace perf-script`."""
    parser.usage = (
        "%(prog)s FILE [RANGE] [--itrace=OPTIONS] [-F FIELDS]\n"
        "                           [--hart N] [--time T[,T]] [options]"
    )
    parser.description = (
        "Prints what ran as `perf script` prints a hardware trace: transfers of control, or samples with call chains"
        " and branch stacks, for people, FlameGraph, llvm-profgen and other readers of that text. Several harts are"
        " merged by their times."
    )
    part.add_arguments(parser, f"numbers of instructions: {part.RANGE_FORMS}")
    parser.add_argument("--time", metavar="T[,T]", help="what ran then, or from one time to another, in ticks")
    what = f"events, as letters: --help-perf explains them (default {perf_itrace.DEFAULT}: calls, and what is missing)"
    parser.add_argument("--itrace", metavar="OPTIONS", help=what)
    chosen = "fields: NAME,NAME, or +NAME,-NAME to add and to leave out; --help-perf explains them"
    parser.add_argument("-F", "--fields", action="append", default=[], metavar="FIELDS", help=chosen)
    traces = parser.add_mutually_exclusive_group()
    for name, (_, _, text) in _TRACES.items():
        option = f"--{name.replace('_', '-')}"
        traces.add_argument(option, dest="traced", action="store_const", const=name, help=text)
    mapped = "print first where programs are in memory (PERF_RECORD_MMAP2)"
    parser.add_argument("--show-mmap-events", action="store_true", help=mapped)
    parser.add_argument("--quiet", action="store_true", help="print no progress, and only problems besides the output")
    letters = " ".join(f"{letter}: {text}." for letter, text in perf_itrace.LETTERS.items())
    names = " ".join(f"{name}: {text}." for name, text in perf_fields.FIELDS.items())
    group_of(parser, PERF, "events and fields", f"Letters of --itrace: {letters} Fields of -F: {names}")
    inputs.add_program_arguments(parser)
    raw.add_arguments(parser)
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the events. Raises BadItrace, BadFields, NoRange, ExportError, NoTimes, and as `raw.trace_request` and
    `Session.selected`.
    """
    request = _request(args)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session = Session()
        about = request.trace.open(session)
        trace = exported(
            session, Context(hart=request.hart), export.named("perf-script"), request.options, shown.progress
        )
        decoded = session.harts(progress=shown.progress)
        hint = hints_of_history(session.capture(), decoded, shown.progress)
        shown.say([*about, *report.histories(decoded.harts), *session.warnings(), *hint])
        progress = shown.progress if is_elsewhere() else WATCH.get()
        text = ScriptText(trace, request.itrace, request.fields, progress)
        shown.pieces(text.pieces(mappings=request.mappings))
    return 0


def _request(args: argparse.Namespace) -> PerfScriptRequest:
    events, fields, _ = _TRACES.get(args.traced, (perf_itrace.DEFAULT, "", ""))
    chosen = perf_fields.fields_of(*filter(None, [fields, *args.fields]))
    itrace = perf_itrace.itrace_of(events if args.itrace is None else args.itrace)
    options = ExportOptions(part.checked_range(args.part) or None, args.time)
    trace = raw.trace_request(args, args.capture)
    return PerfScriptRequest(trace, options, args.hart, itrace, chosen, args.show_mmap_events)
