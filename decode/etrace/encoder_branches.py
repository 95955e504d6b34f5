"""The branches an E-Trace encoder has not reported yet: as a map, or counted as long as all were predicted correctly.

Source: Efficient Trace for RISC-V 2.0, "Format selection", "Format 0 packets", "Format 1 packets".
"""

from collections.abc import Mapping

from rvtrace_gdb.decode.etrace.encoder_models import Predictor
from rvtrace_gdb.decode.etrace.encoder_options import EncoderOptions
from rvtrace_gdb.decode.etrace.layout import BRANCH_COUNT_BITS, LEAST_BRANCH_COUNT, BranchFmt, Ext, Format

_OPT_EXT, _DIFF_DELTA, _ADDR_ONLY = int(Format.OPT_EXT), int(Format.DIFF_DELTA), int(Format.ADDR_ONLY)
_COUNT, _TARGET = int(Ext.BRANCH_COUNT), int(Ext.JUMP_TARGET)
_NO_ADDR, _ADDR, _ADDR_FAIL = int(BranchFmt.NO_ADDR), int(BranchFmt.ADDR), int(BranchFmt.ADDR_FAIL)
_FULL = 31
MOST = LEAST_BRANCH_COUNT + (1 << BRANCH_COUNT_BITS) - 1
"""Branches predicted correctly at which they are reported whatever comes."""

Description = tuple[int, int | None, Mapping[str, int]]
"""Format, subformat and fields of a packet."""


class Branches:
    """Outcomes not reported yet.

    map     the oldest in bit 0, 1 for not taken
    count   how many, or how many were predicted correctly if they are too many for a map
    is_due  they are to be reported, whatever else is (rpt_br, or a count at its highest value)
    """

    def __init__(self, options: EncoderOptions) -> None:
        self._predictor = Predictor(options.parameters) if options.modes.branch_prediction else None
        self.clear()

    def clear(self) -> None:
        """All are reported."""
        self.map = self.count = 0
        self.is_due = False
        self._correct = self._predictor is not None  # all were predicted
        self._failed = False  # and the last one was not, with too many before it for a map

    def follow(self, pc: int, taken: bool) -> None:
        """The branch at *pc* retired."""
        if self._predictor is None:
            if not taken:
                self.map |= 1 << self.count
            self.count += 1
            self.is_due = self.count == _FULL
            return
        predicted = self._predictor.follow(pc, taken)
        if self._correct and self.count >= _FULL:
            self._failed = not predicted
            self.count += predicted
            self.is_due = self._failed or self.count >= MOST
            return
        self._correct = self._correct and predicted
        if not taken:
            self.map |= 1 << self.count
        self.count += 1
        self.is_due = self.count == _FULL and not self._correct

    def synchronize(self, pc: int, taken: bool | None, *, reset: bool) -> None:
        """A synchronization packet reports the instruction at *pc*, which *taken* tells if it is a branch.

        With *reset* the predictor begins anew, and follows that branch.
        """
        if self._predictor is not None and reset:
            self._predictor.reset()
            if taken is not None:
                self._predictor.follow(pc, taken)
        self.clear()

    @property
    def is_counted(self) -> bool:
        """They can only be reported as a count."""
        return self._correct and self.count >= _FULL

    def alone(self) -> Description:
        """The packet that reports them without an address."""
        if self.is_counted:
            return _OPT_EXT, _COUNT, {"branch_count": self.count - _FULL, "branch_fmt": _NO_ADDR}
        return _DIFF_DELTA, None, {"branches": 0, "branch_map": self.map}

    def indexed(self, index: int, fields: Mapping[str, int]) -> Description:
        """The packet that reports them with an *index* of the jump target cache, of which *fields* say more."""
        branches = {"branches": self.count, "branch_map": self.map} if self.count else {"branches": 0}
        return _OPT_EXT, _TARGET, {"index": index, **branches, **fields}

    def addressed(self, fields: Mapping[str, int]) -> Description:
        """The packet that reports them with an address, whose *fields* are given."""
        if self.is_counted:
            branch_fmt = _ADDR_FAIL if self._failed else _ADDR
            return _OPT_EXT, _COUNT, {"branch_count": self.count - _FULL, "branch_fmt": branch_fmt, **fields}
        if self.count:
            return _DIFF_DELTA, None, {"branches": self.count, "branch_map": self.map, **fields}
        return _ADDR_ONLY, None, fields
