"""`rvtrace pack`: a capture with its programs, sources, notes and target description, in one file for somebody else."""

import argparse
from typing import Any

from rvtrace_gdb.console import output
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.options import inputs
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.session.packs.making import Pack, PackError, PackRequest, pack_of, write_pack
from rvtrace_gdb.session.queries.notes import file_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.files import protect_inputs
from rvtrace_gdb.support.text import printable

EXAMPLES = (
    ("pack demo.rvt -o demo.rvtz", "with the program and its sources, for another machine"),
    ("pack demo.rvt -o demo.rvtz --no-sources", "for those who may not have the sources"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace pack`."""
    parser.usage = "%(prog)s FILE -o FILE.rvtz [--no-sources] [--target FILE] [options]"
    parser.description = (
        "Puts a capture into one file with everything it is read with: the programs, the sources of which lines ran,"
        " the notes, and the target description. Every command that takes a capture takes that file, on another"
        " machine, too; gdb finds program and sources. The same input gives the same bytes."
    )
    parser.add_argument("capture", metavar="FILE", help="a capture")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.rvtz", help="the file to write")
    parser.add_argument("--no-sources", action="store_true", help="without source files")
    parser.add_argument(
        "--target", metavar="FILE|NAME",
        help="the target description (default: $RVTRACE_TARGET, or rvtrace.toml beside the program, if it is there)",
    )  # fmt: skip
    output.add_arguments(parser, "what was written")
    inputs.add_program_arguments(parser)
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the pack. Raises PackError, OutputError, CaptureError, and as `Session.open_capture`."""
    programs = inputs.Programs.from_arguments(args)
    trace = RequestedTrace(args.capture, None, programs)
    request = PackRequest(bool(programs.elves), not args.no_sources, args.target)
    protect_inputs(args.output, [args.capture, args.target, *args.elf])
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session = Session()
        loaded = trace.loaded()
        about = loaded.open(session)
        if args.capture != "-" and file_of(session) is None:
            raise PackError(f"{trace.name}: is not a capture file (`rvtrace import` makes one)")
        shown.say(about)
        pack = pack_of(session, loaded.capture, request, shown.progress)
        write_pack(pack, args.output, shown.progress)
        if shown.json:
            shown.facts(_facts(pack, args.output))
        shown.say(pack.problems())
        if not shown.json and args.output != "-":
            shown.rows([_packed_line(pack, args.output, len(loaded.capture.place_notes))])
    return 0


def _packed_line(pack: Pack, path: str, notes: int) -> str:
    return f"Packed the capture, {pack.parts(notes)} into {printable(path)}."


def _facts(pack: Pack, path: str) -> dict[str, Any]:
    contents = pack.contents
    return {
        "file": path,
        "elfs": [it.path for it in contents.elfs],
        "sources": [it.path for it in contents.sources],
        "target": None if contents.target is None else contents.target.path,
        "absent": pack.absent,
    }
