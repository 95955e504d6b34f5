"""`rvtrace import`: raw trace bytes that something else made become a capture file."""

import argparse
import sys

from rvtrace_gdb.console import facts, hints, output, programs, raw
from rvtrace_gdb.console.output import Output
from rvtrace_gdb.session import capture as capture_file
from rvtrace_gdb.session import report, unreadable
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.output import keep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `rvtrace import`."""
    parser.usage = (
        "%(prog)s RAW [--ntrace | --etrace] --elf FILE -o FILE.rvt [options]\n"
        "       rvtrace import TVT --tandem [--elf FILE] [--hart N] -o FILE.rvt [options]"
    )
    parser.description = (
        "Makes a capture file of raw N-Trace, E-Trace or tandem trace bytes, of an RTL simulation or"
        " another tool, with all that is needed to read them. `rvtrace decode`, `rvtrace dump`, in gdb `trace open`"
        " take it from there. Prints what was found in it, to see whether the options are right. A core dump of ESP-IDF"
        " (docs/esp32.md) knows how its trace was made."
    )
    parser.add_argument("file", metavar="RAW", help='the bytes as they were sent, "-" for standard input')
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE.rvt", help='the capture file to write, "-": standard output'
    )
    parser.add_argument(
        "--hart", dest="of_hart", type=raw.number_from(0, (1 << 32) - 1), metavar="N",
        help="with --tandem: whose trace it is (default 0)",
    )  # fmt: skip
    output.add_arguments(parser, "what was written")
    programs.add_arguments(parser, capture=False)
    raw.add_arguments(parser, capture=False)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the capture, and say what is in it. Raises what `raw.capture` and `capture.save` raise."""
    if args.json and args.output == "-":
        raise RvtraceError("--json and -o - would both write to standard output")
    if args.of_hart is not None and not args.tandem:
        raise raw.RawError("--hart: only a tandem trace does not say whose it is: add --tandem")
    keep(args.output, [args.file, args.settings, *args.elf])
    with Output(args, "reading the trace") as shown:
        capture = raw.core_dump(args, args.file) or raw.capture(args, args.file)
        session = Session()
        try:
            said = session.look_at(capture, raw.title(args.output), raw.elf_of_settings(args))[1:]
            decoded = session.harts(progress=shown.progress)
            hint = hints.of(capture, decoded, shown.progress)
        except BaseException:  # Ctrl-C, too: the bytes may be a trace
            capture_file.save(capture, args.output)
            raise
        why = None if hint else unreadable.empty(decoded.harts) or unreadable.why(capture, decoded.harts)
        if why is not None:
            raise raw.RawError(f"{raw.title(args.file)}: {why}")
        capture_file.save(capture, args.output)
        if shown.json:
            known = {**facts.of_capture(capture), **facts.of_histories(decoded.harts)}
            shown.facts({"file": args.output, **known, "messages": [*session.warnings(), *hint]})
        else:
            said = [report.saved(capture, args.output), *said, *report.histories(decoded.harts)]
            shown.say([*said, *session.warnings(), *hint], sys.stderr if args.output == "-" else sys.stdout)
    return 0
