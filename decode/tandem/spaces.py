"""Address spaces: whether the address of a load or store is a physical one, or which page tables translate it.

Source: RISC-V Privileged Architecture, "Supervisor Address Translation and Protection (satp) Register", "Memory
Privilege in mstatus Register" (MPRV).
"""

from rvtrace_gdb.decode.tandem.csrs import MPP_SHIFT, MPRV, MSTATUS, PRIVILEGE, SATP
from rvtrace_gdb.decode.tandem.registers import Registers

PHYSICAL = 0
UNKNOWN = -1
"""The privilege mode, or satp, is not known: addresses are taken as they are, in a space of their own."""

_MACHINE = 3


def space_of(registers: Registers, group: int, xlen: int, *, since_reset: bool) -> int:
    """The space of data accesses after *group*: PHYSICAL, UNKNOWN, or the satp in force.

    In M-mode an mstatus that is not known counts as one without MPRV, which is 0 after a reset. *since_reset*: nothing
    was lost since there was one, so that a satp which was never written is that of a hart without page tables.
    """
    mode = registers.value(PRIVILEGE, group)
    if mode is None:
        return UNKNOWN
    if mode == _MACHINE:
        status = registers.value(MSTATUS, group)
        if status is None or not status & MPRV:
            return PHYSICAL
        mode = status >> MPP_SHIFT & 3
        if mode == _MACHINE:
            return PHYSICAL
    satp = registers.value(SATP, group)
    if satp is None:
        return PHYSICAL if since_reset and registers.last_write(SATP, group) is None else UNKNOWN
    return satp if satp >> (31 if xlen == 32 else 60) else PHYSICAL
