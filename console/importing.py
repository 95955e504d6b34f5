"""`rvtrace import`: raw trace bytes that something else made become a capture file."""

import argparse

from console import raw
from session import capture as capture_file
from session import report


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """The command line of `rvtrace import`."""
    parser = subparsers.add_parser(
        "import",
        help="make a capture file of raw N-Trace bytes",
        description="Makes a capture file of raw N-Trace bytes, of an RTL simulation or another tool, with all that is"
        " needed to read them. `rvtrace decode`, `rvtrace dump` and, in gdb, `trace open` take it from there.",
    )
    parser.add_argument("file", metavar="RAW", help='the bytes as they were sent, "-" for standard input')
    parser.add_argument("-o", "--output", required=True, metavar="FILE.rvt", help="the capture file to write")
    parser.add_argument("--ntrace", action="store_true", help="they are N-Trace, which is the only format yet")
    raw.add_program_arguments(parser)
    raw.add_arguments(parser, always=True)
    parser.set_defaults(run=run, ntrace=True)
    return parser


def run(args: argparse.Namespace) -> int:
    """Write the capture. Raises what `raw.capture` and `capture.save` raise."""
    capture = raw.capture(args, args.file)
    capture_file.save(capture, args.output)
    for line in (report.saved(capture, args.output), *report.opened(capture)):
        print(line)
    return 0
