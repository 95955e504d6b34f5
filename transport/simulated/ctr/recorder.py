"""The CTR recorder of one hart: what it records, where it stands in its buffer, when it stops.

It is told of transfers (`transfer`) and of whatever else changes the mode (`enter`); `registers` is its CSR side. All
privilege modes are here, though the simulated hart has M and U only.

Where the documents leave a choice: a change of depth keeps what the buffer holds, and WRPTR as far as it fits; FROZEN
is set by the traps that set it whether or not a mode is enabled (QEMU does the same); clearing zeroes the whole buffer.
Where the draft does not say which control register counts when V changes, it is the one of the mode that was left.

Sources: CTR 1.0, "Behavior"; CTR 0.1.4, chapter 5 and 2.4 for WRPTR and WRAP.
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.ctr.layout import SOURCE
from rvtrace_gdb.controlregs.ctr.transfers import FILTER_LSB, TransferType
from rvtrace_gdb.transport.simulated.block import BREAKPOINT
from rvtrace_gdb.transport.simulated.ctr.buffer import Buffer
from rvtrace_gdb.transport.simulated.ctr.build import CtrBuild
from rvtrace_gdb.transport.simulated.ctr.cycles import CycleCounter
from rvtrace_gdb.transport.simulated.ctr.transfer import ABOVE, CALLS, TRAPS, UNWINDING, Mode, Transfer

LCOFI = 13
"""Number of the local counter overflow interrupt (Sscofpmf)."""
_FREEZING = {(TransferType.EXCEPTION, BREAKPOINT): "BPFRZ", (TransferType.INTERRUPT, LCOFI): "LCOFIFRZ"}


class Plan(IntEnum):
    """What a type of transfer means to the recorder while nothing but the program's flow changes."""

    NOTHING = 0
    INSERT = 1
    TRANSFER = 2
    """It takes all of `Recorder.transfer`."""


