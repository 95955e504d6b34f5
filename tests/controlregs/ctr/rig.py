"""What tests of the CTR procedures share."""

from typing import Any

import pytest

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.controlregs.ctr.procedures import Started, start
from rvtrace_gdb.controlregs.ctr.settings import CtrRequest
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.support.errors import Progress, silent
from tests.controlregs.ctr.hart_model import CtrHart

VERSION = pytest.mark.parametrize("version", ["1.0", "0.1.4"])
XLEN = pytest.mark.parametrize("xlen", [32, 64])
NOT_CALLS = frozenset(TransferType(code) for code in (1, 2, 3, 5, 10, 11, 14, 15))
INHIBIT_NOT_CALLS = sum(1 << 32 + code for code in NOT_CALLS)
# What the documents say M, S and U are: bits 2, 1, 0 in 1.0; 0, 1, 2 in the draft.
MODES = {"1.0": {"m": 4, "s": 2, "u": 1}, "0.1.4": {"m": 1, "s": 2, "u": 4}}


def begin(hart: CtrHart, progress: Progress = silent, **wishes: Any) -> Started:
    return start(hart, VERSIONS[hart.version], CtrRequest(**wishes), "ctr0", progress=progress)


def junk(hart: CtrHart) -> None:
    """Records of somebody else."""
    for n in range(300):
        hart.record(0x1000 + 4 * n, 0x2000, 9)


def changed(hart: CtrHart) -> tuple[object, ...]:
    return hart.control, hart.vs_control, hart.code, hart.frozen
