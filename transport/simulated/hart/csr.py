"""The control and status registers of the simulated hart.

A hart with M and U mode, without S mode, PMP, and performance counters beyond cycle and instret: what Spike models
with `--priv=mu --pmpregions=0`, which is the reference for every WARL choice here. Unlike Spike's, misa is read-only,
the triggers are of type 2 only, there is no tcontrol, and there is scontext: optional, and open to M mode, where a
kernel can name its tasks with it. hcontext needs the H extension; its alias mcontext does not.

Sources: RISC-V Privileged Architecture 20240411, chapters 2 and 3; RISC-V Debug Specification 1.0, 4.9, 5.7.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Protocol

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.ctr.hart_side import CtrFollower, NotSelected
from rvtrace_gdb.transport.simulated.ctr.recorder import LCOFI
from rvtrace_gdb.transport.simulated.hart.csr_state import (
    COUNTER_BITS,
    ContextCsrs,
    Counters,
    DebugCsrs,
    FloatingPointCsrs,
    MachineTrapCsrs,
)
from rvtrace_gdb.transport.simulated.hart.triggers import TINFO, TriggerCsrs

FFLAGS, FRM, FCSR = 0x001, 0x002, 0x003
MSTATUS, MISA, MIE, MTVEC, MCOUNTEREN, MENVCFG = 0x300, 0x301, 0x304, 0x305, 0x306, 0x30A
MSTATUSH, MENVCFGH, MCOUNTINHIBIT, MHPMEVENT = 0x310, 0x31A, 0x320, 0x320
MSCRATCH, MEPC, MCAUSE, MTVAL, MIP = 0x340, 0x341, 0x342, 0x343, 0x344
TSELECT, TDATA1, TDATA2, TDATA3, TINFO_CSR = 0x7A0, 0x7A1, 0x7A2, 0x7A3, 0x7A4
SCONTEXT, MCONTEXT = 0x5A8, 0x7A8
DCSR, DPC, DSCRATCH0, DSCRATCH1 = 0x7B0, 0x7B1, 0x7B2, 0x7B3
MCYCLE, MINSTRET, CYCLE, TIME = 0xB00, 0xB02, 0xC00, 0xC01
MVENDORID, MARCHID, MIMPID, MHARTID, MCONFIGPTR = 0xF11, 0xF12, 0xF13, 0xF14, 0xF15
_HIGH = 0x80  # from a counter to its upper half on RV32

# mstatus fields.
MIE_BIT, MPIE_BIT, MPP_SHIFT, MPP, FS, MPRV, TW = 1 << 3, 1 << 7, 11, 3 << 11, 3 << 13, 1 << 17, 1 << 21
_UXL_64 = 2 << 32
# dcsr fields.
EBREAKM, EBREAKU, STEPIE, STEP, _PRV = 1 << 15, 1 << 12, 1 << 11, 1 << 2, 3
_DCSR_WRITABLE = EBREAKM | EBREAKU | STEPIE | STEP

_INTERRUPTS = 1 << 11 | 1 << 7 | 1 << 3
# Bits of scontext and mcontext: as many as the Debug Specification recommends (5.7.7, 5.7.9).
_CONTEXT_BITS = {32: (16, 6), 64: (34, 13)}
_EVERYTHING = -1


class IllegalCsr(RvtraceError):
    """There is no CSR of this number, or this access to it is not allowed."""

    def __init__(self, number: int) -> None:
        super().__init__(f"CSR {number:#x} does not exist on this hart or cannot be accessed this way")
        self.number = number


CsrReader = Callable[[], int]
CsrWriter = Callable[[int, bool], None]


class HartWithCsrs(Protocol):
    """The part of the hart that its CSRs use."""

    xlen: int
    hartid: int
    privilege: int
    instret: int
    triggers: TriggerCsrs
    ctr: CtrFollower | None

    @property
    def now(self) -> int: ...

    @property
    def mtime(self) -> int: ...

    @property
    def mip(self) -> int: ...

    def set_interrupt(self, number: int, level: bool) -> None: ...

    def state_changed(self) -> None: ...

    def situation_changed(self) -> None: ...


class CsrFile:
    """The CSRs by number, and their effects. Access rights are checked here; `debug` accesses have all of them.

    Their values are in `csr_state`. `mstatus` lacks the read-only fields UXL and SD; use `read` for the whole.
    """

    def __init__(self, hart: HartWithCsrs, extensions: Sequence[str]) -> None:
        self._hart = hart
        self._xlen = hart.xlen
        self._mask = (1 << hart.xlen) - 1
        self._fs_mask = FS if "F" in extensions else 0
        self._readers: dict[int, CsrReader] = {
            number: partial(int, value) for number, value in _constants(hart.xlen, extensions).items()
        }
        self._readers[MHARTID] = lambda: hart.hartid
        self._writers: dict[int, CsrWriter] = {}
        self._add_stored(~1 if "C" in extensions else ~3)
        self._add_special()
        if "F" in extensions:
            self._add_floating_point()
        for bit in COUNTER_BITS:
            self._add_counter(bit)
        self._add_readers(TIME, lambda: hart.mtime)
        if hart.ctr is not None:
            self._add_ctr(hart.ctr)
        self.reset()

    def set_identity(self, vendor: int, arch: int) -> None:
        """Let mvendorid and marchid read as those of another hart."""
        self._readers[MVENDORID], self._readers[MARCHID] = partial(int, vendor), partial(int, arch & self._mask)

    def reset(self) -> None:
        self.mstatus = 0
        self.trap = MachineTrapCsrs()
        self.debug = DebugCsrs()
        self.floating_point = FloatingPointCsrs()
        self.context = ContextCsrs()
        self.counters = Counters(self._hart.instret)

    def read(self, number: int, debug: bool = False) -> int:
        """Return the value of a CSR. Raises `IllegalCsr`."""
        if not debug and not self._allowed(number):
            raise IllegalCsr(number)
        reader = self._readers.get(number)
        if reader is None:
            raise IllegalCsr(number)
        return reader()

    def write(self, number: int, value: int, debug: bool = False) -> None:
        """Write a CSR. Raises `IllegalCsr`, for read-only registers too. A value of any size is cut to XLEN bits."""
        self.read(number, debug)
        if number >> 10 == 3:
            raise IllegalCsr(number)
        if number in self._writers:
            self._writers[number](value & self._mask, debug)
        self._hart.state_changed()

    def numbers(self) -> list[int]:
        """Return the numbers of all CSRs, in order; some may not be readable in every situation."""
        return sorted(self._readers)

    def raise_flags(self, flags: int) -> None:
        """Accrue floating-point exceptions, which makes the floating-point state dirty."""
        self.floating_point.fflags |= flags
        self.mstatus |= FS

    def _allowed(self, number: int) -> bool:
        """Return whether the program may access the CSR now (2.1; 3.1.11 for counters in U mode)."""
        privilege = self._hart.privilege
        if number >> 8 & 3 > privilege or DCSR <= number < DCSR + 16:
            return False
        if number <= FCSR:
            return bool(self.mstatus & FS)
        if privilege == 0 and number >> 8 == CYCLE >> 8:
            return bool(self.counters.mcounteren >> (number & 31) & 1)
        return True

    def _add_stored(self, address: int) -> None:
        """Add the registers that keep what is written. *address*: the bits of an address that exist."""
        self._add_kept(MIE, "trap.mie", _INTERRUPTS)
        self._add_kept(MTVEC, "trap.mtvec", ~2)
        self._add_kept(MSCRATCH, "trap.mscratch")
        self._add_kept(MEPC, "trap.mepc", address)
        self._add_kept(MCAUSE, "trap.mcause")
        self._add_kept(MTVAL, "trap.mtval")
        self._add_kept(MCOUNTEREN, "counters.mcounteren", 7)
        self._add_kept(DPC, "debug.dpc", address)
        self._add_kept(DSCRATCH0, "debug.dscratch0")
        self._add_kept(DSCRATCH1, "debug.dscratch1")

    def _add_kept(self, number: int, place: str, writable: int = _EVERYTHING) -> None:
        """Add a register. *place*: the value and its attribute; *writable*: the bits that exist."""
        group, _, attribute = place.partition(".")

        def write(value: int, debug: bool) -> None:
            setattr(getattr(self, group), attribute, value & writable)

        self._readers[number] = partial(attrgetter(place), self)
        self._writers[number] = write

    # -- registers that do more than store

    def _add_special(self) -> None:
        hart = self._hart
        self._readers |= {
            MSTATUS: self._read_mstatus,
            MCOUNTINHIBIT: lambda: self.counters.mcountinhibit,
            MIP: lambda: hart.mip,
            TSELECT: lambda: hart.triggers.select,
            TDATA1: lambda: hart.triggers.read_tdata1(),
            TDATA2: lambda: hart.triggers.read_tdata2(),
            SCONTEXT: lambda: self.context.scontext,
            MCONTEXT: lambda: self.context.mcontext,
            DCSR: lambda: self.debug.dcsr,
        }
        self._writers |= {
            MSTATUS: self._write_mstatus,
            MCOUNTINHIBIT: lambda value, debug: self.counters.inhibit(value, hart.now),
            TSELECT: lambda value, debug: hart.triggers.write_select(value),
            TDATA1: lambda value, debug: hart.triggers.write_tdata1(value, debug),
            TDATA2: lambda value, debug: hart.triggers.write_tdata2(value, debug),
            SCONTEXT: lambda value, debug: self._write_context(value, self.context.mcontext),
            MCONTEXT: lambda value, debug: self._write_context(self.context.scontext, value),
            DCSR: self._write_dcsr,
        }

    def _read_mstatus(self) -> int:
        dirty = self.mstatus & FS == FS
        return self.mstatus | (_UXL_64 if self._xlen == 64 else 0) | dirty << self._xlen - 1

    def _write_mstatus(self, value: int, debug: bool) -> None:
        mpp = MPP if value & MPP == MPP else 0  # S mode does not exist; Spike makes it U
        self.mstatus = value & (MIE_BIT | MPIE_BIT | MPRV | TW | self._fs_mask) | mpp

    def _write_context(self, scontext: int, mcontext: int) -> None:
        supervisor, machine = _CONTEXT_BITS[self._xlen]
        self.context = ContextCsrs(scontext & (1 << supervisor) - 1, mcontext & (1 << machine) - 1)
        self._hart.situation_changed()

    def _write_dcsr(self, value: int, debug: bool) -> None:
        privilege = 3 if value & _PRV else 0
        self.debug.dcsr = self.debug.dcsr & ~(_DCSR_WRITABLE | _PRV) | value & _DCSR_WRITABLE | privilege

    def _add_floating_point(self) -> None:
        self._readers |= {
            FFLAGS: lambda: self.floating_point.fflags,
            FRM: lambda: self.floating_point.frm,
            FCSR: lambda: self.floating_point.frm << 5 | self.floating_point.fflags,
        }
        self._writers |= {
            FFLAGS: lambda value, debug: self._write_fcsr(self.floating_point.frm, value),
            FRM: lambda value, debug: self._write_fcsr(value, self.floating_point.fflags),
            FCSR: lambda value, debug: self._write_fcsr(value >> 5, value),
        }

    def _write_fcsr(self, rounding: int, flags: int) -> None:
        self.floating_point = FloatingPointCsrs(fflags=flags & 31, frm=rounding & 7)
        self.mstatus |= FS

    def _add_counter(self, bit: int) -> None:
        def read() -> int:
            return self.counters.by_bit[bit].read(self._hart.now)

        def write(value: int, debug: bool) -> None:
            # The write takes the place of the increment by its own instruction (Zicsr, 7.1).
            now = self._hart.now + (not debug)
            counter, keep = self.counters.by_bit[bit], 0 if self._xlen == 64 else 0xFFFFFFFF_00000000
            counter.write(counter.read(now) & keep | value, now)

        def write_high(value: int, debug: bool) -> None:
            now, counter = self._hart.now + (not debug), self.counters.by_bit[bit]
            counter.write(counter.read(now) & 0xFFFFFFFF | value << 32, now)

        for base in (MCYCLE, CYCLE):
            self._add_readers(base + bit, read)
        self._writers |= {MCYCLE + bit: write, MCYCLE + _HIGH + bit: write_high}

    def _add_ctr(self, ctr: CtrFollower) -> None:
        for number in ctr.csrs:
            self._readers[number] = partial(self._read_ctr, ctr, number)
            self._writers[number] = partial(self._write_ctr, ctr, number)
        if "LCOFIFRZ" in ctr.recorder.build.fields:
            # As much of Sscofpmf as it takes to freeze: the interrupt, which a program pends by itself.
            self._add_kept(MIE, "trap.mie", _INTERRUPTS | 1 << LCOFI)
            self._writers[MIP] = lambda value, debug: self._hart.set_interrupt(LCOFI, bool(value >> LCOFI & 1))

    def _read_ctr(self, ctr: CtrFollower, number: int) -> int:
        try:
            return ctr.read(number) & self._mask
        except NotSelected:
            raise IllegalCsr(number) from None

    def _write_ctr(self, ctr: CtrFollower, number: int, value: int, debug: bool) -> None:
        """Write a CSR of CTR; the value takes effect when its instruction has retired."""
        ctr.write(number, value, self._hart.now + (not debug))

    def _add_readers(self, number: int, read: CsrReader) -> None:
        """Add a 64-bit register: one CSR on RV64, two on RV32."""
        self._readers[number] = lambda: read() & self._mask
        if self._xlen == 32:
            self._readers[number + _HIGH] = lambda: read() >> 32


def _constants(xlen: int, extensions: Sequence[str]) -> dict[int, int]:
    """Return the CSRs that always read the same and ignore writes; marchid is Spike's, so that programs under test run
    as they do there.
    """
    misa = (1 if xlen == 32 else 2) << xlen - 2
    for letter in (*(name for name in extensions if len(name) == 1), "U"):
        misa |= 1 << ord(letter) - ord("A")
    constants = {MISA: misa, MVENDORID: 0, MARCHID: 5, MIMPID: 0, MCONFIGPTR: 0, MENVCFG: 0, TDATA3: 0}
    constants[TINFO_CSR] = TINFO
    for index in range(3, 32):  # mhpmcounter, mhpmevent
        constants |= {MCYCLE + index: 0, MHPMEVENT + index: 0}
        if xlen == 32:
            constants[MCYCLE + _HIGH + index] = 0
    return constants | ({MSTATUSH: 0, MENVCFGH: 0} if xlen == 32 else {})
