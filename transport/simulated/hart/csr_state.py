"""The values behind the CSRs of the simulated hart, by what they are for: traps, Debug Mode, floating point, the
context, counters. mstatus is with none of them, as almost everything looks at it (`csr.CsrFile.mstatus`).

Sources: RISC-V Privileged Architecture 20240411, 3.1; RISC-V Debug Specification 1.0, 4.9, 5.7.
"""

from dataclasses import dataclass

_DEBUGVER = 4 << 28  # 0.13.2 and 1.0 give the same number
COUNTER_BITS = (0, 2)
"""CY and IR of mcounteren and mcountinhibit."""


@dataclass
class MachineTrapCsrs:
    """What M mode sets up for traps, and what it is told of the last one."""

    mie: int = 0
    mtvec: int = 0
    mscratch: int = 0
    mepc: int = 0
    mcause: int = 0
    mtval: int = 0


@dataclass
class DebugCsrs:
    """The registers of Debug Mode."""

    dcsr: int = _DEBUGVER | 3
    dpc: int = 0
    dscratch0: int = 0
    dscratch1: int = 0


@dataclass
class FloatingPointCsrs:
    """The two fields of fcsr."""

    fflags: int = 0
    frm: int = 0


@dataclass
class ContextCsrs:
    """The names that software gives to what it runs."""

    scontext: int = 0
    mcontext: int = 0


class Counter:
    """mcycle or minstret: the retired instructions, offset by what was written, or frozen by mcountinhibit."""

    def __init__(self, now: int) -> None:
        self._offset = now
        self._frozen: int | None = None

    def read(self, now: int) -> int:
        return self._frozen if self._frozen is not None else now - self._offset & (1 << 64) - 1

    def write(self, value: int, now: int) -> None:
        """Set the counter. *now*: the count at which it is to hold *value*."""
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


class Counters:
    """mcycle and minstret, by the number of their bit in mcounteren and mcountinhibit."""

    def __init__(self, now: int) -> None:
        self.mcounteren = 0
        self.mcountinhibit = 0
        self.by_bit = {bit: Counter(now) for bit in COUNTER_BITS}

    def inhibit(self, value: int, now: int) -> None:
        """Write mcountinhibit."""
        self.mcountinhibit = value & sum(1 << bit for bit in self.by_bit)
        for bit, counter in self.by_bit.items():
            counter.inhibit(bool(value >> bit & 1), now)
