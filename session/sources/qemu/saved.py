"""The registers and the memory of a QEMU that is stopped, as they are saved with a trace: a
`session.target.target_state.TargetReader`. QEMU gives memory at once, however much it is.

Its monitor lists a hart's registers as names with values of all digits: pc, the CSRs of traps, `x2/sp`, `f0/ft0`.
Source: QEMU's target/riscv/cpu.c, riscv_cpu_dump_state; the privilege mode is not in the list.
"""

import re
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from rvtrace_gdb.decode.program.csrs import FCSR, F, X
from rvtrace_gdb.decode.reconstruction.facts import KERNEL_HALF
from rvtrace_gdb.session.capture.model import SavedAt, SavedRegisters
from rvtrace_gdb.session.target.saved_registers import NAMES
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.transport.qemu import recorder
from rvtrace_gdb.transport.qemu.recorder import QemuError

_ENTRY = re.compile(r"(?<!\S)(?:([xf])(\d{1,2})/\S+|([a-z]+))\s+([0-9a-f]{8}|[0-9a-f]{16})(?!\S)")
_MACHINE = 3
_CSRS = {name: number for number, name in NAMES.items() if number < X}


class QemuReader:
    """A `Reader` of the QEMU whose recorder is in *folder*."""

    piece, usual, is_fast = 1 << 20, 1 << 22, True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def unpolled(self) -> AbstractContextManager[None]:
        return nullcontext()

    def halted(self, harts: Collection[int]) -> set[int]:
        return set(harts) if self.all_halted() else set()

    def all_halted(self) -> bool:
        try:
            return not recorder.is_running(self._folder)
        except QemuError:
            return False

    def registers(self, hart: int, at: SavedAt) -> SavedRegisters | None:
        try:
            return parsed(recorder.registers(self._folder, hart), hart, at)
        except QemuError:
            return None

    def memory(self, address: int, size: int, progress: Progress) -> bytes:
        """Physical memory; that of a kernel, in the upper half of the addresses, as the first hart sees it."""
        try:
            if address >= KERNEL_HALF:
                return recorder.virtual_memory(self._folder, 0, address, size)
            return recorder.memory(self._folder, address, size)
        except QemuError:
            return b""


class ResetReader(QemuReader):
    """A `Reader` of a QEMU that has run nothing yet. Harts are in machine mode then ("Reset" in the Privileged
    Architecture), and QEMU has cleared fcsr, which its list lacks (target/riscv/cpu.c, riscv_cpu_reset_hold).
    """

    def registers(self, hart: int, at: SavedAt) -> SavedRegisters | None:
        found = super().registers(hart, at)
        return None if found is None else replace(found, registers={FCSR: 0, **found.registers}, privilege=_MACHINE)


def parsed(text: str, hart: int, at: SavedAt) -> SavedRegisters | None:
    """Return the registers in the monitor's list, None if there is no pc."""
    pc, values = None, dict[int, int]()
    for kind, number, name, digits in _ENTRY.findall(text):
        value = int(digits, 16)
        if kind and int(number) < 32:
            values[(X if kind == "x" else F) + int(number)] = value
        elif name == "pc":
            pc = value
        elif name in _CSRS:
            values[_CSRS[name]] = value
    values.pop(X, None)
    return None if pc is None else SavedRegisters(hart, at, pc, values)
