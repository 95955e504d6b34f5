"""`rvtrace export`: write what ran in the form of another program, as `trace export` does in gdb."""

import argparse

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.help_pages import FORMS, group_of
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.session import report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports import export
from rvtrace_gdb.session.exports.selection import OPTIONS, ExportError, ExportOptions, exported
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.files import protect_inputs

EXAMPLES = (
    ("export demo.rvt --to perfetto -o demo.pftrace", "as a timeline for Perfetto"),
    ("export demo.rvt --to spike -o demo.log", "as the log that Spike writes"),
    ("export demo.rvt --to riscv-dv -o demo.csv", "as the CSV of riscv-dv"),
    ("export demo.rvt --sqlite -o demo.db", "as a database with the tables of `rvtrace sql`"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace export`."""
    parser.usage = (
        "%(prog)s FILE (--to NAME | --sqlite) -o OUT\n"
        "                      [--hart N] [--range A,B | --time T[,T]] [options]"
    )
    parser.description = (
        "Writes what the harts ran in the form of another program, as `trace export` does in gdb: "
        + ", ".join(row.name for row in export.EXPORTS)
        + ". What the form has and the trace does not is left out, and a message says so."
    )
    group_of(parser, FORMS, "forms", " ".join(f"{row.name}: {row.help}." for row in export.EXPORTS))
    inputs.add_capture(parser)
    names = [row.name for row in export.EXPORTS]
    form = "the form: --help-forms explains them"
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--to", choices=names, metavar="NAME", help=form)
    to.add_argument("--sqlite", dest="to", action="store_const", const="sqlite", help="the same as --to sqlite")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help='the file to write; "-": standard output')
    hart = inputs.number_from(0, (1 << 32) - 1)
    one = "the hart (default: all if the form can have several, else the first)"
    parser.add_argument("--hart", type=hart, metavar="N", help=one)
    parser.add_argument("--range", metavar="A,B", help=OPTIONS["range"])
    parser.add_argument("--time", metavar="T[,T]", help=OPTIONS["time"])
    resolution = inputs.number_from(0, (1 << 63) - 1)
    parser.add_argument("--resolution", type=resolution, metavar="N", help=OPTIONS["resolution"])
    parser.add_argument("--exact", metavar="A,B", help=OPTIONS["exact"])
    parser.add_argument("--itrace", metavar="OPTIONS", help=OPTIONS["itrace"])
    trace_answer.add_arguments(parser, "what was written", EXAMPLES, run, color=False)


def run(args: argparse.Namespace) -> int:
    """Export. Raises ExportError, OutputError, what `Session.open_capture` and `Session.selected` raise, and what the
    writer raises.
    """
    if args.json and args.output == "-":
        raise ExportError("--json and -o - would both write to standard output")
    protect_inputs(args.output, [args.capture, *args.elf])
    row = export.named(args.to)
    options = ExportOptions(args.range, args.time, args.resolution, args.exact, args.itrace)
    options.check(row)
    request = raw.trace_request(args, args.capture)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session = Session()
        about = request.open(session)
        trace = exported(session, Context(hart=args.hart), row, options, shown.progress)
        decoded = session.harts(progress=shown.progress)
        protect_inputs(args.output, [elf.path for elf, _ in decoded.program.all_programs.elves])
        hint = hints_of_history(session.capture(), decoded, shown.progress)
        shown.say([*about, *report.histories(decoded.harts), *session.warnings(), *hint])
        with shown.file(args.output) as (file, progress):
            written = export.write(args.to, trace, file, progress)
        if shown.json:
            harts = {"harts": [it.hart for it in trace.harts]} if row.several else {"hart": trace.hart}
            count = {} if written.lines is None else {"lines": written.lines}
            facts = {"file": args.output, "format": args.to, **harts, **count}
            shown.facts({**facts, "messages": written.notes()})
        else:
            shown.say(written.summary(args.to, "standard output" if args.output == "-" else args.output))
    return 0
