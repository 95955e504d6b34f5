"""Captures of one run on the simulated hart: of its tandem port, and of traces that have addresses alone, with what a
debugger saves where they begin and end.
"""

import contextlib
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.capture.model import SavedAt, SavedMemory, SavedRegisters
from rvtrace_gdb.session.formats.imports.raw_import import tandem_capture
from tests.transport.simulated.devices.tandem_port import CSRS, Ported

RAM = (0x8000_0000, 0x10_0000)
_SAVED = ("mstatus", "mtvec", "mscratch", "mepc", "mcause", "mtval", "mie")


def captures(elf: Path, folder: Path, steps: int, *formats: str) -> Mapping[str, Path]:
    """Return captures of the run: "tandem", and those of *formats*, "ntrace" or "etrace"."""
    ported = Ported(elf, extensions="IMAC")
    begin = _registers(ported, SavedAt.START)
    for _ in range(steps):
        ported.hart.step()
    end = _registers(ported, SavedAt.STOP)
    found = {"tandem": folder / "tandem.rvt"}
    save(tandem_capture("x", bytes(ported.traces[0]), ported.parameters, ported.image), found["tandem"])
    log = folder / "run.log"
    log.write_text("".join(f"0x{pc:x}\n" for pc in ported.decoded().history.pcs()))
    memory = SavedMemory(SavedAt.STOP, RAM[0], bytes(ported.machine.bus.read_bytes(*RAM)))
    for name in formats:
        file = found[name] = folder / f"{name}.rvt"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert main(["encode", "--elf", str(elf), "--pcs", str(log), "-o", str(file), f"--{name}"]) == 0
        ranges = (MemoryRange(*RAM, MemoryKind.RAM),)
        save(replace(load(file), registers=(begin, end), memory=(memory,), ranges=ranges), file)
    return found


def _registers(ported: Ported, at: SavedAt) -> SavedRegisters:
    hart = ported.hart
    registers = {0x1000 + number: value for number, value in enumerate(hart.x)}
    registers |= {CSRS[name]: hart.csr_read(CSRS[name], debug=True) for name in _SAVED}
    return SavedRegisters(0, at, hart.pc, registers, at is SavedAt.START, hart.privilege)
