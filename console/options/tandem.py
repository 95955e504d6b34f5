"""Options for tandem traces: their parameters.

A tandem trace does not contain all of its parameters (docs/tandem.md, "Parameters"): a capture has them, raw bytes do
not.
"""

import argparse
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from rvtrace_gdb.console.help_pages import RAW, group_of
from rvtrace_gdb.console.options import inputs
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, SPECIFICATION, TandemDialect, TandemParameters
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import Capture, CapturedTandem
from rvtrace_gdb.session.formats.imports.raw_import import tandem_capture
from rvtrace_gdb.support.inputs import read_input

OWN = ("flen", "mlen", "eaddr", "no_supervisor")
"""The names, in the parsed arguments, of the options that only tandem traces have."""
SHARED = ("xlen", "dialect", "wrapped")
"""The names of the options that raw bytes of other formats also have."""
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


@dataclass(frozen=True)
class TandemOptions:
    """What the command line says of a raw tandem trace; None: the program has it, else the default."""

    dialect: TandemDialect = SPECIFICATION
    xlen: int | None = None
    flen: int | None = None
    mlen: int | None = None
    eaddr: int | None = None
    supervisor: bool = True

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "TandemOptions":
        """Return the options in `OWN`, --xlen and --dialect."""
        dialect = DIALECTS.get(args.dialect or "", SPECIFICATION)
        return cls(dialect, args.xlen, args.flen, args.mlen, args.eaddr, not args.no_supervisor)

    def parameters(self, programs: inputs.Programs) -> TandemParameters:
        """Return these parameters, else the program's, else the defaults. Raises `RawError`, BadElf, BadParameters."""
        elf = next(iter(programs.elves), None)
        base = TandemParameters(self.xlen or 64) if elf is None else TandemParameters.of_elf(elf)
        if self.xlen not in (None, base.xlen):
            raise inputs.RawError(f"--xlen {self.xlen}: {elf} is an RV{base.xlen} program")
        return TandemParameters(
            base.xlen,
            base.flen if self.flen is None else self.flen,
            self.mlen or 0,
            self.eaddr or 0,
            self.dialect,
            self.supervisor,
        )

    def image(self, programs: inputs.Programs) -> Image:
        """Return the program, empty if unknown: the trace has the instructions. Raises BadElf, ProgramError."""
        if not programs.elves:
            return Image(self.xlen or 64)
        image = Image.from_elf(os.path.abspath(programs.elves[0]))
        inputs.add_others(image, [os.path.abspath(elf) for elf in programs.elves[1:]])
        return image


@dataclass(frozen=True)
class TandemRequest:
    """The trace of a command that reads tandem traces: a capture of whatever trace, or raw bytes of a tandem trace.

    *file*: "-" is standard input. *for_raw_bytes*: the options that the user gave and only raw bytes can have. *hart*:
    None: the first.
    """

    file: str
    programs: inputs.Programs
    options: TandemOptions
    wrapped: bool
    for_raw_bytes: tuple[str, ...]
    hart: int | None

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "TandemRequest":
        """Return the request of a command with the options of `add_arguments`, and --hart."""
        programs, options = inputs.Programs.from_arguments(args), TandemOptions.from_arguments(args)
        return cls(args.file, programs, options, args.wrapped, tuple(_given(args, (*OWN, *SHARED))), args.hart)

    @property
    def name(self) -> str:
        """The name of the file in messages."""
        return inputs.title(self.file)

    def capture(self) -> Capture:
        """Return the trace as a capture. Raises `RawError`, CaptureError, BadElf, BadParameters, ProgramError."""
        name, content = self.name, _content(self.file)
        if content.startswith(_CAPTURE):
            for option in self.for_raw_bytes:
                raise inputs.RawError(f"{option} is for raw bytes: {name} is a capture, which includes its settings")
            return capture_file.parse(content, name)
        if not content:
            raise inputs.RawError(f"{name}: is empty")
        inputs.check_beginning(content, name)
        image, parameters = self.options.image(self.programs), self.options.parameters(self.programs)
        return tandem_capture(name, content, parameters, image, wrapped=self.wrapped)


def of_hart(capture: Capture, hart: int | None) -> CapturedTandem:
    """Return the trace of a hart; None means the only hart, or the first. Raises `RawError`."""
    for captured in capture.tandem:
        if hart in (None, captured.hart):
            return captured
    there = harts_text([captured.hart for captured in capture.tandem])
    raise inputs.RawError(f"--hart {hart}: it has no tandem trace, only {there}")


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
