"""The ports of tandem traces on the simulated target: each hart has one, whose bytes go to a file."""

import argparse
import os
import sys
from contextlib import ExitStack
from io import FileIO
from pathlib import Path

from rvtrace_gdb.console.commands.sim.request import TandemPortRequest
from rvtrace_gdb.console.options import forms
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, SPECIFICATION, TandemParameters
from rvtrace_gdb.session.description.model import TandemDescription
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.bus import ElfFile
from rvtrace_gdb.transport.simulated.devices.tandem import Addresses, TandemBuild, attach
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.machine import Machine


class BadTandem(RvtraceError):
    """Options of tandem traces that exclude each other, or a file that cannot be written."""


def add_tandem_arguments(parser: argparse._ArgumentGroup) -> None:
    """Add the options that `tandem_files` and `with_tandem_ports` read."""
    parser.add_argument(
        "--tandem", metavar="FILE",
        help="write a tandem trace of everything that the hart does, from its reset on; for several harts to FILE.0,"
        " ...; `trace start` reads it there (docs/simulated-target.md)",
    )  # fmt: skip
    forms.add_form_arguments(parser, "--tandem-")


def tandem_files(request: TandemPortRequest, harts: int) -> list[str]:
    """Return the files of the traces, by hart; none without --tandem. Raises BadTandem."""
    if request.file is None:
        for option, value in (("--tandem-dialect", request.dialect), ("--tandem-forms", request.forms)):
            if value:
                raise BadTandem(f"{option}: say where the tandem trace goes, --tandem FILE")
        return []
    return [request.file] if harts == 1 else [f"{request.file}.{number}" for number in range(harts)]


def with_tandem_ports(
    request: TandemPortRequest, elf: str, machine: Machine, cleanup: ExitStack
) -> tuple[TandemDescription, ...]:  # fmt: skip
    """Add ports to the harts of *machine*, before they run, and return their descriptions. Raises RvtraceError."""
    paths = tandem_files(request, len(machine.harts))
    if not paths:
        return ()
    if machine.branch_tracers:
        raise BadTandem("--tandem: the simulated harts have either a TRACER or a tandem port: leave out --tandem")
    if machine.tacit_encoders:
        raise BadTandem("--tandem: the simulated harts have either TACIT or a tandem port: leave out --tandem")
    chosen = forms.chosen_forms(request.forms, "--tandem-forms")
    addresses = Addresses.EFFECTIVE if not chosen.physical else Addresses.BOTH
    if not chosen.effective:
        addresses = Addresses.PHYSICAL
    builds = [
        TandemBuild(_parameters(hart, request.dialect), chosen.forms, addresses, chosen.pc_physical)
        for hart in machine.harts
    ]
    parts = ElfFile(elf).segments()
    loaded = [(part.address, part.data + bytes(part.memory_size - len(part.data))) for part in parts]
    for path in paths:
        if os.path.exists(path) and os.path.samefile(path, elf):
            raise BadTandem(f"--tandem: {path} is the program itself")
    outputs = [_PortOutput(path, hart, cleanup) for path, hart in zip(paths, machine.harts, strict=True)]
    attach(machine.harts, builds, [output.write for output in outputs], loaded, machine.memory_map.clint)
    return tuple(_described(path, number, builds[number].parameters) for number, path in enumerate(paths))


def _parameters(hart: Hart, dialect: str | None) -> TandemParameters:
    flen = 64 if "D" in hart.extensions else 32 if "F" in hart.extensions else 0
    return TandemParameters(hart.xlen, flen, dialect=DIALECTS[dialect or SPECIFICATION.name], supervisor=False)


def _described(path: str, hart: int, parameters: TandemParameters) -> TandemDescription:
    return TandemDescription(
        f"tandem{hart}", hart, str(Path(path).absolute()), parameters.dialect.name, parameters.flen,
        supervisor=parameters.supervisor
    )  # fmt: skip


def _appending(path: str, flags: int) -> int:
    """Open a file for appending, so that truncating it while it is written does not leave a hole."""
    return os.open(path, flags | os.O_APPEND, 0o666)


class _PortOutput:
    """A file that a port writes. If it cannot be written any more, the hart continues without the port."""

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
                f"rvtrace: cannot write {self._path}: {error.strerror}; the tandem trace ends there",
                file=sys.stderr, flush=True,
            )  # fmt: skip
