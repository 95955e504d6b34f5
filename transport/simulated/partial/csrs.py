"""The CSRs of a hart of which some are unknown.

What hardware may change by itself (counters, pending interrupts) is unknown always, and so is what hardware may have
made of a written value (WARL fields), once it was written. mstatus is known as a whole, or not at all: then
floating point is taken to be enabled, and the privilege to which a trap returns is unknown.

Sources: RISC-V Privileged Architecture 20240411, 2.2 (CSR listing), 3.1.6 (mstatus), 3.1.7 to 3.1.15, 3.3.2 (MRET).
"""

from collections.abc import Mapping, Sequence

from rvtrace_gdb.transport.simulated.hart.csr import (
    CYCLE,
    FCSR,
    FFLAGS,
    FRM,
    FS,
    MCAUSE,
    MCOUNTEREN,
    MEPC,
    MIE_BIT,
    MISA,
    MPIE_BIT,
    MPP,
    MPRV,
    MSCRATCH,
    MSTATUS,
    MTVAL,
    MTVEC,
    CsrFile,
    HartWithCsrs,
    IllegalCsr,
)
from rvtrace_gdb.transport.simulated.hart.csr_state import FloatingPointCsrs, MachineTrapCsrs
from rvtrace_gdb.transport.simulated.hart.instructions import MACHINE
from rvtrace_gdb.transport.simulated.partial.stops import HartStop, StopCause
from rvtrace_gdb.transport.simulated.partial.unknown import UNKNOWN, is_unknown

_FLOATING_POINT = (FFLAGS, FRM, FCSR)
_KEPT = {MSCRATCH: "mscratch", MEPC: "mepc", MCAUSE: "mcause", MTVAL: "mtval", MTVEC: "mtvec"}
"""Those that hold what is written to them, with their attribute."""
_TRANSLATE = frozenset({0x180, 0x280, 0x680})
"""satp, vsatp, hgatp."""
_CONSTANT = frozenset({MISA, *range(0xF11, 0xF16)})
_VOLATILE = frozenset({
    0x344, 0x144, 0x244, 0x015, 0x14D, 0x15C, *range(0xB00, 0xB20), *range(0xB80, 0xBA0), *range(0xC00, 0xC20),
    *range(0xC80, 0xCA0), 0xDA0, 0xE12,
})  # fmt: skip
"""mip and its views, seed, stimecmp, counters."""


class PartialCsrs(CsrFile):
    """The CSRs of a hart. `is_status_known`: whether `mstatus` is what the hart has."""

    def __init__(self, hart: HartWithCsrs, extensions: Sequence[str]) -> None:
        self.others: dict[int, int] = {}
        self.is_status_known = False
        self.is_privilege_known = False
        self._instruction_mask = (1 << hart.xlen) - (2 if "C" in extensions else 4)
        super().__init__(hart, extensions)

    def begin(self, values: Mapping[int, int]) -> None:
        """Set the CSRs that are known; all others are not."""
        self.trap = MachineTrapCsrs(**dict.fromkeys(_KEPT.values(), UNKNOWN))
        self.floating_point = FloatingPointCsrs(values.get(FFLAGS, UNKNOWN), values.get(FRM, UNKNOWN))
        if FCSR in values:
            self.floating_point = FloatingPointCsrs(values[FCSR] & 31, values[FCSR] >> 5 & 7)
        self.is_status_known, self.mstatus = MSTATUS in values, values.get(MSTATUS, FS | MPP)
        for number, attribute in _KEPT.items():
            setattr(self.trap, attribute, values.get(number, UNKNOWN))
        self.others = {number: value for number, value in values.items() if number not in (*_KEPT, MSTATUS)}

    def set(self, number: int, value: int) -> None:
        """Set a CSR as a debugger does, to a value that it has from then on."""
        if number == MSTATUS:
            self.mstatus, self.is_status_known = value, True
        elif number in _KEPT:
            setattr(self.trap, _KEPT[number], value)
        elif number in _FLOATING_POINT:
            self._writers[number](value, True)
        else:
            self.others[number] = value

    def read(self, number: int, debug: bool = False) -> int:
        """Return the value of a CSR, UNKNOWN if it is. Raises IllegalCsr where the mode may not read it."""
        if not debug and self.is_privilege_known and not self._is_open(number):
            raise IllegalCsr(number)
        if number == MSTATUS:
            return self.mstatus if self.is_status_known else UNKNOWN
        if number in _KEPT:
            return self._kept(number)
        if number in _FLOATING_POINT:
            return self._readers[number]()
        return UNKNOWN if number in _VOLATILE else self.others.get(number, UNKNOWN)

    def _kept(self, number: int) -> int:
        value: int = getattr(self.trap, _KEPT[number])
        return value

    def write(self, number: int, value: int, debug: bool = False) -> None:
        """Write a CSR. Raises IllegalCsr, for read-only registers, too."""
        self.read(number, debug)
        if number >> 10 == 3:
            raise IllegalCsr(number)
        if number == MSTATUS:
            self._write_status(value)
        elif number in _KEPT:
            setattr(self.trap, _KEPT[number], value & (self._instruction_mask if number == MEPC else self._mask))
        elif number in _FLOATING_POINT:
            self._writers[number](value & self._mask, debug)
        elif number in _TRANSLATE:
            self._translate(number, value)
        elif number not in _CONSTANT:
            self.others.pop(number, None)

    def _is_open(self, number: int) -> bool:
        """Return whether the program may access a CSR (2.1; 3.1.11 for counters). Raises HartStop: that is unknown."""
        if number >> 8 & 3 > self._hart.privilege:
            return False
        if number in _FLOATING_POINT:
            return bool(self.mstatus & FS)
        if self._hart.privilege == MACHINE or number >> 8 != CYCLE >> 8:
            return True
        enabled = self.others.get(MCOUNTEREN)
        if enabled is None:
            raise HartStop(StopCause.CSR)
        return bool(enabled >> (number & 31) & 1)

    def _write_status(self, value: int) -> None:
        """Write mstatus: fields of which it is not known what hardware makes of the value make it unknown."""
        if is_unknown(value) or not self.is_status_known:
            self.forget_status()
            return
        value &= self._mask
        changed = value ^ self.mstatus
        chosen = value & MPP in (0, MPP) and (value & FS or not changed & FS)
        if chosen and not changed & ~(MIE_BIT | MPIE_BIT | MPP | FS | MPRV | 1 << self._xlen - 1):
            self.mstatus = value
        else:
            self.forget_status()

    def forget_status(self) -> None:
        """Note that mstatus is not known any more."""
        self.is_status_known, self.mstatus = False, FS | MPP

    def _translate(self, number: int, value: int) -> None:
        """Note that addresses are translated from now on, which this hart does not do: raises HartStop."""
        if is_unknown(value) or value:
            raise HartStop(StopCause.TRANSLATION)
        self.others[number] = 0

    def returned(self) -> None:
        """Note that MRET was executed: MPP is the least privileged mode, U or M (3.1.6.1); if mstatus is unknown,
        so is the mode.
        """
        if not self.is_status_known:
            self.is_privilege_known = False
            self.forget_status()
            return
        misa = self.others.get(MISA)
        if misa is None:
            self.forget_status()
        elif not misa >> ord("U") - ord("A") & 1:
            self.mstatus |= MPP
