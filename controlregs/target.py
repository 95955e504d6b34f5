"""What the procedures in `controlregs` need of a transport. Transports satisfy these protocols by having the methods.

`Target` accesses memory-mapped registers, `CsrAccess` the CSRs of a halted hart, by any transport: gdb's registers,
register packets, OpenOCD, USB. A `CsrAccess` takes a *batch* of accesses, because some transports can do many accesses
in one round trip.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from rvtrace_gdb.support.errors import Progress, silent


class Target(Protocol):
    """Registers and memory on the target's system bus, by physical address, whether its harts run or are halted.

    Every method raises leaves of `support.errors.RvtraceError`. An error with an attribute `address` means that this
    access was refused; any other means that the target cannot be reached at all. `partial`, if present, holds the bytes
    read before it.
    """

    def read32(self, address: int) -> int:
        """Return the 32-bit word at *address* (a multiple of 4), by exactly one 32-bit bus access."""
        ...

    def write32(self, address: int, value: int) -> None:
        """Store *value* at *address* (a multiple of 4), by exactly one 32-bit bus access."""
        ...

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        """Return *nbytes* bytes of memory from *address* (both multiples of 4). *progress* may raise `Cancelled`."""
        ...


@runtime_checkable
class WideTarget(Protocol):
    """A target on which 64 bits can be stored at once, as registers of 64 bits may need it."""

    def write64(self, address: int, value: int) -> None:
        """Store *value* at *address* (a multiple of 8), by exactly one 64-bit bus access. Raises as `Target` does."""
        ...


@runtime_checkable
class DataPort(Protocol):
    """A target that can read a register with a side effect on read (trRamData) repeatedly, without a round trip for
    each word.
    """

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
        """Return the results of *words* single 32-bit reads of the same *address*, in order, little-endian."""
        ...


@runtime_checkable
class BurstPort(Protocol):
    """A target that can read such a register faster, without knowing how often it has if an access fails."""

    def read_port_burst(self, address: int, words: int, progress: Progress = silent) -> bytes | None:
        """Return the same as `read_data_port`; None if it cannot: then the register has been read any number of times.
        """
        ...


CsrName = int | str
"""A CSR's number (RISC-V Privileged Architecture, 2.1), or "pc" or "priv": bits 1:0 the privilege mode, bit 2 V."""
CsrRequest = tuple[CsrName, int | None]
"""A register and the value to write, or None to read it."""
CsrAnswer = int | str
"""The value that was read (unsigned, XLEN bits), 0 for a write that was accepted, or why the access was refused (a few
words).
"""


class CsrAccess(Protocol):
    """One hart's CSRs. *name*: the transport, for messages ("OpenOCD 127.0.0.1:6666").

    An accepted write need not have had any effect, and a value that is read may be older than a refused write: users of
    this read back what they wrote, and trust only that.
    """

    @property
    def name(self) -> str: ...

    @property
    def xlen(self) -> int:
        """The width of a CSR, in bits."""
        ...

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        """Do the accesses and return the answers in order, up to and including the first refusal; the accesses after it
        are not done.

        Raises `HartRuns` when the hart is not halted, and RvtraceError leaves when it cannot be reached.
        """
        ...
