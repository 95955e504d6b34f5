"""ECALL, EBREAK, MRET, WFI and SCTRCLR. Compiled blocks call them with `Hart.position` set.

Sources: RISC-V Privileged Architecture 20240411, 3.3; RISC-V Debug Specification 1.0, 4.9.1 for EBREAK;
CTR 1.0, "Supervisor CTR Clear Instruction".
"""

from typing import Protocol

from rvtrace_gdb.transport.simulated.block import (
    BREAKPOINT,
    ECALL_FROM_M,
    ECALL_FROM_U,
    ILLEGAL_INSTRUCTION,
    DebugCause,
    DebugEntry,
    HartBlock,
    Trap,
)
from rvtrace_gdb.transport.simulated.clint import MTI, Clint
from rvtrace_gdb.transport.simulated.csr import EBREAKM, EBREAKU, MIE_BIT, MPIE_BIT, MPP, MPP_SHIFT, MPRV, TW, CsrFile
from rvtrace_gdb.transport.simulated.ctr.follower import CtrFollower

MACHINE, USER = 3, 0


class PrivilegedHart(Protocol):
    """What these instructions need of the hart."""

    privilege: int
    csr: CsrFile
    clint: Clint | None
    block: HartBlock
    position: int
    waiting: bool
    ctr: CtrFollower | None

    @property
    def mip(self) -> int: ...

    def state_changed(self) -> None: ...

    def situation_changed(self) -> None: ...


class SystemInstructions:
    """Of one hart. *word* is the instruction, for mtval when it is illegal."""

    def __init__(self, hart: PrivilegedHart) -> None:
        self._hart = hart

    def ecall(self) -> None:
        raise Trap(ECALL_FROM_M if self._hart.privilege == MACHINE else ECALL_FROM_U)

    def ebreak(self) -> None:
        if self._hart.csr.dcsr & (EBREAKM if self._hart.privilege == MACHINE else EBREAKU):
            raise DebugEntry(DebugCause.EBREAK)
        raise Trap(BREAKPOINT, self._hart.block.pcs[self._hart.position])

    def mret(self, word: int) -> int:
        """Returns where to go on."""
        if self._hart.privilege < MACHINE:
            raise Trap(ILLEGAL_INSTRUCTION, word)
        csr = self._hart.csr
        self._hart.privilege = csr.mstatus >> MPP_SHIFT & 3
        mie = MIE_BIT if csr.mstatus & MPIE_BIT else 0
        mprv = csr.mstatus & MPRV if self._hart.privilege == MACHINE else 0
        csr.mstatus = csr.mstatus & ~(MIE_BIT | MPP | MPRV) | mie | MPIE_BIT | mprv
        self._hart.situation_changed()
        return csr.mepc

    def wfi(self, word: int) -> None:
        """Time jumps to the timer interrupt if that is what will end the waiting; else the hart sleeps."""
        if self._hart.csr.mstatus & TW and self._hart.privilege < MACHINE:
            raise Trap(ILLEGAL_INSTRUCTION, word)
        if self._hart.mip & self._hart.csr.mie:
            return
        if self._hart.clint is not None and self._hart.csr.mie & 1 << MTI and self._hart.clint.can_wake:
            self._hart.clint.skip_to_timer()
            self._hart.situation_changed()
        else:
            self._hart.waiting = True
        self._hart.state_changed()

    def sctrclr(self, word: int) -> None:
        ctr = self._hart.ctr
        if ctr is None or ctr.recorder.build.version != "1.0" or self._hart.privilege == USER:
            raise Trap(ILLEGAL_INSTRUCTION, word)
        ctr.clear()