class Recorder:
    """`control` and `vs_control` are mctrctl and vsctrctl, or mctrcontrol and vsctrcontrol without DEPTH and CLR."""

    def __init__(self, build: CtrBuild) -> None:
        self.build = build
        version = build.registers
        self._ratified = version.external_enable is None
        control, virtual = version.machine.control, version.virtual
        fields = [(control.csr, control.modes), (virtual.csr, virtual.modes)]
        self._enable = {Mode[m.upper()]: csr.mask(name) for csr, modes in fields for m, name in modes.items()}
        fields = [(control.csr, control.external), (virtual.csr, virtual.external)]
        self._xte = {Mode[m.upper()]: csr.mask(name) for csr, modes in fields for m, name in modes.items()}
        self._eten = control.csr.mask(version.external_enable) if version.external_enable else 0
        self._rasemu = control.csr.mask("RASEMU")
        self._freeze = {which: control.csr.mask(name) for which, name in _FREEZING.items()}
        self.reset()

    def reset(self, now: int = 0) -> None:
        """Everything is 0, the depth the smallest: the documents leave that open."""
        self.control = self.vs_control = 0
        self.frozen = False
        self.cycles = CycleCounter(self.build.exponent_bits)
        self.buffer = Buffer(self.build, self.cycles)
        self.mode = Mode.M
        self._since = now

    # -- what the hart tells

    def transfer(self, t: Transfer) -> None:
        """It has retired, or the trap is taken; the hart is in its target mode from now on."""
        self.elapse(t.now)
        if t.cause is not None and self._freezes(t, t.cause):
            self.frozen = True
        elif not self.frozen:
            self._record(t)
        self.mode = t.target_mode

    def enter(self, mode: Mode, now: int) -> None:
        """The hart is in this mode, by nothing that is recorded: Debug Mode was left, or nobody listened."""
        self.elapse(now)
        self.mode = mode

    def elapse(self, now: int) -> None:
        """Time passes until *now*, under the present control and status: to be told before they change."""
        if self.active:
            self.cycles.advance(now - self._since)
        self._since = now

    def within(self, type: TransferType, source: int, target: int, now: int) -> None:
        """A transfer that stays in the present mode and whose plan is `Plan.INSERT`; bit 0 of *target* is MISP."""
        elapsed, self._since = now - self._since, now
        self.buffer.push(type, source, target, self.cycles.take(elapsed))

    def plans(self) -> tuple["Plan", ...]:
        """What to do with each type of transfer, by its code, in the present mode and as the registers are now."""
        return tuple(self._plan(TransferType(code)) for code in range(16))

    def _plan(self, type: TransferType) -> "Plan":
        if type is TransferType.NONE:
            return Plan.NOTHING
        if type is TransferType.TRAP_RETURN or type in TRAPS:
            return Plan.TRANSFER
        control = self._control_of(self.mode)
        if control & self._rasemu:
            return Plan.INSERT if type in CALLS else Plan.TRANSFER if type in UNWINDING else Plan.NOTHING
        return Plan.NOTHING if inhibited(control, type) else Plan.INSERT

    # -- what the registers say

    @property
    def active(self) -> bool:
        """Active is CTR when the current privilege mode is enabled for recording and CTR is not frozen."""
        return not self.frozen and self.enabled(self.mode)

    def enabled(self, mode: Mode) -> bool:
        return bool(self._control_of(mode) & self._enable[mode])

    def _control_of(self, mode: Mode) -> int:
        return self.vs_control if mode.virtual else self.control

    def _configuration(self, t: Transfer) -> int:
        """The control register whose fields, but for enables and xTE, count ("Virtualization Mode Transitions")."""
        if self._ratified and t.target_mode.virtual:
            return self.vs_control
        return self._control_of(t.source_mode)

    def _freezes(self, t: Transfer, cause: int) -> bool:
        """ "Freeze": in 1.0 by where the trap goes, in the draft by the control register that is active."""
        control = self._control_of(t.target_mode if self._ratified else t.source_mode)
        return bool(control & self._freeze.get((t.type, cause), 0))

    def _external(self, t: Transfer) -> bool:
        """Whether a trap into a mode that is not enabled is recorded: "External Traps", 5.2.1 of the draft."""
        configuration = self._configuration(t)
        if configuration & self._rasemu or self._eten & ~configuration:
            return False
        modes = ABOVE[t.source_mode]
        modes = modes[: modes.index(t.target_mode) + 1] if self._ratified else (t.target_mode,)
        return all(self._control_of(mode) & self._xte[mode] for mode in modes)

    # -- what it does

    def _record(self, t: Transfer) -> None:
        """ "Privilege Mode Transitions": what is seen of a transfer between two modes."""
        source, target = self.enabled(t.source_mode), self.enabled(t.target_mode)
        if source and target:
            self._record_enabled(t)
        elif source and t.type in TRAPS:  # EXCINH and INTRINH do not count
            if self._external(t):
                self._insert(t._replace(target=0))
        elif source:
            self._record_enabled(t._replace(target=0))
        elif target and t.type in TRAPS:
            self._record_enabled(t._replace(source=0))

    def _record_enabled(self, t: Transfer) -> None:
        if self._configuration(t) & self._rasemu:
            self._emulate_stack(t)
        elif not inhibited(self._configuration(t), t.type):
            self._insert(t)

    def _emulate_stack(self, t: Transfer) -> None:
        """ "RAS (Return Address Stack) Emulation Mode"."""
        if t.type in CALLS:
            self._insert(t)
        elif t.type is TransferType.FUNCTION_RETURN:
            self._give_cycles_back()
            self.buffer.pop()
        elif t.type is TransferType.COROUTINE_SWAP:
            self._give_cycles_back()
            self.buffer.overwrite(t.type, t.source, t.target | t.mispredicted, self.cycles.take())

    def _insert(self, t: Transfer) -> None:
        self.buffer.push(t.type, t.source, t.target | t.mispredicted, self.cycles.take())

    def _give_cycles_back(self) -> None:
        """The youngest record goes; the next one counts from the record before it."""
        youngest = self.buffer.read(0)
        self.cycles.give_back(youngest.data if SOURCE.get(youngest.source, "V") else 0)


def inhibited(control: int, type: TransferType) -> bool:
    """ "Transfer Type Filtering": one of the bits means the opposite."""
    bit = bool(control >> FILTER_LSB + type & 1)
    return not bit if type is TransferType.NOT_TAKEN_BRANCH else bit
