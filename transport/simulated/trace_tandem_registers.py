"""The registers of a hart as a tandem-trace port tells them: which there are, and which have changed since it told.

Debug Mode's own registers and the counters are left out: the former are not the program's, the latter change with every
instruction, and no trace says so.
"""

from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.layout import FPR, GPR
from rvtrace_gdb.transport.simulated.csr import DCSR, DSCRATCH1, IllegalCsr
from rvtrace_gdb.transport.simulated.hart import Hart
from rvtrace_gdb.transport.simulated.run_control import END_OF_REGISTERS

_PARTS = (csrs.FFLAGS, csrs.FRM)  # told as fcsr
Told = tuple[tuple[int, int], ...]
"""(number, value) of registers."""


class ToldRegisters:
    """The CSRs of *hart*, and what was told of them last. mip is another matter: it changes by itself."""

    def __init__(self, hart: Hart) -> None:
        self._hart = hart
        numbers = (number for number in hart.csr.numbers() if not DCSR <= number <= DSCRATCH1)
        self._numbers = [n for n in numbers if not csrs.is_counter(n) and n not in (csrs.MIP, *_PARTS)]
        self._told: dict[int, int] = {}
        self.flen_mask = (1 << (64 if "D" in hart.extensions else 32)) - 1

    def everything(self) -> Told:
        """All registers: integer, floating-point, CSRs."""
        hart = self._hart
        self._told.clear()
        found = [(GPR + n, hart.x[n]) for n in range(1, 32)]
        if "F" in hart.extensions:
            found += [(FPR + n, hart.f[n] & self.flen_mask) for n in range(32)]
        return *found, *self.changed()

    def changed(self, written: int = -1, first: tuple[int, ...] = ()) -> Told:
        """CSRs that are not as they were told last; *first* and *written*, which an instruction wrote, in any case."""
        found: dict[int, int] = {}
        for number in (*first, written, *self._numbers):
            value = self._value(number)
            if value is None or number in found:
                continue
            if number in first or number == written or self._told.get(number) != value:
                found[number] = value
                self._told[number] = value
        if written in _PARTS:
            found.pop(csrs.FCSR, None)
        return tuple(found.items())

    def one(self, number: int) -> Told:
        """One CSR, if it is not as it was told last."""
        value = self._value(number)
        if value is None or self._told.get(number) == value:
            return ()
        self._told[number] = value
        return ((number, value),)

    def of_debugger(self, regno: int) -> Told:
        """What a debugger wrote, by its number for abstract commands."""
        hart = self._hart
        if FPR <= regno < END_OF_REGISTERS:
            return ((regno, hart.f[regno - FPR] & self.flen_mask),)
        if regno >= GPR:
            return ((regno, hart.x[regno - GPR]),) if regno > GPR else ()
        return self.changed() if DCSR <= regno <= DSCRATCH1 or regno == csrs.MIP else self.changed(regno)

    def _value(self, number: int) -> int | None:
        """None: there is no such register now."""
        if number < 0:
            return None
        try:
            return self._hart.csr_read(number, debug=True)
        except IllegalCsr:
            return None
