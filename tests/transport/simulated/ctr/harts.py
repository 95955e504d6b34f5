"""Harts with Control Transfer Records 1.0 and hand-encoded code, and what they recorded.

Encodings: the RISC-V Instruction Set Manual, volume I, "Control Transfer Instructions"; numbers from CTR 1.0, "CSRs".
"""

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.clint import Clint
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.transport.simulated.hart.encoded_code import BASE, HANDLER, RAM_SIZE, SPIN, Csr, put

MCTRCTL, SCTRSTATUS, SISELECT = 0x34E, 0x14F, 0x150
U, M, BPFRZ, LCOFIFRZ, NTBREN = 1, 4, 1 << 11, 1 << 12, 1 << 36
EXCEPTION, INTERRUPT, TRAP_RETURN, NOT_TAKEN, TAKEN, DIRECT_CALL, DIRECT_JUMP = 1, 2, 3, 4, 5, 9, 11
Record = tuple[int, int, int]


def jal(rd: int, offset: int) -> int:
    bits = offset & 0x1FFFFF
    immediate = (bits >> 20) << 31 | (bits >> 1 & 0x3FF) << 21 | (bits >> 11 & 1) << 20 | (bits >> 12 & 0xFF) << 12
    return immediate | rd << 7 | 0x6F


def jalr(rd: int, rs1: int, offset: int = 0) -> int:
    return (offset & 0xFFF) << 20 | rs1 << 15 | rd << 7 | 0x67


def branch(funct3: int, rs1: int, rs2: int, offset: int) -> int:
    bits = offset & 0x1FFF
    immediate = (bits >> 12) << 31 | (bits >> 5 & 0x3F) << 25 | (bits >> 1 & 0xF) << 8 | (bits >> 11 & 1) << 7
    return immediate | rs2 << 20 | rs1 << 15 | funct3 << 12 | 0x63


def hart_with_ctr(*words: int, control: int = M, xlen: int = 64, extensions: str = "IMAC") -> Hart:
    """Recording as *control* says; traps go to HANDLER, where the hart then spins."""
    hart = Hart(Bus(BASE, RAM_SIZE), xlen, extensions, ctr=CtrBuild("1.0"))
    Clint(hart, hart.bus)
    put(hart, BASE, *words)
    put(hart, HANDLER, SPIN)
    hart.csr_write(Csr.MTVEC, HANDLER)
    hart.csr_write(MCTRCTL, control)
    return hart


def records(hart: Hart) -> list[Record]:
    """Source, target and type, the oldest first."""
    found = []
    for entry in range(16):
        hart.csr_write(SISELECT, 0x200 + entry, debug=True)
        source, target, data = (hart.csr_read(SISELECT + n, debug=True) for n in (1, 2, 3))
        if source & 1:
            found.append((source - 1, target, data & 0xF))
    return found[::-1]
