"""What compiled blocks call for the instructions that do more than compute: memory, CSRs, system.

`STATEMENTS` are templates like those of `decode.semantics.operations`, of lines that may trap; they leave what goes to
rd in `v` and where to go on in `t`.

`DataAccess` does the loads, stores and atomics that compiled code does not do itself: devices, faults, reservations,
watchpoints, HTIF. Where the documents leave it open it is as in Spike: misaligned accesses trap before anything else
is looked at, AMO faults are store faults, only memory can be reserved, SC checks its address with or without
reservation. `SystemInstructions` are ECALL, EBREAK, MRET, WFI and SCTRCLR; compiled blocks call them with
`Hart.position` set.

Sources: The RISC-V Instruction Set Manual, Volume II, 20240411, for CSR and system, 3.1.15 for the causes, 3.3, and
3.6.3 for reservations; RISC-V Debug Specification 1.0, 4.9.1 for EBREAK; CTR 1.0, "Supervisor CTR Clear Instruction".
"""

from collections.abc import Callable
from typing import Protocol

from rvtrace_gdb.decode.program.instructions import STORE_FAILURE
from rvtrace_gdb.decode.semantics.encodings import signed
from rvtrace_gdb.decode.semantics.operations import AMO
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.clint import MTI, Clint
from rvtrace_gdb.transport.simulated.hart.block import (
    BREAKPOINT,
    ECALL_FROM_M,
    ECALL_FROM_U,
    ILLEGAL_INSTRUCTION,
    LOAD_ACCESS_FAULT,
    LOAD_MISALIGNED,
    STORE_ACCESS_FAULT,
    STORE_MISALIGNED,
    DebugCause,
    DebugEntry,
    HartBlock,
    HartTrap,
)
from rvtrace_gdb.transport.simulated.hart.csr import (
    EBREAKM,
    EBREAKU,
    MIE_BIT,
    MPIE_BIT,
    MPP,
    MPP_SHIFT,
    MPRV,
    TW,
    CsrFile,
    HartWithCsrs,
)
from rvtrace_gdb.transport.simulated.hart.triggers import TriggerAccess, TriggerCsrs, TriggerEffects


class AccessingHart(Protocol):
    """The part of the hart that data accesses use."""

    bus: Bus
    xlen: int
    position: int
    triggers: TriggerCsrs
    trigger_effects: TriggerEffects


