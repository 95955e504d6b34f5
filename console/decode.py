"""`rvtrace decode`: the listing of a capture file, the same as `trace history` prints in gdb."""

import argparse
import os
import sys

from session.context import Context
from session.session import Session
from views import listing
from views.disassembly import Disassembler

ALL = 0  # the size of a listing that has no limit


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """The command line of `rvtrace decode`."""
    parser = subparsers.add_parser(
        "decode",
        help="list the instructions in a capture file",
        description="Prints what ran, oldest first, as `trace history` does in gdb. Instruction text comes from gdb if"
        " there is one, else from objdump, else the bare encodings are shown.",
    )
    parser.add_argument("capture", metavar="FILE.rvt", help="written by `trace save`")
    parser.add_argument("--elf", metavar="FILE", help="the program that ran (default: where it was when captured)")
    parser.add_argument(
        "range", nargs="*", metavar="[/rfp] [A,B | A,+N | A,-N | N]",
        help="numbers to show, as in `trace history`; default: all. /r raw bytes, /f no function names",
    )  # fmt: skip
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the listing. Raises what `Session.open` and `Session.history` raise, and ModifierError."""
    modifiers, numbers = listing.Modifiers.split(" ".join(args.range))
    session = Session()
    about = session.open(args.capture, os.path.abspath(args.elf) if args.elf else None)
    selection = session.history(numbers, ALL, Context(), _progress)
    history, image = session.decoded()
    _clear()
    for line in (*about, *selection.lines):
        print(line, file=sys.stderr)
    with Disassembler(image) as disassembler:
        for line in listing.lines(history, disassembler, image.xlen, selection.begin, selection.end, modifiers):
            sys.stdout.write(line + "\n")
    return 0


def _progress(label: str, done: int, total: int | None = None) -> None:
    if sys.stderr.isatty():
        share = f"{100 * done // total}%" if total else str(done)
        sys.stderr.write(f"\r\033[K{label}: {share}")
        sys.stderr.flush()


def _clear() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
