"""The state of a hart of which some is unknown, and what executed runs ask of it.

CSRs are known as far as software cannot tell that hardware chose otherwise: what may ignore, change or count by itself
what is written to it (WARL fields, counters, pending interrupts) is unknown once it was written; mstatus is known bit
by bit.

Sources: RISC-V Instruction Set Manual, Volume II, 20240411, 3.1.6 (mstatus and its stacks), 3.1.15 (mepc), 3.3.2
(trap return), 10.1.1 (sstatus), Volume I, 20.2 (fcsr), 14.2 (LR/SC).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import FCSR, FFLAGS, FRM, MSTATUS, SATP, SSTATUS, F, X
from rvtrace_gdb.decode.reconstruction.facts import KnownState, KnownValue
from rvtrace_gdb.decode.reconstruction.known_memory import KnownMemory
from rvtrace_gdb.decode.semantics.encodings import signed
from rvtrace_gdb.decode.semantics.operations import AMO

MSCRATCH, SSCRATCH = 0x340, 0x140
MACHINE, SUPERVISOR = 3, 1
LOST_ALL = 0b1111
_REGISTERS = F + 32
"""Where the numbers of registers end."""

SIE_BIT, MIE_BIT, SPIE_BIT, MPIE_BIT, SPP, MPP_SHIFT, MPP, FS, MPRV = (
    1 << 1, 1 << 3, 1 << 5, 1 << 7, 1 << 8, 11, 3 << 11, 3 << 13, 1 << 17
)  # fmt: skip
_VS, _XS = 3 << 9, 3 << 15
_PLAIN_STATUS = MIE_BIT | MPIE_BIT
"""Fields of mstatus that hold what is written in every hart. What others hold depends on the modes that it has."""
_KEPT = {MSCRATCH, SSCRATCH}
"""CSRs that hold every value that is written."""
_VOLATILE = frozenset({
    0x344, 0x144, 0x244, 0x204, 0x104, 0x14D, 0x15C,  # mip, sip, vsip, vsie, sie, stimecmp, stimecmph
    0x015, *range(0xB00, 0xB20), *range(0xB80, 0xBA0), *range(0xC00, 0xC20), *range(0xC80, 0xCA0), 0xDA0, 0xE12,
    0x008, 0x009, 0x00F, 0xC20, 0xC21,  # vstart, vxsat, vcsr, vl, vtype
})  # fmt: skip
"""CSRs that change by themselves, by writes to others, or by vector instructions: never known."""


_GUEST = frozenset({0x280, 0x600, 0x680})
"""vsatp, hstatus, hgatp: how guests are entered, and what is translated in them."""
HOST_READS_ONLY = frozenset({1, 2, 3, 4, 5, 7, 8, 9, 0xA, 0xC, 0xE, 0xF, 0x10, 0x11, 0x13, 0x18, 0x20, 0x31})
"""Semihosting operations that return a value, or nothing, and write no memory (Semihosting for AArch32 and AArch64 3.0,
chapter 6, which RISC-V Semihosting follows).
"""


class AssumptionContradicted(Exception):
    """An instruction cannot have done what the history says: an assumption does not hold. *number*: in its run."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class TranslationChanged(Exception):
    """From behind an instruction on, addresses are no longer those of memory, or are again. *number*: in its run."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class RegistersCopy(NamedTuple):
    """A copy of the registers of a hart."""

    x: tuple[KnownValue, ...]
    f: tuple[KnownValue, ...]
    csrs: Mapping[int, int]
    status: tuple[int, int]
    privilege: KnownValue
    bare: bool | None
    may_modify: bool
    physical: bool


ValueListener = Callable[[int, str, KnownValue, int], None]
"""Called with an access: the number of its instruction in the run, "load" or "store", address, size in bytes."""


class ExecutedHart:
    """One hart. *x*, *f*: the registers, None for an unknown one; f registers have 64 bits, or 32 boxed ones.

    csrs       the known CSRs by number, but mstatus
    status     mstatus: (value, mask of its known bits)
    privilege  the mode, None: unknown
    """

    def __init__(self, xlen: int, memory: KnownMemory, *, machine_only: bool = False) -> None:
        self.xlen, self.memory, self._machine_only = xlen, memory, machine_only
        self._mask = (1 << xlen) - 1
        self.x: list[KnownValue] = [0] + [None] * 31
        self.f: list[KnownValue] = [None] * 32
        self.csrs: dict[int, int] = {}
        self.status = (0, 0)
        self.privilege: KnownValue = None
        self.bare: bool | None = False
        """Whether satp is known to translate nothing. None: there are guests, so that it does not tell all."""
        self.may_modify = False
        """Whether mstatus.MPRV may be set, so that loads and stores may be those of another mode."""
        self.physical = True
        """Whether addresses are those of memory. If not, loads are unknown, and stores lead nowhere: what they change
        is forgotten when `TranslationChanged` is raised.
        """
        self.lost = 0
        """Which registers of results have become unknown since this was 0, see `compiler.RESULTS`."""
        self.seen: ValueListener = unobserved
        self.stored_anywhere: Callable[[int], None] = unnoted
        """Called with the number of an instruction, in its run, that stores to an unknown address."""

    def begin(self, state: KnownState) -> None:
        """Set what is known at first."""
        self.x[:], self.f[:], self.csrs = list(state.x), list(state.f), {}
        self.x[0], self.privilege = 0, state.privilege
        for number, value in state.csrs.items():
            self.set_csr(number, value)
        self.physical = self.is_physical

    def set_csr(self, number: int, value: int) -> None:
        """Set a CSR to what a debugger has read from it, or written to it and read again."""
        if number == MSTATUS:
            self.status, self.may_modify = (value, self._mask), bool(value & MPRV)
        elif number == SSTATUS:
            self.status = (0, 0)
        elif number == SATP:
            self.bare = self.bare if self.bare is None else not value >> (60 if self.xlen == 64 else 31)
        elif number in (FFLAGS, FRM):
            self._write_fcsr(number, value)
        else:
            self._set(number, value)

    def write(self, registers: Mapping[int, int]) -> None:
        """Set registers to what a debugger wrote, by their numbers of the Debug Specification."""
        for number, value in registers.items():
            if X < number < F:
                self.x[number - X] = value
            elif F <= number < _REGISTERS:
                self.f[number - F] = value
            elif 0 <= number < X:
                self.set_csr(number, value)

    def snapshot(self) -> RegistersCopy:
        return RegistersCopy(
            tuple(self.x), tuple(self.f), dict(self.csrs), self.status, self.privilege,
            self.bare, self.may_modify, self.physical,
        )  # fmt: skip

    def restore(self, state: RegistersCopy) -> None:
        self.x[:], self.f[:], self.csrs = state.x, state.f, dict(state.csrs)
        self.status, self.privilege = state.status, state.privilege
        self.bare, self.may_modify, self.physical = state.bare, state.may_modify, state.physical

    def forget_registers(self) -> None:
        """Forget all registers: nobody knows what an instruction, or what is missing in the trace, did."""
        self.x[1:], self.f[:], self.lost = [None] * 31, [None] * 32, LOST_ALL
        self.csrs.clear()
        self.status, self.privilege = (0, 0), None
        self.bare, self.may_modify = None if self.bare is None else False, True

    def forget_memory(self, number: int = -1) -> None:
        """Forget all RAM: instruction *number* of the run stores to an unknown address."""
        if self.physical:
            self.seen(number, "store", None, 0)
            self.stored_anywhere(number)
            self.memory.forget()

    def seen_unknown_load(self, number: int) -> None:
        self.seen(number, "load", None, 0)

    @property
    def is_physical(self) -> bool:
        """Whether addresses are those of memory from here on, as far as known."""
        return self._machine_only or bool(self.bare) or (self.privilege == MACHINE and not self.may_modify)

    def _look_at_translation(self, number: int) -> None:
        if self.is_physical != self.physical:
            raise TranslationChanged(number)

    # -- what runs call

    def contradict(self, number: int) -> None:
        raise AssumptionContradicted(number)

    def equal(self, a: int, b: int, number: int) -> None:
        """Note that two registers are equal, which a branch shows. Raises Contradiction."""
        one, other = self.x[a], self.x[b]
        if one is None:
            self.x[a] = other
        elif other is None:
            self.x[b] = one
        elif one != other:
            raise AssumptionContradicted(number)

    def atomic(self, operation: str, address: KnownValue, value: KnownValue, size: int, number: int) -> KnownValue:
        """Do an AMO. Return the old value for rd."""
        self.seen(number, "load", address, size)
        self.seen(number, "store", address, size)
        if address is None or not self.physical:
            self._stores_anywhere(number)
            return None
        old = self.memory.load(address, size)
        bits = 8 * size
        new = None
        if operation == "swap":
            new = value
        elif old is not None and value is not None:
            new = AMO[operation](old, value & (1 << bits) - 1, bits)
        self.memory.store(address, size, new)
        return None if old is None else signed(old, bits) & self._mask

    def store_conditional(
        self, address: KnownValue, value: KnownValue, size: int, outcome: bool | None, number: int
    ) -> KnownValue:
        """Do an SC. *outcome*: whether it stored, None: not known. Return what goes to rd."""
        if outcome is False:
            return None
        self.seen(number, "store", address if outcome else None, size)  # without an outcome it need not have stored
        if address is None or not self.physical:
            self._stores_anywhere(number)
        else:
            if not outcome:
                self.stored_anywhere(number)
            self.memory.store(address, size, value if outcome else None)
        return 0 if outcome else None

    def _stores_anywhere(self, number: int) -> None:
        if self.physical:
            self.stored_anywhere(number)
            self.memory.forget()

    def trapless(self, number: int) -> None:
        """Do an environment call, or a breakpoint, without a trap in the history: something else did what it asks."""
        self.forget_registers()
        self.forget_memory(number)

    def semihosting(self, number: int) -> None:
        """Do a semihosting call that the history shows to return: the host sets a0, and may write memory."""
        if self.x[10] not in HOST_READS_ONLY:
            self.forget_memory(number)
        self.x[10] = None
        self.lost |= 1

    # -- CSRs

    def read_csr(self, number: int) -> KnownValue:
        """Return a CSR, None if it is not known."""
        return _csr_value(number, self.csrs, self.status, self._mask)

    def csr(self, operation: str, number: int, value: KnownValue, writes: bool, reads: bool, at: int) -> KnownValue:
        """Do a CSR instruction. *operation*: "w", "s", "c". Return what goes to rd."""
        old = self.read_csr(number) if reads or operation != "w" else None
        if writes:
            self._write_csr(operation, number, old, value, at)
        return old

    def _write_csr(self, operation: str, number: int, old: KnownValue, value: KnownValue, at: int) -> None:
        if number == MSTATUS:
            self._write_status(operation, value)
            self._look_at_translation(at)
            return
        new = value
        if operation != "w":
            unknown = old is None or value is None
            new = None if unknown else (old | value if operation == "s" else old & ~value)  # type: ignore[operator]
        if number in (FFLAGS, FRM, FCSR):
            self._write_fcsr(number, new)
        elif number == SATP:
            self.csrs.pop(number, None)
            if self.bare is not None:
                self.bare = new is not None and not new >> (60 if self.xlen == 64 else 31)
            self._look_at_translation(at)
        elif number in _GUEST:
            self.bare = None
            self._look_at_translation(at)
        elif number == SSTATUS:
            self.status = (0, 0)
        elif number in _KEPT and new is not None:
            self.csrs[number] = new & self._mask
        else:
            self.csrs.pop(number, None)

    def _write_status(self, operation: str, value: KnownValue) -> None:
        old, known = self.status
        if value is None:
            self.status, self.may_modify = (0, 0), True
            return
        if operation == "w" or value & MPRV:
            self.may_modify = operation != "c" and bool(value & MPRV)
        touched = self._mask if operation == "w" else value
        new = value if operation == "w" else old | value if operation == "s" else old & ~value
        stays = known & ~(touched & (old ^ new)) | touched & _PLAIN_STATUS
        if touched & new & MPP == MPP:
            stays |= MPP  # every hart has M-mode
        self.status = self._with_summary(new & stays, stays, touched)

    def _with_summary(self, new: int, known_bits: int, touched: int) -> tuple[int, int]:
        """Return mstatus and its known bits after a write to *touched* bits: SD follows from FS, VS, XS (3.1.6.6)."""
        summary = 1 << self.xlen - 1
        if new & known_bits & FS == FS:
            return new | summary, known_bits | summary
        if touched & (FS | _VS | _XS):
            return new & ~summary, known_bits & ~summary
        old, was_known = self.status
        return new & ~summary | old & summary, known_bits & ~summary | was_known & summary

    def _write_fcsr(self, number: int, new: KnownValue) -> None:
        fcsr = self.csrs.get(FCSR)
        if number == FCSR:
            self._set(FCSR, None if new is None else new & 0xFF)
        elif number == FRM:
            if fcsr is None or new is None:
                self._set(FCSR, None)
                self._set(FRM, None if new is None else new & 7)
            else:
                self._set(FCSR, fcsr & 0x1F | (new & 7) << 5)
        elif new is None or self.rounding() is None:
            frm = self.rounding()
            self._set(FCSR, None)
            self._set(FRM, frm)
        else:
            self._set(FCSR, new & 0x1F | (self.rounding() or 0) << 5)

    def _set(self, number: int, value: KnownValue) -> None:
        if value is None:
            self.csrs.pop(number, None)
        else:
            self.csrs[number] = value
        if number == FCSR:
            self.csrs.pop(FRM, None)

    def rounding(self) -> KnownValue:
        """Return the rounding mode in frm; None if it is unknown or reserved."""
        frm = self.read_csr(FRM)
        return None if frm is None or frm > 4 else frm

    def raise_flags(self, flags: KnownValue) -> None:
        """Add floating-point exception flags; None: unknown ones."""
        fcsr = self.csrs.get(FCSR)
        if fcsr is not None:
            self._write_fcsr(FFLAGS, None if flags is None else fcsr & 0x1F | flags)

    def forget_floating_state(self) -> None:
        """Forget what an instruction may have done to flags and to mstatus that may write registers of any kind."""
        self.raise_flags(None)
        value, known = self.status
        if value & known & FS != FS:
            lost = FS | _VS | _XS | 1 << self.xlen - 1
            self.status = (value & ~lost, known & ~lost)

    def dirty(self) -> None:
        """Note that a floating-point register was written: mstatus.FS is Dirty, and SD is set (3.1.6.6)."""
        value, known = self.status
        if value & known & FS != FS:
            self.status = (value | FS | 1 << self.xlen - 1, known | FS | 1 << self.xlen - 1)

    # -- traps

    def trap(self, mode: KnownValue, epc: KnownValue, cause: KnownValue, tval: KnownValue) -> None:
        """Take a trap into *mode* (None: it is not known which). Unknown values are None."""
        machine = mode is None or mode == MACHINE
        supervisor = mode is None or mode == SUPERVISOR
        for base, taken in ((0x300, machine), (0x100, supervisor)):
            if taken:
                for offset, value in ((0x41, epc), (0x42, cause), (0x43, tval)):
                    self._set(base + offset, value if mode is not None else None)
        value, known = self.status
        if mode == MACHINE:
            value, known = _pushed(value, known, MIE_BIT, MPIE_BIT, MPP, MPP_SHIFT, self.privilege)
        elif mode == SUPERVISOR:
            value, known = _pushed(value, known, SIE_BIT, SPIE_BIT, SPP, 8, self.privilege)
        else:
            lost = SIE_BIT | MIE_BIT | SPIE_BIT | MPIE_BIT | SPP | MPP
            value, known = value & ~lost, known & ~lost
        self.status, self.privilege = (value, known), mode

    def mret(self, number: int) -> None:
        """Return from a trap into M-mode."""
        value, known = self.status
        new = value >> MPP_SHIFT & 3 if known & MPP == MPP else None
        value, known = _popped(value, known, MIE_BIT, MPIE_BIT)
        lost = MPP | (0 if new == MACHINE else MPRV)
        if new is not None and new != MACHINE:
            known |= MPRV
            value &= ~MPRV
            lost = MPP
        self.status, self.privilege = (value & ~lost, known & ~lost), new  # MPP becomes the least mode that there is
        self.may_modify = self.may_modify and new in (None, MACHINE)
        self._look_at_translation(number)

    def sret(self, number: int) -> None:
        """Return from a trap into S-mode."""
        value, known = self.status
        new = value >> 8 & 1 if known & SPP else None
        value, known = _popped(value, known, SIE_BIT, SPIE_BIT)
        self.status, self.privilege, self.may_modify = (value & ~(SPP | MPRV), known & ~MPRV | SPP), new, False
        self._look_at_translation(number)


def csr_of(state: RegistersCopy, number: int, xlen: int) -> KnownValue:
    """Return a CSR, None if it is not known."""
    return _csr_value(number, state.csrs, state.status, (1 << xlen) - 1)


def _csr_value(number: int, csrs: Mapping[int, int], status: tuple[int, int], mask: int) -> KnownValue:
    if number in (FFLAGS, FRM):
        fcsr = csrs.get(FCSR)
        if number == FRM:
            return csrs.get(FRM) if fcsr is None else fcsr >> 5 & 7
        return None if fcsr is None else fcsr & 0x1F
    if number == MSTATUS:
        value, known = status
        return value if known == mask else None
    if number in _VOLATILE or number == SSTATUS:
        return None
    return csrs.get(number)


def _pushed(
    value: int, known_bits: int, enable: int, previous: int, mode: int, shift: int, privilege: KnownValue
) -> tuple[int, int]:
    """Return the status after a trap: the interrupt enable is saved and cleared, the mode is saved."""
    was, was_known = bool(value & enable), bool(known_bits & enable)
    value = value & ~(enable | previous | mode) | (previous if was else 0)
    known_bits = known_bits & ~(previous | mode) | enable | (previous if was_known else 0)
    if privilege is not None:
        value, known_bits = value | privilege << shift & mode, known_bits | mode
    return value & known_bits, known_bits


def _popped(value: int, known_bits: int, enable: int, previous: int) -> tuple[int, int]:
    was, was_known = bool(value & previous), bool(known_bits & previous)
    value = value & ~(enable | previous) | (enable if was else 0) | previous
    known_bits = known_bits & ~enable | previous | (enable if was_known else 0)
    return value & known_bits, known_bits


def unnoted(number: int) -> None:
    """Note nothing."""


def unobserved(number: int, kind: str, address: KnownValue, size: int) -> None:
    """Observe nothing."""
