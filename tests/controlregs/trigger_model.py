"""The trigger module of a hart as a debugger meets it, written from the Debug Specification 1.0, "Sdtrig", for tests.

Numbers and bits are spelled out here rather than taken from the tables under test.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAnswer, CsrRequest
from rvtrace_gdb.support.errors import Progress, silent

TSELECT, TDATA1, TDATA2, TDATA3 = 0x7A0, 0x7A1, 0x7A2, 0x7A3
MCONTROL, ICOUNT, ITRIGGER, ETRIGGER, MCONTROL6, DISABLED = 2, 3, 4, 5, 6, 15
LOAD, STORE, EXECUTE = 1 << 0, 1 << 1, 1 << 2
U, S, M, CHAIN = 1 << 3, 1 << 4, 1 << 6, 1 << 11
VU, VS = 1 << 23, 1 << 24  # type 6
HITS = {MCONTROL: 1 << 20, MCONTROL6: 1 << 22 | 1 << 25}
ALL_ACTIONS = (0, 1, 2, 3, 4)
FREE = (MCONTROL, MCONTROL6, DISABLED)


@dataclass
class Unit:
    """One trigger. *types*: those it can be, 15 excepted, which it becomes when it is cleared if it can be several."""

    types: tuple[int, ...] = (MCONTROL,)
    actions: tuple[int, ...] = ALL_ACTIONS
    modes: int = U | S | M | VU | VS
    addresses: int = (1 << 64) - 1
    xlen: int = 64
    kind: int = 0
    dmode: int = 0
    low: int = 0
    tdata2: int = 0
    tdata3: int = 0

    def __post_init__(self) -> None:
        self.kind = self.kind or (self.types[0] if len(self.types) == 1 else DISABLED)

    @property
    def tdata1(self) -> int:
        return self.kind << self.xlen - 4 | self.dmode << self.xlen - 5 | self.low

    def write(self, value: int) -> None:
        kind = value >> self.xlen - 4
        if not value or kind == DISABLED:
            self.kind, self.dmode, self.low = self.types[0] if len(self.types) == 1 else DISABLED, 0, 0
            return
        self.kind = kind if kind in self.types else self.types[0]
        self.dmode = value >> self.xlen - 5 & 1
        modes = U | S | M | (VU | VS if self.kind == MCONTROL6 else 0)
        self.low = value & (LOAD | STORE | EXECUTE | CHAIN | modes & self.modes | HITS.get(self.kind, 0))
        action = value >> 12 & 0xF
        if action in self.actions and (action != 1 or self.dmode):
            self.low |= action << 12

    def fires(self, pc: int, mode: int) -> int | None:
        """What it does before the instruction at *pc* in *mode*."""
        wanted = EXECUTE | mode
        if self.kind not in (MCONTROL, MCONTROL6) or self.low & wanted != wanted or self.tdata2 != pc:
            return None
        return self.low >> 12 & 0xF


@dataclass
class TriggerHart:
    """A `CsrAccess`. *absent*: CSRs that are not there. *runs_after*: so many calls, if given, the hart runs."""

    units: Sequence[Unit] = ()
    xlen: int = 64
    absent: Collection[int] = ()
    tselect: int = 0
    runs_after: int | None = None
    name: str = "the model"
    refused: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for unit in self.units:
            unit.xlen = self.xlen

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        if self.runs_after is not None:
            self.runs_after -= 1
            if self.runs_after < 0:
                raise HartRuns
        answers: list[CsrAnswer] = []
        for register, value in accesses:
            assert isinstance(register, int)
            if register in self.absent:
                self.refused.append(register)
                return [*answers, "illegal instruction"]
            assert value is None or 0 <= value < 1 << self.xlen
            answers.append(self._read(register) if value is None else self._write(register, value))
        return answers

    def _read(self, register: int) -> int:
        if register == TSELECT:
            return self.tselect
        if not self.units:
            return 0
        unit = self.units[self.tselect]
        return {TDATA1: unit.tdata1, TDATA2: unit.tdata2, TDATA3: unit.tdata3}[register]

    def _write(self, register: int, value: int) -> int:
        if register == TSELECT:
            self.tselect = value if value < len(self.units) else self.tselect
            return 0
        unit = self.units[self.tselect]
        if register == TDATA1:
            unit.write(value)
        elif register == TDATA2:
            assert unit.kind == DISABLED or not unit.low & (LOAD | STORE | EXECUTE), "changed while it is at work"
            unit.tdata2 = value & unit.addresses
        else:
            unit.tdata3 = value
        return 0

    def fired(self, pc: int, mode: int) -> list[int]:
        """The actions of all triggers that fire there."""
        return [action for unit in self.units if (action := unit.fires(pc, mode)) is not None]
