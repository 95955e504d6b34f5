"""What a hart tells its CTR recorder: a control transfer and the privilege modes it is between.

Source: CTR 1.0, "External Traps", for which modes are more privileged.
"""

from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.controlregs.ctr.transfers import TransferType


class Mode(IntEnum):
    """A privilege mode: its code in bits 1:0, the virtualization mode V in bit 2. S is HS where there is H."""

    U = 0
    S = 1
    M = 3
    VU = 4
    VS = 5

    @property
    def virtual(self) -> bool:
        """V=1."""
        return bool(self & 4)


ABOVE = {
    Mode.VU: (Mode.VS, Mode.S, Mode.M),
    Mode.VS: (Mode.S, Mode.M),
    Mode.U: (Mode.S, Mode.M),
    Mode.S: (Mode.M,),
    Mode.M: (),
}
"""The more privileged modes that a trap from a mode can lead to, the nearest first."""

TRAPS = (TransferType.EXCEPTION, TransferType.INTERRUPT)
CALLS = (TransferType.INDIRECT_CALL, TransferType.DIRECT_CALL)
UNWINDING = (TransferType.COROUTINE_SWAP, TransferType.FUNCTION_RETURN)
"""What takes the youngest call off a stack; a swap puts another there."""


class Transfer(NamedTuple):
    """One transfer, at the moment it retires or the trap is taken.

    source, target  addresses; of a trap the epc and the handler
    now             cycles that have passed (the `mcycle` of a hart that nobody writes), the transfer's own included
    cause           of a trap: xcause without the interrupt bit
    """

    type: TransferType
    source: int
    target: int
    source_mode: Mode
    target_mode: Mode
    now: int
    cause: int | None = None
    mispredicted: bool = False
