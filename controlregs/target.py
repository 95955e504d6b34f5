"""What the procedures of this room need of a way to reach a target. Transports satisfy it by having the methods.

`Target` accesses memory-mapped registers, `CsrAccess` the CSRs of a halted hart, whatever reaches them: gdb's
registers, register packets, OpenOCD, USB. A `CsrAccess` takes a *batch*, which is many accesses in one go, because
some transports can do that in one round trip.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from rvtrace_gdb.support.errors import Progress, silent


class Target(Protocol):
    """Registers and memory on the target's system bus, by physical address, whether its harts run or are halted.

    Every method raises leaves of `support.errors.RvtraceError`. One with an attribute `address` means that this access
    was refused, any other that the target cannot be reached at all; `partial`, if there, has the bytes read before it.
    """

    def read32(self, address: int) -> int:
        """The 32-bit word at *address* (a multiple of 4), by exactly one 32-bit bus access."""
        ...

    def write32(self, address: int, value: int) -> None:
        """Store *value* at *address* (a multiple of 4), by exactly one 32-bit bus access."""
        ...

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        """*nbytes* bytes of memory from *address* (both multiples of 4). The watcher may raise `Cancelled`."""
        ...


@runtime_checkable
class DataPort(Protocol):
    """A target that can empty a register with a side effect on read (trRamData) without one round trip per word."""

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
        """The results of *words* single 32-bit reads of the same *address*, in order, little-endian."""
        ...


Register = int | str
"""A CSR's number (RISC-V Privileged Architecture, 2.1), or "pc" or "priv": bits 1:0 the privilege mode, bit 2 V."""
Access = tuple[Register, int | None]
"""(register, value to write), or (register, None) to read it."""
Answer = int | str
"""What was read (unsigned, XLEN bits), 0 for a write that was accepted, or why the access was refused (a few words)."""


class CsrAccess(Protocol):
    """One hart's CSRs. *name*: the way they are reached, for messages ("OpenOCD 127.0.0.1:6666").

    An accepted write need not have had any effect, and what is read may be what was there before a refused one: who
    uses this reads back what it wrote, and believes only that.
    """

    @property
    def name(self) -> str: ...

    @property
    def xlen(self) -> int:
        """Width of a CSR, in bits."""
        ...

    def run(self, accesses: Sequence[Access], progress: Progress = silent) -> list[Answer]:
        """The answers in order, up to and with the first that was refused: what comes behind it is not done.

        Raises `HartRuns` when the hart does not stand still, and RvtraceError leaves when it cannot be reached.
        """
        ...
