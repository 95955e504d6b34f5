"""`rvtrace tandem convert`: convert a tandem trace, or what is known of another trace, to a log of Spike, to the CSV of
riscv-dv, or to a tandem trace.
"""

import argparse
from collections.abc import Iterator

from rvtrace_gdb.console import output
from rvtrace_gdb.console.commands.tandem.show import Found, TandemError, open_trace, selection
from rvtrace_gdb.console.options import raw, tandem
from rvtrace_gdb.console.output import Output
from rvtrace_gdb.decode.program import debug_info
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.files import atomic_output, protect_inputs
from rvtrace_gdb.support.text import counted, rows
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.tandem.groups import Groups, Texts
from rvtrace_gdb.views.tandem.listing import AT_ONCE
from rvtrace_gdb.views.tandem.spike_log import COLUMNS, NO_BYTES, NO_MODE, Spelling, SpikeLog, TraceCsv, as_line

_MODES = {"U": 0, "S": 1, "M": 3}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line of `rvtrace tandem convert`."""
    parser.usage = (
        "%(prog)s FILE [A,B | A,+N | A,-N | N]\n"
        "                              --to spike|riscv-dv|tandem -o OUT [options]"
    )
    parser.description = (
        "spike: the log that `spike -l --log-commits` writes. riscv-dv: its trace CSV, a row for each instruction."
        " tandem: a capture (OUT.rvt) with a tandem trace, of a capture of another trace. Values that are not in the"
        " trace, or not known, are left out, and a message says so."
    )
    parser.add_argument("file", metavar="FILE", help=tandem.FILE)
    parser.add_argument("range", nargs="*", default=[], metavar="RANGE", help="numbers of groups; default: all")
    parser.add_argument("--to", required=True, choices=("spike", "riscv-dv", "tandem"), help="the form")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help='the file to write; "-": standard output')
    parser.add_argument(
        "--mode", choices=sorted(_MODES),
        help="the privilege mode where the trace does not have it (default: such lines are left out)",
    )
    parser.add_argument(
        "--hart", type=raw.number_from(0, (1 << 32) - 1), metavar="N", help="the hart (default: the first one)",
    )  # fmt: skip
    output.add_arguments(parser, "what was written")
    tandem.add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Convert. Raises TandemError, RawError, CaptureError, BadElf, RangeError, OutputError."""
    if args.json and args.output == "-":
        raise TandemError("--json and -o - would both write to standard output")
    protect_inputs(args.output, [args.file, *args.elf])
    with Output(args, "reading the trace") as shown:
        found = open_trace(args, shown)
        protect_inputs(args.output, [elf.path for elf, _ in found.decoded.image.elves])
        selected = selection(found.tandem, " ".join(args.range))
        if args.to == "tandem":
            _save(args, found, selected, shown)
            return 0
        mode = _MODES.get(args.mode)
        with Disassemblers(found.decoded.program) as source:
            groups = Groups(found.tandem)
            xlen = groups.parameters.xlen
            spelling = Spelling(Texts(source, found.decoded.program, xlen), xlen)
            if args.to == "spike":
                form: SpikeLog | TraceCsv = SpikeLog(groups, spelling, found.hart, _names(found.decoded.image), mode)
            else:
                form = TraceCsv(groups, spelling, mode)
            count = _write(args.output, _lines(groups, spelling, form, selected, shown.progress), shown)
        notes = [_left_out(number, what) for what, number in sorted(form.left_out.items()) if number]
        notes += ["--mode specifies it where the trace does not"] if form.left_out[NO_MODE] else []
        if shown.json:
            facts = {"file": args.output, "format": args.to, "groups": len(selected), "lines": count}
            shown.facts({**facts, "messages": notes})
        else:
            shown.say([*(f"note: {note}" for note in notes), _summary(args, count, len(selected))])
    return 0


def _save(args: argparse.Namespace, found: Found, selected: range, shown: Output) -> None:
    """Write the whole trace as a capture. Raises TandemError, CaptureError, OutputError."""
    if not args.output.endswith(".rvt") or args.range:
        raise TandemError("--to tandem writes a whole trace as a capture: give -o OUT.rvt, and no range")
    capture_file.save(found.capture, args.output)
    groups = len(selected)
    if shown.json:
        shown.facts({"file": args.output, "format": args.to, "groups": groups, "messages": []})
    else:
        shown.say([f"{args.output}: {counted(groups, 'group')}"])


def _left_out(number: int, what: str) -> str:
    """Return the note of what is not in the output. *what* begins with a noun in the plural."""
    if number > 1:
        return f"{number} {what} are left out"
    noun, _, rest = what.partition(" ")
    return f"1 {noun.removesuffix('s')} {rest} is left out"


def _summary(args: argparse.Namespace, lines: int, groups: int) -> str:
    where = "standard output" if args.output == "-" else args.output
    return f"{where}: {counted(lines, 'line')} of {counted(groups, 'group')}"


def _lines(
    groups: Groups, spelling: Spelling, form: SpikeLog | TraceCsv, selected: range, progress: Progress
) -> Iterator[str]:
    if isinstance(form, TraceCsv):
        yield as_line(COLUMNS)
    for first in range(selected.start, selected.stop, AT_ONCE):
        progress("converting (groups)", first - selected.start, len(selected))
        page = groups.rows(range(first, min(first + AT_ONCE, selected.stop)))
        yield from form.lines(spelling.learn(page))
    if isinstance(form, SpikeLog) and selected.stop == len(groups):
        yield from map(form.lost, groups.breaks.get(len(groups), ()))
    elif selected.stop == len(groups):
        form.left_out[NO_BYTES] += len(groups.breaks.get(len(groups), ()))


def _write(place: str, lines: Iterator[str], shown: Output) -> int:
    """Write lines, and return their number. Raises OutputError."""
    if place == "-":
        return shown.rows(lines)
    count = 0
    with atomic_output(place) as file:
        for count, line in enumerate(lines, 1):  # noqa: B007 - how many is what is wanted
            file.write(rows([line]).encode())
    return count


def _names(image: Image) -> dict[int, str]:
    return debug_info.symbol_names(image.path) if image.path else {}
