"""Harts behind stubs that lie, and all procedures, for the tests of those."""

from collections.abc import Callable

import pytest

from rvtrace_gdb.controlregs.ctr.procedures import clear, read, start, status, stop
from rvtrace_gdb.controlregs.ctr.settings import CtrRequest
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS, CtrVersion
from rvtrace_gdb.controlregs.target import CsrAccess
from tests.controlregs.ctr.hart_model import CtrHart, Lies

VERSION = pytest.mark.parametrize("version", ["1.0", "0.1.4"])
CONTROL = {"1.0": 0x34E, "0.1.4": 0x381}
STATUS = {"1.0": 0x14F, "0.1.4": 0x383}
SELECT = {"1.0": 0x150, "0.1.4": 0x350}
NAMES = {0x34E: "mctrctl", 0x381: "mctrcontrol", 0x14F: "sctrstatus", 0x383: "mctrstatus", 0x15F: "sctrdepth",
         0x150: "siselect", 0x350: "miselect", 0x151: "sireg", 0x351: "mireg", 0x152: "sireg2", 0x352: "mireg2",
         0x153: "sireg3", 0x353: "mireg3", 0x24E: "vsctrctl", 0x281: "vsctrcontrol"}  # fmt: skip
Procedure = Callable[[CsrAccess, CtrVersion], object]
PROCEDURES: dict[str, Procedure] = {
    "start": lambda access, version: start(access, version, CtrRequest(depth=32), "ctr0"),
    "stop": lambda access, version: stop(access, version, None),
    "clear": clear,
    "status": lambda access, version: status(access, version, "ctr0"),
    "read": lambda access, version: read(access, version, "ctr0"),
}


def hart_with(version: str, **lies: object) -> CtrHart:
    """One that has 20 records of 64."""
    hart = CtrHart(version, hypervisor=True)
    hart.code, hart.control = hart.codes[2], 7
    for n in range(20):
        hart.record(0x1000 + 4 * n, 0x2000 + 4 * n, 9)
    hart.lies = Lies(**lies)  # type: ignore[arg-type]
    return hart


def begin(hart: CtrHart, **wishes: object) -> object:
    return start(hart, VERSIONS[hart.version], CtrRequest(**wishes), "ctr0")  # type: ignore[arg-type]