class DataAccess:
    """The slow half of one hart's load-store unit. Values are unsigned.

    `tohost` is an address at which stores call `stored_tohost`, None for none.
    """

    def __init__(self, hart: AccessingHart, stored_tohost: Callable[[], None]) -> None:
        self._hart = hart
        self._bus = hart.bus
        self._base = hart.bus.main.base
        self._mask = (1 << hart.xlen) - 1
        self._stored_tohost = stored_tohost
        self._reservation: int | None = None
        self.tohost: int | None = None

    def reset(self) -> None:
        self._reservation = None

    def load(self, offset: int, nbytes: int, position: int) -> int:
        """Do a load that is not an aligned one from main memory. *offset* counts from the start of main memory."""
        self._hart.position = position
        return self._read(offset + self._base & self._mask, nbytes)

    def store(self, offset: int, nbytes: int, position: int, value: int) -> None:
        """Do a store that is not an aligned one to main memory, or one to `tohost`."""
        self._hart.position = position
        self._write(offset + self._base & self._mask, nbytes, value)

    def load_reserved(self, address: int, nbytes: int) -> int:
        self._watch(TriggerAccess.LOAD, address, nbytes)
        if address & nbytes - 1:
            raise HartTrap(LOAD_MISALIGNED, address)
        try:
            value = int.from_bytes(self._bus.read_bytes(address, nbytes), "little")
        except BusError:
            raise HartTrap(LOAD_ACCESS_FAULT, address) from None
        self._reservation = address
        return signed(value, 8 * nbytes) & self._mask

    def store_conditional(self, address: int, value: int, nbytes: int) -> int:
        """Do an SC. Return what goes to rd: 0 when it stored, 1 when not."""
        self._watch(TriggerAccess.STORE, address, nbytes)
        if address & nbytes - 1:
            raise HartTrap(STORE_MISALIGNED, address)
        try:
            self._bus.read_bytes(address, nbytes)  # faults without a reservation, too
        except BusError:
            raise HartTrap(STORE_ACCESS_FAULT, address) from None
        reserved, self._reservation = self._reservation == address, None
        if reserved:
            self._write(address, nbytes, value)
        return int(not reserved)

    def atomic(self, operation: str, address: int, value: int, nbytes: int) -> int:
        """Do an AMO. Return the old value for rd."""
        self._watch(TriggerAccess.LOAD | TriggerAccess.STORE, address, nbytes)
        if address & nbytes - 1:
            raise HartTrap(STORE_MISALIGNED, address)
        try:
            old = self._bus.read(address, nbytes)
        except BusError:
            raise HartTrap(STORE_ACCESS_FAULT, address) from None
        bits = 8 * nbytes
        self._write(address, nbytes, AMO[operation](old, value & (1 << bits) - 1, bits))
        return signed(old, bits) & self._mask

    def _watch(self, access: TriggerAccess, address: int, nbytes: int) -> None:
        if self._hart.triggers.watched & access:
            self._hart.trigger_effects.fire(access, address, nbytes)

    def _read(self, address: int, nbytes: int) -> int:
        if address & nbytes - 1:
            raise HartTrap(LOAD_MISALIGNED, address)
        try:
            return self._bus.read(address, nbytes)
        except BusError:
            raise HartTrap(LOAD_ACCESS_FAULT, address) from None

    def _write(self, address: int, nbytes: int, value: int) -> None:
        if address & nbytes - 1:
            raise HartTrap(STORE_MISALIGNED, address)
        try:
            self._bus.write(address, nbytes, value)
        except BusError:
            raise HartTrap(STORE_ACCESS_FAULT, address) from None
        if address == self.tohost:
            self._stored_tohost()


MACHINE, USER = 3, 0


class PrivilegedHart(HartWithCsrs, Protocol):
    """The part of the hart that these instructions use."""

    csr: CsrFile
    clint: Clint | None
    block: HartBlock
    position: int
    waiting: bool


class SystemInstructions:
    """The system instructions of one hart. *word* is the instruction, for mtval when it is illegal."""

    def __init__(self, hart: PrivilegedHart) -> None:
        self._hart = hart

    def ecall(self) -> None:
        raise HartTrap(ECALL_FROM_M if self._hart.privilege == MACHINE else ECALL_FROM_U)

    def ebreak(self) -> None:
        if self._hart.csr.debug.dcsr & (EBREAKM if self._hart.privilege == MACHINE else EBREAKU):
            raise DebugEntry(DebugCause.EBREAK)
        raise HartTrap(BREAKPOINT, self._hart.block.pcs[self._hart.position])

    def mret(self, word: int) -> int:
        """Do an MRET. Return the next pc."""
        if self._hart.privilege < MACHINE:
            raise HartTrap(ILLEGAL_INSTRUCTION, word)
        csr = self._hart.csr
        self._hart.privilege = csr.mstatus >> MPP_SHIFT & 3
        mie = MIE_BIT if csr.mstatus & MPIE_BIT else 0
        mprv = csr.mstatus & MPRV if self._hart.privilege == MACHINE else 0
        csr.mstatus = csr.mstatus & ~(MIE_BIT | MPP | MPRV) | mie | MPIE_BIT | mprv
        self._hart.situation_changed()
        return csr.trap.mepc

    def wfi(self, word: int) -> None:
        """Wait: time jumps to the timer interrupt if that will end the wait; otherwise the hart sleeps."""
        if self._hart.csr.mstatus & TW and self._hart.privilege < MACHINE:
            raise HartTrap(ILLEGAL_INSTRUCTION, word)
        if self._hart.mip & self._hart.csr.trap.mie:
            return
        if self._hart.clint is not None and self._hart.csr.trap.mie & 1 << MTI and self._hart.clint.can_wake:
            self._hart.clint.skip_to_timer()
            self._hart.situation_changed()
        else:
            self._hart.waiting = True
        self._hart.state_changed()

    def sctrclr(self, word: int) -> None:
        ctr = self._hart.ctr
        if ctr is None or ctr.recorder.build.version != "1.0" or self._hart.privilege == USER:
            raise HartTrap(ILLEGAL_INSTRUCTION, word)
        ctr.clear()


