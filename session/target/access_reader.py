"""What is saved of a target that is reached by accesses to its harts' registers, as for Control Transfer Records: a
`session.target.target_state.TargetReader`.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, runtime_checkable

from rvtrace_gdb.controlregs.target import CsrAccess
from rvtrace_gdb.decode.program.csrs import SATP
from rvtrace_gdb.session.capture.model import SavedAt, SavedRegisters
from rvtrace_gdb.session.target.saved_registers import read_registers
from rvtrace_gdb.support.errors import Progress, RvtraceError


@runtime_checkable
class WithMemory(Protocol):
    """An access to a hart that also reads memory, as the hart would."""

    def read_memory(self, address: int, size: int) -> bytes:
        """Return the bytes from an address on, as many as can be read; both are multiples of 4. Raises as `run`."""


class AccessReader:
    """A `Reader`. *access*: returns the access to a hart's registers; *harts*: those that are known."""

    piece, usual, is_fast = 1 << 10, 1 << 16, False

    def __init__(self, access: Callable[[int], CsrAccess], harts: Sequence[int]) -> None:
        self._access, self._harts = access, harts
        self._translated = False

    def unpolled(self) -> AbstractContextManager[None]:
        return nullcontext()

    def halted(self, harts: Collection[int]) -> set[int]:
        return {hart for hart in harts if self._is_halted(hart)}

    def all_halted(self) -> bool:
        return self.halted(self._harts) == set(self._harts)

    def registers(self, hart: int, at: SavedAt) -> SavedRegisters | None:
        found = read_registers(self._access(hart), hart, at)
        self._translated = found is not None and bool(found.registers.get(SATP))
        return found

    def memory(self, address: int, size: int, progress: Progress) -> bytes:
        access = self._access(self._harts[0])
        if self._translated or not isinstance(access, WithMemory):  # stubs translate addresses as the hart does
            return b""
        try:
            return access.read_memory(address, size)
        except RvtraceError:
            return b""

    def _is_halted(self, hart: int) -> bool:
        try:
            (pc,) = self._access(hart).run([("pc", None)])
        except RvtraceError:
            return False
        return isinstance(pc, int)
