"""The numbers of the CTR CSRs, and harts that have them.

Source: CTR 1.0, "CSR Listing", "Supervisor CTR Clear Instruction"; draft 0.1.4, 2.6; Smcsrind/Sscsrind for the selects.
"""

from typing import Any

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.clint import Clint
from rvtrace_gdb.transport.simulated.ctr.hart_side import CtrRegisters
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild, PrivilegeMode, Recorder
from rvtrace_gdb.transport.simulated.hart.csr import IllegalCsr
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.transport.simulated.hart.encoded_code import BASE, RAM_SIZE, SPIN, put

SCTRCTL, SCTRSTATUS, SCTRDEPTH, VSCTRCTL, MCTRCTL = 0x14E, 0x14F, 0x15F, 0x24E, 0x34E
SISELECT, SIREG, SIREG2, SIREG3 = 0x150, 0x151, 0x152, 0x153
MCTRCONTROL, MCTRCONTROLH, MCTRSTATUS = 0x381, 0x382, 0x383
SCTRCONTROL, SCTRCONTROLH, DRAFT_SCTRSTATUS = 0x181, 0x182, 0x183
VSCTRCONTROL, VSCTRCONTROLH = 0x281, 0x282
MISELECT = 0x350

FILTERS = 0xFF3E << 32
RATIFIED = FILTERS | 0x1B87  # U S M, RASEMU, STE MTE, BPFRZ LCOFIFRZ
DRAFT_M_AND_U = FILTERS | 1 << 38 | 0x1D05  # M U, MTE, RASEMU, BPFRZ LCOFIFRZ: no S mode, no S and STE
ALL = (1 << 64) - 1


def hart_with_ctr(version: str = "1.0", xlen: int = 64, *words: int, **built: Any) -> Hart:
    hart = Hart(Bus(BASE, RAM_SIZE), xlen, "IMAC", ctr=CtrBuild(version, **built))
    Clint(hart, hart.bus)
    put(hart, BASE, *words, SPIN)
    return hart


def written(hart: Hart, number: int, value: int) -> int:
    hart.csr_write(number, value, debug=True)
    return hart.csr_read(number, debug=True)


def accessible(hart: Hart) -> set[int]:
    """CSRs the hart has beyond those of one without CTR."""

    def numbers(of: Hart) -> set[int]:
        found = set()
        for number in range(0x1000):
            try:
                of.csr_read(number, debug=True)
                found.add(number)
            except IllegalCsr:
                pass
        return found

    return numbers(hart) - numbers(Hart(Bus(BASE, RAM_SIZE), hart.xlen, "IMAC"))


def registers(version: str, xlen: int = 64) -> tuple[Recorder, CtrRegisters]:
    """Of a hart with all modes."""
    recorder = Recorder(CtrBuild(version, modes=frozenset(PrivilegeMode)))
    return recorder, CtrRegisters(recorder, xlen)
