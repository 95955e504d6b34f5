"""CSRs of a hart that stands still, whatever reaches them: gdb's registers, register packets, OpenOCD.

A way to reach them takes a *batch*: many accesses in one go, for transports that can do that in one round trip.
"""

from collections.abc import Sequence
from typing import Protocol

from rvtrace_gdb.support.progress import Progress, silent

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
