"""Options for tandem traces: their parameters.

A tandem trace does not contain all of its parameters (docs/tandem.md, "Parameters"): a capture has them, raw bytes do
not.
"""

import argparse
import os
import sys
from collections.abc import Iterable

from rvtrace_gdb.console.help_pages import RAW, group_of
from rvtrace_gdb.console.options import inputs
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, SPECIFICATION, Parameters
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import Capture, CapturedTandem
from rvtrace_gdb.session.formats.raw_import import tandem_capture
from rvtrace_gdb.support.inputs import read_input

OWN = ("flen", "mlen", "eaddr", "no_supervisor")
"""The names, in the parsed arguments, of the options that only tandem traces have."""
SHARED = ("xlen", "dialect", "wrapped")
"""The names of the options that raw bytes of other formats have, too."""
FILE = (
    'a capture, raw bytes of a tandem trace, or "-": standard input. Of a capture of another trace: what is known of'
    " its values"
)
"""The help of the argument FILE."""
_CAPTURE = b"PK\x03\x04"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add all options of a command that reads only tandem traces: a capture with one, or raw bytes."""
    parser.add_argument(
        "--elf", action="append", default=[], metavar="FILE",
        help="the program that ran (default: the capture's; raw bytes need none); may be repeated for other code that"
        " ran, such as a boot loader",
    )  # fmt: skip
    group = group_of(parser, RAW, "raw bytes", "Parameters that a trace does not contain. A capture includes them.")
    group.add_argument("--xlen", type=int, choices=(32, 64), help="XLEN of the hart (default: the ELF's, otherwise 64)")
    group.add_argument(
        "--dialect", choices=sorted(DIALECTS), metavar="NAME",
        help=f"the core whose encoder sent it: {', '.join(DIALECTS)} (default {SPECIFICATION.name})",
    )  # fmt: skip
    group.add_argument(
        "--wrapped", action="store_true", help="the trace is from a ring buffer that wrapped, and may start anywhere",
    )  # fmt: skip
    add_own_arguments(group)


def add_own_arguments(group: "argparse._ArgumentGroup") -> None:
    """Add the options that raw bytes of other formats do not have."""
    group.add_argument(
        "--flen", type=int, choices=(0, 32, 64), metavar="N",
        help="width of floating-point registers: 32, 64, 0 without any (default: the ELF's, otherwise 64)",
    )  # fmt: skip
    group.add_argument(
        "--mlen", type=int, choices=(32, 34, 64), metavar="N",
        help="width of a memory address: 34 on RV32 with Sv32 (default: 32 on RV32, 64 on RV64)",
    )  # fmt: skip
    group.add_argument(
        "--eaddr", type=int, choices=(32, 34, 64), metavar="N",
        help="width of an effective address (default: as the dialect has it, MLEN or XLEN)",
    )  # fmt: skip
    group.add_argument(
        "--no-supervisor", action="store_true", help="the hart has no S-mode: addresses are never translated"
    )


def capture(args: argparse.Namespace, file: str) -> Capture:
    """Return the capture in *file*, of whatever trace, or raw bytes of a tandem trace as a capture; "-" is standard
    input.

    Raises `RawError`, CaptureError, BadElf, BadParameters.
    """
    name, content = inputs.title(file), _content(file)
    if content.startswith(_CAPTURE):
        for option in _given(args, (*OWN, *SHARED)):
            raise inputs.RawError(f"{option} is for raw bytes: {name} is a capture, which includes its settings")
        return capture_file.parse(content, name)
    return capture_of(args, name, content)


def capture_of(args: argparse.Namespace, name: str, data: bytes) -> Capture:
    """Return raw bytes as a capture. Raises `RawError`, BadElf, BadParameters, ProgramError."""
    if not data:
        raise inputs.RawError(f"{name}: is empty")
    inputs.check_beginning(data, name)
    hart, image = getattr(args, "of_hart", None) or 0, image_of(args)
    return tandem_capture(name, data, parameters(args), image, hart=hart, wrapped=args.wrapped)


def of_hart(found: Capture, hart: int | None) -> CapturedTandem:
    """Return the trace of a hart; None means the only hart, or the first. Raises `RawError`."""
    for captured in found.tandem:
        if hart in (None, captured.hart):
            return captured
    there = ", ".join(str(captured.hart) for captured in found.tandem)
    raise inputs.RawError(f"--hart {hart}: it has no tandem trace, only {there}")


def parameters(args: argparse.Namespace) -> Parameters:
    """Return the user's parameters, else the program's, else the defaults. Raises `RawError`, BadElf, BadParameters."""
    dialect = DIALECTS.get(args.dialect or "", SPECIFICATION)
    base = Parameters.of_elf(args.elf[0]) if args.elf else Parameters(args.xlen or 64)
    if args.xlen not in (None, base.xlen):
        raise inputs.RawError(f"--xlen {args.xlen}: {args.elf[0]} is an RV{base.xlen} program")
    return Parameters(
        base.xlen,
        base.flen if args.flen is None else args.flen,
        args.mlen or 0,
        args.eaddr or 0,
        dialect,
        not args.no_supervisor,
    )


def image_of(args: argparse.Namespace) -> Image:
    """Return the program, empty if unknown: the trace has the instructions. Raises BadElf, ProgramError."""
    if not args.elf:
        return Image(args.xlen or 64)
    image = Image.from_elf(os.path.abspath(args.elf[0]))
    inputs.add_others(image, [os.path.abspath(elf) for elf in args.elf[1:]])
    return image


def _content(file: str) -> bytes:
    """Read all bytes of a file. Raises `RawError`."""
    try:
        return sys.stdin.buffer.read() if file == "-" else read_input(file)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise inputs.RawError(f"{inputs.title(file)}: cannot be read: {why}") from None


def _given(args: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """Return those of these options that the user gave, as users write them."""
    return [f"--{name.replace('_', '-')}" for name in names if getattr(args, name, None) not in (None, False)]
