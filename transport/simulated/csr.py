"""The control and status registers of the simulated hart.

A hart with M and U mode, without S mode, PMP, and performance counters beyond cycle and instret: what Spike models with
`--priv=mu --pmpregions=0`, which is the reference for every WARL choice here. Spike's optional tcontrol is absent.

Sources: RISC-V Privileged Architecture 20240411, chapters 2 and 3; RISC-V Debug Specification 1.0, 4.9 and 5.7.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from support.errors import RvtraceError
from transport.simulated.triggers import TINFO

if TYPE_CHECKING:
    from transport.simulated.hart import Hart

MSTATUS, MISA, MIE, MTVEC, MCOUNTEREN, MSTATUSH, MCOUNTINHIBIT = 0x300, 0x301, 0x304, 0x305, 0x306, 0x310, 0x320
MSCRATCH, MEPC, MCAUSE, MTVAL, MIP = 0x340, 0x341, 0x342, 0x343, 0x344
FFLAGS, FRM, FCSR = 0x001, 0x002, 0x003
TSELECT, TDATA1, TDATA2, TDATA3, TINFO_CSR = 0x7A0, 0x7A1, 0x7A2, 0x7A3, 0x7A4
DCSR, DPC, DSCRATCH0, DSCRATCH1 = 0x7B0, 0x7B1, 0x7B2, 0x7B3
MCYCLE, MINSTRET, CYCLE, TIME, INSTRET = 0xB00, 0xB02, 0xC00, 0xC01, 0xC02
MENVCFG = 0x30A

# mstatus fields.
MIE_BIT, MPIE_BIT, MPP_SHIFT, MPP, FS_SHIFT, FS, MPRV, TW = 1 << 3, 1 << 7, 11, 3 << 11, 13, 3 << 13, 1 << 17, 1 << 21
# dcsr fields.
EBREAKM, EBREAKU, STEPIE, STEP = 1 << 15, 1 << 12, 1 << 11, 1 << 2
_DCSR_WRITABLE = EBREAKM | EBREAKU | STEPIE | STEP
_DCSR_VERSION = 4 << 28  # both of 0.13.2 and of 1.0

_INTERRUPTS = 1 << 11 | 1 << 7 | 1 << 3
_MARCHID = 5  # Spike's: programs under test then take the same way
_COUNTER_BITS = 64
_COUNTERS = {0: "mcycle", 2: "minstret"}


class IllegalCsr(RvtraceError):
    """There is no CSR of this number, or not for this access."""

    def __init__(self, number: int) -> None:
        super().__init__(f"CSR {number:#x} does not exist on this hart or cannot be accessed this way")
        self.number = number


class Counter:
    """mcycle or minstret: the retired instructions, offset by what was written, or frozen by mcountinhibit."""

    def __init__(self) -> None:
        self._offset = 0
        self._frozen: int | None = None

    def read(self, now: int) -> int:
        return self._frozen if self._frozen is not None else now - self._offset & (1 << _COUNTER_BITS) - 1

    def write(self, value: int, now: int) -> None:
        """*now*: the count at which the counter is to hold *value*."""
        if self._frozen is not None:
            self._frozen = value
        else:
            self._offset = now - value

    def inhibit(self, inhibited: bool, now: int) -> None:
        if inhibited and self._frozen is None:
            self._frozen = self.read(now)
        elif not inhibited and self._frozen is not None:
            self._offset = now - self._frozen
            self._frozen = None


class CsrFile:
    """CSR numbers to what they read and do. Access rights are checked here; `debug` accesses have all of them."""

    def __init__(self, hart: "Hart", extensions: str) -> None:
        self._hart = hart
        self._xlen = hart.xlen
        self._mask = (1 << hart.xlen) - 1
        self._has_fp = "F" in extensions
        self.misa = (1 if hart.xlen == 32 else 2) << hart.xlen - 2
        for letter in extensions + "U":
            self.misa |= 1 << ord(letter) - ord("A")
        self._fs_mask = FS if self._has_fp else 0
        self._epc_mask = self._mask - 1 if "C" in extensions else self._mask - 3
        self.reset()
        self._readers = self._make_readers()
        self._writers = self._make_writers()

    def reset(self) -> None:
        self.mstatus = 0
        self.mie = self.mtvec = self.mepc = self.mcause = self.mtval = self.mscratch = 0
        self.mcounteren = self.mcountinhibit = 0
        self.fflags = self.frm = 0
        self.dcsr = _DCSR_VERSION | 3
        self.dpc = 0
        self.dscratch = [0, 0]
        self.counters = {name: Counter() for name in _COUNTERS.values()}
        for counter in self.counters.values():
            counter.write(0, self._hart.instret)

    def read(self, number: int, debug: bool = False) -> int:
        """Raises `IllegalCsr`."""
        reader = self._readers.get(number)
        if reader is None or not self._allowed(number, debug):
            raise IllegalCsr(number)
        return reader()

    def write(self, number: int, value: int, debug: bool = False) -> None:
        """Raises `IllegalCsr`, for read-only registers too."""
        if number not in self._readers or number >> 10 == 3 or not self._allowed(number, debug):
            raise IllegalCsr(number)
        writer = self._writers.get(number)
        if writer is not None:
            writer(value & self._mask, debug)

    def raise_flags(self, flags: int) -> None:
        """Accrue floating-point exceptions; that makes the floating-point state dirty."""
        self.fflags |= flags
        self.mstatus |= FS

    def _allowed(self, number: int, debug: bool) -> bool:
        if debug:
            return True
        if number >> 8 & 3 > self._hart.privilege or 0x7B0 <= number <= 0x7BF:
            return False
        if number in (FFLAGS, FRM, FCSR):
            return bool(self.mstatus & FS)
        if number >> 8 == 0xC and self._hart.privilege == 0:
            return bool(self.mcounteren >> (number & 31) & 1)
        return True

    def _make_readers(self) -> dict[int, Callable[[], int]]:
        hart, xlen, mask = self._hart, self._xlen, self._mask
        readers: dict[int, Callable[[], int]] = {
            MSTATUS: self._read_mstatus, MISA: lambda: self.misa, MIE: lambda: self.mie, MTVEC: lambda: self.mtvec,
            MCOUNTEREN: lambda: self.mcounteren, MCOUNTINHIBIT: lambda: self.mcountinhibit, MENVCFG: lambda: 0,
            MSCRATCH: lambda: self.mscratch, MEPC: lambda: self.mepc & self._epc_mask, MCAUSE: lambda: self.mcause,
            MTVAL: lambda: self.mtval, MIP: lambda: hart.mip,
            TSELECT: lambda: hart.triggers.select, TDATA1: lambda: hart.triggers.read_tdata1(),
            TDATA2: lambda: hart.triggers.read_tdata2(), TDATA3: lambda: 0, TINFO_CSR: lambda: TINFO,
            DCSR: lambda: self.dcsr, DPC: lambda: self.dpc & self._epc_mask,
            DSCRATCH0: lambda: self.dscratch[0], DSCRATCH1: lambda: self.dscratch[1],
            0xF11: lambda: 0, 0xF12: lambda: _MARCHID, 0xF13: lambda: 0, 0xF14: lambda: 0, 0xF15: lambda: 0,
        }  # fmt: skip
        timers: dict[int, Callable[[], int]] = {1: lambda: hart.mtime}
        for index, name in _COUNTERS.items():
            timers[index] = lambda name=name: self.counters[name].read(hart.now)  # type: ignore[misc]
        for index, timer in timers.items():
            bases = (0xC00,) if index == 1 else (0xB00, 0xC00)
            for base in bases:
                readers[base + index] = lambda timer=timer: timer() & mask  # type: ignore[misc]
                if xlen == 32:
                    readers[base + 0x80 + index] = lambda timer=timer: timer() >> 32  # type: ignore[misc]
        for index in range(3, 32):
            readers[0xB00 + index] = readers[0x320 + index] = lambda: 0
            if xlen == 32:
                readers[0xB80 + index] = lambda: 0
        if xlen == 32:
            readers[MSTATUSH] = readers[MENVCFG + 0x10] = lambda: 0
        if self._has_fp:
            readers |= {FFLAGS: lambda: self.fflags, FRM: lambda: self.frm, FCSR: lambda: self.frm << 5 | self.fflags}
        return readers

    def _make_writers(self) -> dict[int, Callable[[int, bool], None]]:
        """Those whose writes do something; a register that can be read and is not here ignores them."""
        writers: dict[int, Callable[[int, bool], None]] = {
            MSTATUS: self._write_mstatus, MIE: self._write_mie,
            MTVEC: lambda value, debug: setattr(self, "mtvec", value & ~2),
            MCOUNTEREN: lambda value, debug: setattr(self, "mcounteren", value & 7),
            MCOUNTINHIBIT: self._write_mcountinhibit,
            MSCRATCH: lambda value, debug: setattr(self, "mscratch", value),
            MEPC: lambda value, debug: setattr(self, "mepc", value & ~1),
            MCAUSE: lambda value, debug: setattr(self, "mcause", value),
            MTVAL: lambda value, debug: setattr(self, "mtval", value),
            TSELECT: lambda value, debug: self._hart.triggers.write_select(value),
            TDATA1: lambda value, debug: self._hart.triggers.write_tdata1(value, debug),
            TDATA2: lambda value, debug: self._hart.triggers.write_tdata2(value, debug),
            DCSR: self._write_dcsr, DPC: lambda value, debug: setattr(self, "dpc", value & ~1),
            DSCRATCH0: lambda value, debug: self.dscratch.__setitem__(0, value),
            DSCRATCH1: lambda value, debug: self.dscratch.__setitem__(1, value),
            FFLAGS: lambda value, debug: self._write_fcsr(self.frm, value),
            FRM: lambda value, debug: self._write_fcsr(value, self.fflags),
            FCSR: lambda value, debug: self._write_fcsr(value >> 5, value),
        }  # fmt: skip
        for index, name in _COUNTERS.items():
            writers[0xB00 + index] = self._counter_writer(name, 0)
            writers[0xB80 + index] = self._counter_writer(name, 32)
        return writers

    def _counter_writer(self, name: str, shift: int) -> Callable[[int, bool], None]:
        def write(value: int, debug: bool) -> None:
            # The write takes the place of the increment by its own instruction (Zicsr, 7.1 "minstret").
            now = self._hart.now + (not debug)
            keep = 0 if self._xlen == 64 else 0xFFFFFFFF << 32 - shift
            self.counters[name].write(self.counters[name].read(now) & keep | value << shift, now)

        return write

    def _read_mstatus(self) -> int:
        dirty = self.mstatus & FS == FS
        uxl = 2 << 32 if self._xlen == 64 else 0
        return self.mstatus | uxl | dirty << self._xlen - 1

    def _write_mstatus(self, value: int, debug: bool) -> None:
        mpp = MPP if value & MPP == MPP else 0  # S mode does not exist; Spike makes it U
        self.mstatus = value & (MIE_BIT | MPIE_BIT | MPRV | TW | self._fs_mask) | mpp
        self._hart.state_changed()

    def _write_mie(self, value: int, debug: bool) -> None:
        self.mie = value & _INTERRUPTS
        self._hart.state_changed()

    def _write_mcountinhibit(self, value: int, debug: bool) -> None:
        self.mcountinhibit = value & 5
        for index, name in _COUNTERS.items():
            self.counters[name].inhibit(bool(value >> index & 1), self._hart.now)

    def _write_dcsr(self, value: int, debug: bool) -> None:
        privilege = 3 if value & 3 else 0
        self.dcsr = self.dcsr & ~(_DCSR_WRITABLE | 3) | value & _DCSR_WRITABLE | privilege

    def _write_fcsr(self, rounding: int, flags: int) -> None:
        self.frm = rounding & 7
        self.fflags = flags & 31
        self.mstatus |= FS
        self._hart.state_changed()
