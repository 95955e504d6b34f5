"""A simple predictor of transfers, so that there are mispredictions to record: MISP of ctrtarget.

Branches backward are expected to be taken, others not. An indirect jump is expected to go where it went the last time
(the first time, nowhere); returns and what the code tells are expected rightly.
"""

from rvtrace_gdb.controlregs.ctr.transfers import TransferType
from rvtrace_gdb.transport.simulated.isa import Operation

_INDIRECT = (
    TransferType.INDIRECT_CALL,
    TransferType.INDIRECT_JUMP,
    TransferType.COROUTINE_SWAP,
    TransferType.OTHER_INDIRECT_JUMP,
)


class Predictor:
    """Of one hart."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}

    def wrong(self, type: TransferType, operation: Operation, source: int, target: int) -> bool:
        """Whether this transfer was not expected; it is the next time, if it can be."""
        if type is TransferType.TAKEN_BRANCH:
            return operation.imm >= 0
        if type is TransferType.NOT_TAKEN_BRANCH:
            return operation.imm < 0
        if type not in _INDIRECT:
            return False
        expected, self._last[source] = self._last.get(source), target
        return target != expected
