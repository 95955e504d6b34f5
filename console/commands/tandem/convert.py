"""`rvtrace tandem convert`: convert a tandem trace, or what is known of another trace, to a log of Spike, to the CSV of
riscv-dv, to RVVI-TEXT, or to a tandem trace.
"""

import argparse
from dataclasses import dataclass

from rvtrace_gdb.console import output
from rvtrace_gdb.console.commands.tandem.show import TandemError, open_trace, selection
from rvtrace_gdb.console.options import inputs, tandem
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports import export
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.exports.logs.commits import NO_MODE
from rvtrace_gdb.support.files import protect_inputs
from rvtrace_gdb.support.text import counted

_FORMS = ("spike", "riscv-dv", "rvvi", "tandem")
_MODES = {"U": 0, "S": 1, "M": 3}


@dataclass(frozen=True)
class ConvertRequest:
    """What the command line of `rvtrace tandem convert` asks for. *numbers*: the RANGE of groups, "" for all. *mode*:
    the privilege mode where the trace does not have it.
    """

    trace: tandem.TandemRequest
    to: str
    output: str
    numbers: str
    mode: int | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line of `rvtrace tandem convert`."""
    parser.usage = (
        "%(prog)s FILE [A,B | A,+N | A,-N | N]\n"
        "                              --to spike|riscv-dv|rvvi|tandem -o OUT [options]"
    )
    parser.description = (
        "spike: the log that `spike -l --log-commits` writes. riscv-dv: its trace CSV, a row for each instruction."
        " rvvi: RVVI-TEXT, an event for each instruction."
        " tandem: a capture (OUT.rvt) with a tandem trace, of a capture of another trace. Values that are not in the"
        " trace, or not known, are left out, and a message says so."
    )
    parser.add_argument("file", metavar="FILE", help=tandem.FILE)
    parser.add_argument("range", nargs="*", default=[], metavar="RANGE", help="numbers of groups; default: all")
    parser.add_argument("--to", required=True, choices=_FORMS, help="the form")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help='the file to write; "-": standard output')
    parser.add_argument(
        "--mode", choices=sorted(_MODES),
        help="the privilege mode where the trace does not have it (default: such lines are left out)",
    )
    parser.add_argument(
        "--hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N", help="the hart (default: the first one)",
    )  # fmt: skip
    output.add_arguments(parser, "what was written")
    tandem.add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Convert. Raises TandemError, RawError, CaptureError, BadElf, RangeError, OutputError."""
    if args.json and args.output == "-":
        raise TandemError("--json and -o - would both write to standard output")
    protect_inputs(args.output, [args.file, *args.elf])
    request = ConvertRequest(
        trace=tandem.TandemRequest.from_arguments(args), to=args.to, output=args.output,
        numbers=" ".join(args.range), mode=_MODES.get(args.mode),
    )  # fmt: skip
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        _convert(request, shown)
    return 0


def _convert(request: ConvertRequest, shown: CommandOutput) -> None:
    found = open_trace(request.trace, shown)
    protect_inputs(request.output, [elf.path for elf, _ in found.decoded.image.elves])
    groups = selection(found.tandem, request.numbers)
    if request.to == "tandem" and (not request.output.endswith(".rvt") or request.numbers):
        raise TandemError("--to tandem writes a whole trace as a capture: give -o OUT.rvt, and no range")
    selected = found.session.selected_or_empty(Context(hart=found.hart), shown.progress)
    trace = ExportedTrace(found.session, selected, groups=groups, mode=request.mode)
    with shown.file(request.output) as (file, progress):
        written = export.write(request.to, trace, file, progress)
    notes = written.notes()
    notes += ["--mode specifies it where the trace does not"] if written.left_out.get(NO_MODE) else []
    if shown.json:
        counts = {"groups": len(groups)} | ({} if written.lines is None else {"lines": written.lines})
        shown.facts({"file": request.output, "format": request.to, **counts, "messages": notes})
    else:
        shown.say([*(f"note: {note}" for note in notes), _summary(request.output, written.lines, len(groups))])


def _summary(output: str, lines: int | None, groups: int) -> str:
    where = "standard output" if output == "-" else output
    count = counted(groups, "group")
    return f"{where}: {count}" if lines is None else f"{where}: {counted(lines, 'line')} of {count}"
