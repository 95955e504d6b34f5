"""Which entries of a trace of transfers can be what an encoder sent: nearly any bytes are some pair or some packet.

No program is needed: the code from where a pair of NEORV32's TRACER leads up to the source of the next one is straight,
and packets of TACIT follow a synchronization.
"""

from rvtrace_gdb.decode.branches import neorv32
from rvtrace_gdb.decode.branches.items import BranchItem
from rvtrace_gdb.decode.branches.tacit.packets import FULL, TacitKind

_MOST_STRAIGHT = 1 << 16  # bytes of code without a transfer: more are noise


class PlausibleEntries:
    """Judges the entries of a trace of this *kind* (`decode.branches.READERS`), which it is given in their order."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._before: neorv32.DeltaPair | None = None
        self._is_synchronized = False  # TACIT: since a synchronization there are packets alone

    def __call__(self, item: BranchItem) -> bool:
        """Return whether the entry can follow those before it."""
        if item.problem:
            self._is_synchronized = False
            return False
        if self._kind == "neorv32":
            return self._follows(neorv32.pair_of(*neorv32.ENTRY.unpack(item.raw)))
        if self._kind == "tacit":
            first = item.raw[0]
            self._is_synchronized |= first & 3 == FULL and first >> 2 & 7 == TacitKind.SYNC
            return self._is_synchronized
        return True

    def _follows(self, pair: neorv32.DeltaPair) -> bool:
        before, self._before = self._before, pair
        if not any(pair):
            return False  # empty memory
        if before is None or pair.first:
            return before is None or not before.first  # hardly any trace is of single pairs
        return 0 <= pair.source - before.destination < _MOST_STRAIGHT
