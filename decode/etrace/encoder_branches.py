"""The branches an E-Trace encoder has not reported yet: as a map, or counted as long as all were predicted correctly.

Source: Efficient Trace for RISC-V 2.0, "Format selection", "Format 0 packets", "Format 1 packets".
"""

from collections.abc import Mapping

from decode.etrace.encoder_models import Predictor
from decode.etrace.encoder_options import EncoderOptions
from decode.etrace.layout import BRANCH_COUNT_BITS, LEAST_BRANCH_COUNT, BranchFmt, Ext, Format

_OPT_EXT, _DIFF_DELTA, _ADDR_ONLY = int(Format.OPT_EXT), int(Format.DIFF_DELTA), int(Format.ADDR_ONLY)
_COUNT = int(Ext.BRANCH_COUNT)
_NO_ADDR, _ADDR, _ADDR_FAIL = int(BranchFmt.NO_ADDR), int(BranchFmt.ADDR), int(BranchFmt.ADDR_FAIL)
_FULL = 31
MOST = LEAST_BRANCH_COUNT + (1 << BRANCH_COUNT_BITS) - 1
"""Branches predicted correctly at which they are reported whatever comes."""

Description = tuple[int, int | None, Mapping[str, int]]
"""Format, subformat and fields of a packet."""


class Branches:
    """Outcomes not reported yet, the oldest in bit 0 of *map*, 1 for not taken; *count* of them."""

    def __init__(self, options: EncoderOptions) -> None:
        self._predictor = Predictor(options.parameters) if options.modes.branch_prediction else None
        self.clear()

    def clear(self) -> None:
        """All are reported."""
        self.map = self.count = 0
        self._correct = self._predictor is not None  # all were predicted
        self._failed = False  # and the last one was not, with too many before it for a map

    def follow(self, pc: int, taken: bool) -> None:
        """The branch at *pc* retired."""
        predicted = self._predictor is not None and self._predictor.follow(pc, taken)
        if self._correct and self.count >= _FULL:
            if not predicted:
                self._failed = True
            else:
                self.count += 1
            return
        self._correct = self._correct and predicted
        self.map |= (not taken) << self.count
        self.count += 1

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

    @property
    def is_full(self) -> bool:
        """They are to be reported, without an address (rpt_br)."""
        return self._failed or (self.count == _FULL and not self._correct)

    @property
    def is_at_limit(self) -> bool:
        """They are to be reported, with an address."""
        return self.count >= MOST

    def alone(self) -> Description:
        """The packet that reports them without an address."""
        if self.is_counted:
            return _OPT_EXT, _COUNT, {"branch_count": self.count - _FULL, "branch_fmt": _NO_ADDR}
        return _DIFF_DELTA, None, {"branches": 0, "branch_map": self.map}

    def fields(self) -> dict[str, int]:
        """branches and branch_map."""
        return {"branches": self.count, "branch_map": self.map} if self.count else {"branches": 0}

    def reporting(self, fields: dict[str, int]) -> Description:
        """The packet that reports them with an address, whose *fields* are given."""
        if self.is_counted:
            branch_fmt = _ADDR_FAIL if self._failed else _ADDR
            return _OPT_EXT, _COUNT, {"branch_count": self.count - _FULL, "branch_fmt": branch_fmt, **fields}
        if self.count:
            return _DIFF_DELTA, None, {"branches": self.count, "branch_map": self.map, **fields}
        return _ADDR_ONLY, None, fields
