"""`rvtrace import`: convert raw trace bytes of another tool to a capture file.

With `--json` it prints what is known about the trace: the fields about a whole capture (docs/json.md).
"""

import argparse
import sys
from collections import Counter
from typing import Any

from rvtrace_gdb.console import output
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import inputs, perf, raw
from rvtrace_gdb.console.options.hints import hints_of_history, hints_of_missing_files
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import Capture, CapturedTandem
from rvtrace_gdb.session.formats.imports import raw_import
from rvtrace_gdb.session.formats.sinks import HartHistories
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.files import protect_inputs


def of_capture(capture: Capture) -> dict[str, Any]:
    """Return how a capture was made, and its sinks, as JSON fields."""
    encoders = [
        {"name": one.in_force.name, "hart": one.hart, "protocol": report.protocol(one.in_force)}
        for one in capture.encoders
    ]
    sinks = [
        {
            "name": one.in_force.name, "bytes": len(one.data), "wrapped": one.wrapped, "encoders": list(one.encoders),
            **({} if one.frames is None else {"frames": one.frames.value, "atb-ids": dict(one.atb_ids)}),
        }
        for one in capture.sinks
    ]  # fmt: skip
    records = [{"name": one.in_force.name, "hart": one.hart, "bytes": len(one.data)} for one in capture.records]
    tandem = [_of_tandem(one) for one in capture.tandem]
    branches = [
        {"name": one.in_force.name, "hart": one.hart, "kind": one.in_force.kind, "bytes": len(one.data)}
        for one in capture.branches
    ]
    return {
        "xlen": capture.xlen, "elf": capture.elf.path if capture.elf else None, "target": capture.target,
        "created": capture.created, "tool": capture.tool, "encoders": encoders, "sinks": sinks,
        "records": records or None, "tandem": tandem or None, "branches": branches or None,
        "notes": list(capture.notes) or None,
    }  # fmt: skip


def _of_tandem(one: CapturedTandem) -> dict[str, Any]:
    parameters = one.in_force.parameters
    return {
        "name": one.in_force.name, "hart": one.hart, "dialect": parameters.dialect.name,
        "xlen": parameters.xlen, "flen": parameters.flen, "mlen": parameters.mlen_bits,
        "eaddr": 8 * parameters.widths.eaddr, "supervisor": parameters.supervisor,
        "bytes": len(one.data), "wrapped": one.wrapped,
    }  # fmt: skip


def of_histories(harts: HartHistories) -> dict[str, Any]:
    """Return how much ran on each hart, and how many bytes were decoded, as JSON fields."""
    total, decoded, idle, skipped = harts.accounting
    return {
        "harts": [_of_history(hart, history) for hart, history in sorted(harts.histories.items())],
        "trace": {"bytes": total, "decoded": decoded, "idle": idle, "skipped": skipped},
    }


def _of_history(hart: int, history: History) -> dict[str, Any]:
    kinds = Counter(event.kind for event in history.events)
    counted = {"instructions": history.instructions, "gaps": history.gaps, "events": len(history.events)}
    return {"hart": hart, **counted, "traps": kinds[EventKind.TRAP], "overflows": kinds[EventKind.OVERFLOW]}


EXAMPLES = (
    ("import raw.bin --ntrace --elf app.elf -o x.rvt", "N-Trace of another tool"),
    ("import commits.log --elf app.elf -o x.rvt", "registers and memory from a log of Spike"),
    ("import perf.data --sysroot rootfs -o x.rvt", "what perf recorded on Linux"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace import`."""
    parser.usage = (
        "%(prog)s RAW [--ntrace | --etrace] --elf FILE -o FILE.rvt [options]\n"
        "       rvtrace import TVT --tandem [--elf FILE] [--hart N] -o FILE.rvt [options]\n"
        "       rvtrace import LOG [--log FORM] [--elf FILE] -o FILE.rvt [options]\n"
        "       rvtrace import PERF.DATA [--sysroot DIR] [--pid N] -o FILE.rvt [options]"
    )
    parser.description = (
        "Makes a capture file from raw N-Trace, E-Trace or tandem trace bytes of an RTL simulation or another tool,"
        " with everything needed to decode them. `rvtrace decode`, `rvtrace dump`, and `trace open` in gdb read it."
        " Prints what the trace contains, to show whether the options are right. A core dump of ESP-IDF"
        " (docs/esp32.md) includes the settings of its trace. A log of Spike, QEMU or Ibex with what instructions wrote"
        " (docs/logs.md) becomes a tandem trace."
    )
    parser.add_argument("file", metavar="RAW", help='the bytes as they were sent, "-" for standard input')
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE.rvt", help='the capture file to write, "-": standard output'
    )
    parser.add_argument(
        "--hart", dest="of_hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N",
        help="with --tandem: the hart that sent the trace (default 0); of a log: the hart that is read, of several",
    )  # fmt: skip
    output.add_arguments(parser, "what was written")
    inputs.add_program_arguments(parser, capture=False)
    raw.add_arguments(parser, capture=False)
    perf.add_arguments(parser)
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the capture, and print what is in it. Raises what `raw.import_request` and `capture.save` raise."""
    if args.json and args.output == "-":
        raise RvtraceError("--json and -o - would both write to standard output")
    protect_inputs(args.output, [args.file, args.settings, *args.elf])
    request = raw.import_request(args, args.file, args.of_hart or 0)
    if args.of_hart is not None and not (args.tandem or args.neorv32 or args.tacit or args.gem5 or request.log):
        raise inputs.RawError("--hart is only for a tandem trace, which does not name its hart: add --tandem")
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        capture, notes = request.imported(shown.progress)
        session = Session()
        try:
            elf = None if request.perf else request.elf_of_settings()
            said = session.open_capture(capture, inputs.title(args.output), elf)[1:]
            decoded = session.harts(progress=shown.progress)
            hint = hints_of_history(capture, decoded, shown.progress, raw=not request.perf)
        except BaseException:  # also at Ctrl-C: the bytes may be a trace
            capture_file.save(capture, args.output)
            raise
        why = (
            None
            if hint
            else raw_import.empty_history(decoded.harts) or raw_import.why_unreadable(capture, decoded.harts)
        )
        if why is not None:
            other = "--ntrace" if args.etrace else "--etrace"
            more = f" The file does not say its format: try {other}." if request.perf else ""
            raise inputs.RawError(f"{request.name}: {why}{more}")
        hint += hints_of_missing_files(decoded)
        capture_file.save(capture, args.output)
        if shown.json:
            known = {**of_capture(capture), **of_histories(decoded.harts)}
            shown.facts({"file": args.output, **known, "messages": [*notes, *session.warnings(), *hint]})
        else:
            said = [report.saved(capture, args.output), *said, *report.histories(decoded.harts)]
            shown.say([*said, *notes, *session.warnings(), *hint], sys.stderr if args.output == "-" else sys.stdout)
    return 0
