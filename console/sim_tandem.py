"""The tandem traces of `rvtrace sim`: a port for each hart, whose bytes go to a file."""

import argparse
import os
import sys
from contextlib import ExitStack
from io import FileIO
from pathlib import Path

from rvtrace_gdb.console import tandem_forms
from rvtrace_gdb.decode.tandem.dialect import DIALECTS, SPECIFICATION
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.session.description import Tandem
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.hart import Hart
from rvtrace_gdb.transport.simulated.loader import ElfFile
from rvtrace_gdb.transport.simulated.machine import Machine
from rvtrace_gdb.transport.simulated.trace_tandem import Addresses, TandemBuild, attach


class BadTandem(RvtraceError):
    """Options of tandem traces that do not go together, or a file that cannot be written."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options `attached` reads."""
    parser.add_argument(
        "--tandem", metavar="FILE",
        help="write a tandem trace of all that the hart does, from its reset on; of several harts to FILE.0, ... ;"
        " `trace start` reads it there (docs/simulated-target.md)",
    )  # fmt: skip
    tandem_forms.add_arguments(parser, "--tandem-")


def files(args: argparse.Namespace, harts: int) -> list[str]:
    """Where the traces go, by hart; none without --tandem. Raises BadTandem."""
    if args.tandem is None:
        for option in ("tandem_dialect", "tandem_forms"):
            if getattr(args, option):
                raise BadTandem(f"--{option.replace('_', '-')}: say where the tandem trace goes, --tandem FILE")
        return []
    return [args.tandem] if harts == 1 else [f"{args.tandem}.{number}" for number in range(harts)]


def attached(args: argparse.Namespace, machine: Machine, cleanup: ExitStack) -> tuple[Tandem, ...]:
    """Gives the harts of *machine* their ports; how they are described. Before the harts run. Raises RvtraceError."""
    paths = files(args, len(machine.harts))
    if not paths:
        return ()
    chosen = tandem_forms.chosen(args, "--tandem-forms")
    addresses = Addresses.EFFECTIVE if not chosen.physical else Addresses.BOTH
    if not chosen.effective:
        addresses = Addresses.PHYSICAL
    builds = [
        TandemBuild(_parameters(hart, args.tandem_dialect), chosen.forms, addresses, chosen.pc_physical)
        for hart in machine.harts
    ]
    parts = ElfFile(args.elf).segments()
    loaded = [(part.address, part.data + bytes(part.memory_size - len(part.data))) for part in parts]
    for path in paths:
        if os.path.exists(path) and os.path.samefile(path, args.elf):
            raise BadTandem(f"--tandem: {path} is the program itself")
    outputs = [_Output(path, hart, cleanup) for path, hart in zip(paths, machine.harts, strict=True)]
    attach(machine.harts, builds, [output.write for output in outputs], loaded, machine.memory_map.clint)
    return tuple(_described(path, number, builds[number].parameters) for number, path in enumerate(paths))


def _parameters(hart: Hart, dialect: str | None) -> Parameters:
    flen = 64 if "D" in hart.extensions else 32 if "F" in hart.extensions else 0
    return Parameters(hart.xlen, flen, dialect=DIALECTS[dialect or SPECIFICATION.name], supervisor=False)


def _described(path: str, hart: int, made: Parameters) -> Tandem:
    return Tandem(
        f"tandem{hart}", hart, str(Path(path).absolute()), made.dialect.name, made.flen, supervisor=made.supervisor
    )  # fmt: skip


def _appending(path: str, flags: int) -> int:
    """Whoever cuts the file short while it is written, as it grows without end, gets no hole for what was there."""
    return os.open(path, flags | os.O_APPEND, 0o666)


class _Output:
    """A file that a port writes. When it cannot be written any more, the hart goes on without the port."""

    def __init__(self, path: str, hart: Hart, cleanup: ExitStack) -> None:
        self._path, self._hart = path, hart
        try:
            self._file: FileIO | None = cleanup.enter_context(FileIO(path, "w", opener=_appending))
        except OSError as error:
            raise BadTandem(f"--tandem: cannot write {path}: {error.strerror}") from None

    def write(self, data: bytes) -> None:
        if self._file is None:
            return
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._file = self._hart.witness = None
            print(
                f"rvtrace sim: cannot write {self._path}: {error.strerror}; the tandem trace ends there",
                file=sys.stderr, flush=True,
            )  # fmt: skip