_READ_CSR = "v=csr.read({i})"

# Each is preceded by `h.position=...`, for they may trap or ask how many instructions have retired.
STATEMENTS: dict[str, tuple[str, ...]] = {
    "fence": (),
    "fence.i": ("h.flush_blocks()",),
    "ecall": ("system.ecall()",),
    "ebreak": ("system.ebreak()",),
    "mret": ("t=system.mret({word})",),
    "wfi": ("system.wfi({word})",),
    "sctrclr": ("system.sctrclr({word})",),
    "illegal": (f"raise Trap({ILLEGAL_INSTRUCTION},{{word}})",),
    "csrrw": (_READ_CSR, "csr.write({i},{a})"),
    "csrrw rd=0": ("csr.write({i},{a})",),
    "csrrs": (_READ_CSR, "csr.write({i},v|{a})"),
    "csrrs rs1=0": (_READ_CSR,),
    "csrrc": (_READ_CSR, "csr.write({i},v&~{a})"),
    "csrrc rs1=0": (_READ_CSR,),
    "csrrwi": (_READ_CSR, "csr.write({i},{rs1})"),
    "csrrwi rd=0": ("csr.write({i},{rs1})",),
    "csrrsi": (_READ_CSR, "csr.write({i},v|{rs1})"),
    "csrrsi rs1=0": (_READ_CSR,),
    "csrrci": (_READ_CSR, "csr.write({i},v&~{rs1})"),
    "csrrci rs1=0": (_READ_CSR,),
    "lr": ("v=data.load_reserved({a},{size})",),
    "sc": ("v=data.store_conditional({a},{b},{size})",),
    "amo": ("v=data.atomic({operation!r},{a},{b},{size})",),
}

# The arguments of `accessed` after an instruction that is not a load or store, by the first word of its key;
# {reported} is the operation, {data} the mask of as many bytes as were accessed.
REPORTED_ACCESSES = {
    "lr": "'load',{size},'',{a},v&{data}",
    "sc": f"*(('atomic',{{size}},{STORE_FAILURE!r}) if v else ('store',{{size}},'')),{{a}},{{b}}&{{data}}",
    "amo": "'atomic',{size},{reported!r},{a},v&{data},{b}&{data}",
    **{f"csrr{c}": f"'csr',{{X}}>>3,'r{c}',{{i}},v,{{a}}" for c in "wsc"},
    **{f"csrr{c}i": f"'csr',{{X}}>>3,'r{c}',{{i}},v,{{rs1}}" for c in "wsc"},
}
# The form of an instruction that reads what it overwrites, although its result is not used.
REPORTED_WHOLE = {"csrrw rd=0": "csrrw", "csrrwi rd=0": "csrrwi"}

# After these the hart must look again: where to go on, for interrupts, at its block cache.
ENDING = frozenset((
    "fence.i", "ecall", "ebreak", "mret", "wfi", "sctrclr", "illegal", "csrrw", "csrrw rd=0", "csrrs", "csrrc",
    "csrrwi", "csrrwi rd=0", "csrrsi", "csrrci",
))  # fmt: skip
