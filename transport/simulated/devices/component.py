"""Trace components as devices on the simulated bus: common registers, build options, and their time.

Fields and offsets come from the tables in `controlregs`. Where the document leaves a choice, the one is taken that
exposes a careless driver: fields that are undefined after reset hold junk, and a change of Active or Enable is visible
only after it has been polled for. A `ComponentBuild` holds the choices of an implementation ("Some WARL fields may be
hard coded to any value"), and possible faults.

The timestamp unit has the counter that trTsControl controls. Internal System counts time, which continues while the
hart sleeps; Internal Core counts the hart's own clock, which stops then. In Debug Mode no clock of the simulated target
runs, so trTsRunInDebug stays 0. Shared is the counter of a unit above, on the same system clock; External is a value
from another source.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Common registers", "Versioning of Components", "Reset and
Discovery" (a component may take its time), "Enabling and disabling", "Timestamp Unit".
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs.fields import FieldAccess, Register, RegisterBlock
from rvtrace_gdb.controlregs.trace_control import component_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import CONTROL_OFFSET, IMPL_OFFSET, VERSION, TsMode
from rvtrace_gdb.transport.simulated.bus import BusError


@dataclass(frozen=True)
class ComponentBuild:
    """Fields are named as in the document.

    fixed        fields that are hard-wired, and to what
    allowed      the values a field can have; another one becomes the nearest of these above it, or else the highest,
                 and if it is not 0 it does not become 0
    reset        fields that have these values after reset, where the document leaves them undefined
    version      tr??VerMajor and tr??VerMinor
    comp_type    tr??CompType, None: the right one
    vendor       bits 31:24 of tr??Impl
    polls        how many reads of tr??Control still show the old Active and Enable after a change, and Empty as 0 after
                 Enable was cleared; any other access also ends the wait
    flush_polls  for so many reads of tr??Control tr??Enable reads 0 already, and tr??Empty does not read 1 yet
    stuck        bits of tr??Control that always read the same: "Active", "Enable", "Empty" and their values
    faults       offsets of registers whose accesses are bus errors
    powered_down while Active is 0 accesses to other registers are bus errors
    """

    fixed: Mapping[str, int] = field(default_factory=dict)
    allowed: Mapping[str, Collection[int]] = field(default_factory=dict)
    reset: Mapping[str, int] = field(default_factory=dict)
    version: tuple[int, int] = VERSION
    comp_type: int | None = None
    vendor: int = 0
    polls: int = 1
    flush_polls: int = 0
    stuck: Mapping[str, int] = field(default_factory=dict)
    faults: Collection[int] = ()
    powered_down: bool = False

    def legal(self, register: Register, value: int) -> int:
        """Return what *value* becomes in *register* for the fields that are limited."""
        for name in register.by_name.keys() & self.allowed.keys():
            value = register.put(value, name, _nearest(register.get(value, name), self.allowed[name]))
        for name in register.by_name.keys() & self.fixed.keys():
            value = register.put(value, name, self.fixed[name])
        return value

    def impl(self, block: RegisterBlock, value: int) -> int:
        """Return tr??Impl of this component; *value* is the document's."""
        comp_type = block.comp_type if self.comp_type is None else self.comp_type
        fields = {"VerMajor": self.version[0], "VerMinor": self.version[1]}
        if comp_type != component_registers.ANY_COMP_TYPE:
            fields["CompType"] = comp_type
        for name, number in fields.items():
            value = block.impl.put(value, block.prefix + name, number)
        return value & 0x00FF_FFFF | self.vendor << 24

    def after_reset(self, register: Register, value: int) -> int:
        """Return *register* after reset; *value* is what it holds where nothing else is said."""
        for name in register.by_name.keys() & self.reset.keys():
            value = register.put(value, name, self.reset[name])
        return value

    def stuck_bits(self, block: RegisterBlock) -> tuple[int, int]:
        """Return masks of tr??Control: the bits that always read 0, and those that always read 1."""
        masks = dict.fromkeys((0, 1), 0)
        for name, level in self.stuck.items():
            masks[level] |= block.control.mask(block.prefix + name)
        return masks[0], masks[1]

    def check_access(self, offset: int, nbytes: int, *, active: bool, control: int) -> None:
        """Raise BusError for an access that is not answered. *control*: the offset of tr??Control."""
        if offset in self.faults or (self.powered_down and not active and offset != control):
            raise BusError(offset, nbytes)


def _nearest(requested: int, allowed: Collection[int]) -> int:
    """Return a legal value (WARL) for one that is not: a non-zero value becomes a non-zero one, if there is any."""
    values = sorted(allowed)
    if requested not in values:
        values = [value for value in values if value] or values
    return next((value for value in values if value >= requested), values[-1])


ACTIVE, ENABLE, EMPTY = 1 << 0, 1 << 1, 1 << 3  # of tr??Control, at the same place in every component
BLOCK_SIZE = 0x1000
UNDEFINED = 0xA5A5_A5A5
"""What a field holds after reset whose reset value the document leaves undefined."""


class TraceComponent:
    """The storage and the access rules of one component.

    *implemented* gives, by field name, the bits of a WARL field that can be written; fields not named there read 0.
    *constant* gives the value of read-only fields. *build*: the choices of the
    implementation, and its faults.
    """

    def __init__(
        self,
        block: RegisterBlock,
        *,
        implemented: Mapping[str, int],
        constant: Mapping[str, int],
        control_default: Mapping[str, int],
        build: ComponentBuild | None = None,
    ) -> None:
        self.block = block
        self.build = build or ComponentBuild()
        self._legal = {r.offset: _writable_bits(r, implemented) for r in block.registers}
        self._sticky = block.control.mask_of(FieldAccess.RW1C)
        self._impl = self.build.impl(block, block.impl.reset_value | _pack(block.impl, constant))
        self._control_default = block.control.pack(**control_default)
        self._never, self._always = self.build.stuck_bits(block)
        self._polls_left = 0
        self._flush_left = 0
        self._unsettled = False
        self._shown = 0
        self._registers: dict[int, int] = {}
        self._control = 0

    # -- what a component does, besides holding values

    def before_access(self) -> None:
        """Bring everything up to date before software looks at or changes a register."""

    def activated(self) -> None:
        """React to Active becoming 1: everything has its reset value."""

    def deactivated(self) -> None:
        """React to Active becoming 0: all pending work is dropped."""

    def control_changed(self, before: int) -> None:
        """React to a write of tr??Control while active; *before* is its former value."""

    def flushed(self) -> None:
        """React to the end of a flush, after Enable was cleared."""

    def legalize(self, register: Register, value: int) -> int:
        """Return what *value*, already reduced to writable bits, becomes in *register*."""
        return value

    def load(self, register: Register) -> int:
        """Return the value that a read of a register other than tr??Control and tr??Impl gives."""
        return self._registers.get(register.offset, 0)

    def store(self, register: Register, value: int) -> None:
        """Store a value written to a register other than tr??Control."""
        self._registers[register.offset] = self.in_force(register, value & self._legal[register.offset])

    def in_force(self, register: Register, value: int) -> int:
        """Return what *value*, already reduced to writable bits, becomes in *register* of this component.

        Fields that depend on others depend on which of those are hard-wired.
        """
        return self.build.legal(register, self.legalize(register, self.build.legal(register, value)))

    # -- state for those who know the component

    @property
    def active(self) -> bool:
        return bool(self._control & ACTIVE)

    @property
    def enabled(self) -> bool:
        return self.is_switched_on

    @property
    def is_switched_on(self) -> bool:
        """Whether it is enabled, for those that tr??Enable does not say it of."""
        return bool(self._control & ENABLE)

    @property
    def empty(self) -> bool:
        return not self._unsettled

    @property
    def impl(self) -> int:
        """The value of tr??Impl."""
        return self._impl | self._registers.get(IMPL_OFFSET, 0)

    def field(self, name: str) -> int:
        """Return the value in force of a field, by the document's name of it."""
        control = self.block.control
        if name in control.by_name:
            return control.get(self._control, name)
        register = next(r for r in self.block.registers if name in r.by_name)
        return self.field_of(register, name)

    def field_of(self, register: Register, name: str) -> int:
        """Return the value of a field of *register*, when several registers have a field of this name."""
        return register.get(self._registers.get(register.offset, 0), name)

    def legal(self, register: Register) -> int:
        """Return the bits of *register* that can be written."""
        return self._legal[register.offset]

    def settle(self) -> None:
        """Finish pending changes, as time has passed."""
        if self._unsettled:
            self._unsettled = False
            if self._shown & ENABLE and not self._control & ENABLE:
                self.flushed()

    # -- the bus side

    def read(self, offset: int, nbytes: int) -> int:
        """Do a bus read. 64-bit accesses are two of 32 bits; smaller ones read the whole register too."""
        if nbytes == 8:
            return self.read(offset, 4) | self.read(offset + 4, 4) << 32
        self._check_access(offset & ~3, nbytes)
        self.before_access()
        word = self._read_word(offset & ~3)
        return word >> 8 * (offset & 3) & (1 << 8 * nbytes) - 1

    def write(self, offset: int, nbytes: int, value: int) -> None:
        """Do a bus write of 32 bits, or twice that. Raises BusError for smaller ones: these registers are 32 bits wide.
        """
        if nbytes == 8:
            self.write(offset, 4, value & 0xFFFF_FFFF)
            self.write(offset + 4, 4, value >> 32)
            return
        if nbytes != 4 or offset & 3:
            raise BusError(offset, nbytes)
        self._check_access(offset, nbytes)
        self.before_access()
        self._write_word(offset, value)

    def _check_access(self, offset: int, nbytes: int) -> None:
        self.build.check_access(offset, nbytes, active=self.active, control=CONTROL_OFFSET)

    def _read_word(self, offset: int) -> int:
        register = self.block.by_offset.get(offset)
        if register is None:
            return 0
        if offset == CONTROL_OFFSET:
            return self._read_control()
        if not self.active:
            return 0
        return self.impl if offset == IMPL_OFFSET else self.load(register)

    def _write_word(self, offset: int, value: int) -> None:
        self.settle()
        register = self.block.by_offset.get(offset)
        if offset == CONTROL_OFFSET:
            self._write_control(value)
        elif register is not None and self.active and (offset != IMPL_OFFSET or self._legal[offset]):
            self.store(register, value)

    def _read_control(self) -> int:
        return self._visible_control() & ~self._never | self._always

    def _visible_control(self) -> int:
        if not self._unsettled:
            return self._control | (EMPTY if self.empty else 0)
        self._polls_left -= 1
        if self._polls_left < self._flush_left:
            value = self._control
        else:
            value = self._control & ~(ACTIVE | ENABLE) | self._shown
        if self._polls_left <= 0:
            self.settle()
        return value

    def _write_control(self, value: int) -> None:
        before = self._control
        value &= ~self._never
        if not value & ACTIVE:
            self._control = 0
            self._registers.clear()
            self.deactivated()
        elif not before & ACTIVE:
            control = self.build.after_reset(self.block.control, ACTIVE | self._control_default)
            self._control = self.build.legal(self.block.control, control)
            self._registers = {offset: UNDEFINED & legal for offset, legal in self._legal.items()}
            for offset, junk in self._registers.items():
                register = self.block.by_offset[offset]
                self._registers[offset] = self.in_force(register, self.build.after_reset(register, junk))
            self.activated()
        else:
            legal = self._legal[CONTROL_OFFSET]
            sticky = before & self._sticky & ~value
            new = before & ~legal | value & legal
            self._control = self.in_force(self.block.control, new & ~self._sticky | sticky)
            self.control_changed(before)
        if (before ^ self._control) & (ACTIVE | ENABLE):
            self._shown = before & (ACTIVE | ENABLE)
            self._flush_left = self.build.flush_polls if self._shown & ENABLE else 0
            self._polls_left = self.build.polls + self._flush_left
            self._unsettled = True
            if not self._polls_left:
                self.settle()


def _writable_bits(register: Register, implemented: Mapping[str, int]) -> int:
    bits = register.mask_of(FieldAccess.RW)
    return bits | _pack(register, {name: value for name, value in implemented.items() if name in register.by_name})


def _pack(register: Register, fields: Mapping[str, int]) -> int:
    return register.pack(**{name: value for name, value in fields.items() if name in register.by_name})


TimeSource = Callable[[], int]

BITS = 40
"""Width of the counter."""
IMPLEMENTED = {"trTsActive": 1, "trTsCount": 1, "trTsMode": 7, "trTsPrescale": 3, "trTsEnable": 1}
"""Bits of the WARL fields of trTsControl that can be written, by field."""

_GET = component_registers.TS_CONTROL.get
_ACTIVE, _RESET = component_registers.TS_CONTROL.mask("trTsActive"), component_registers.TS_CONTROL.mask("trTsReset")


class TimestampUnit:
    """A timestamp unit. *clocks* gives the input clock of each mode it has, in cycles; other modes become the first
    one.

    *above*: the unit whose counter mode Shared is; without *clocks* that is the only mode. Its input clock must be that
    of Internal System. *limit*: further restricts trTsControl.
    """

    def __init__(
        self,
        clocks: Mapping[int, TimeSource],
        bits: int = BITS,
        above: "TimestampUnit | None" = None,
        limit: Callable[[int], int] = lambda value: value,
    ) -> None:
        self.bits = bits
        self.control = 0
        """trTsControl."""
        self.powered = True
        """Whether what contains it is; else it passes nothing on."""
        self._clocks = clocks
        self._above = above
        self._limit = limit
        self._offset = 0  # the input clock when the counter was 0
        self._held = 0  # the counter while it does not run

    @property
    def enabled(self) -> bool:
        """Whether messages carry timestamps."""
        return bool(_GET(self.control, "trTsEnable"))

    @property
    def counts_idle_time(self) -> bool:
        return self._mode in (TsMode.INTERNAL_SYSTEM, TsMode.SHARED)

    @property
    def clock(self) -> int:
        """The present input clock, in cycles."""
        if self._mode == TsMode.SHARED:
            own = self._clocks.get(TsMode.INTERNAL_SYSTEM)
            return own() if own is not None else self._above.clock if self._above is not None else 0
        return self._clocks[self._mode]() if self._mode in self._clocks else 0

    @property
    def shift(self) -> int:
        """The counter is the clock shifted right by this number of bits (trTsPrescale)."""
        if self._mode == TsMode.SHARED and self._above is not None:
            return self._above.shift
        return 0 if self._mode == TsMode.EXTERNAL else 2 * _GET(self.control, "trTsPrescale")

    def counter_at(self, clock: int) -> int:
        """Return the counter when the input clock was *clock*, not wrapped at its width."""
        if self._mode == TsMode.SHARED and self._above is not None:
            return self._above.counter_at(clock) if self.powered else 0
        if self._mode == TsMode.EXTERNAL:
            return clock
        return clock - self._offset >> self.shift if self._running else self._held

    @property
    def counter(self) -> int:
        """The value of trTsCounterHigh and trTsCounterLow."""
        return self.counter_at(self.clock) & (1 << self.bits) - 1

    def load(self, register: Register) -> int:
        """Return the value that a read of one of its registers gives."""
        if register is component_registers.TS_CONTROL:
            return register.put(self.control, "trTsWidth", self.bits)
        return self.counter & 0xFFFF_FFFF if register is component_registers.TS_COUNTER_LOW else self.counter >> 32

    def reset(self, legal: int = 0, undefined: int = 0) -> None:
        """*legal*, *undefined*: as in `write`, if the unit is active whenever what contains it is."""
        self.control = self._offset = self._held = 0
        if self._limit(0) & _ACTIVE:
            self.control = self._legalized(undefined & legal | _ACTIVE)

    def write(self, value: int, legal: int, undefined: int) -> int:
        """Write trTsControl; return the value in force.

        *legal*: the bits that can be written. *undefined*: what they hold when trTsActive becomes 1; other bits written
        with it are ignored.
        """
        if not self._limit(value & legal) & _ACTIVE:
            self.reset()
        elif not self.control & _ACTIVE:
            self.control = self._legalized(undefined & legal | _ACTIVE)
        else:
            self._held = 0 if value & _RESET else self.counter_at(self.clock)
            self.control = self._legalized(value & legal)
            self._offset = self.clock - (self._held << self.shift)
        return self.control

    @property
    def _mode(self) -> int:
        return _GET(self.control, "trTsMode") if self._clocks else TsMode.SHARED

    @property
    def _running(self) -> bool:
        return bool(_GET(self.control, "trTsCount")) and self._mode in self._clocks

    def _legalized(self, value: int) -> int:
        modes = [TsMode.NONE, *self._clocks, *([TsMode.SHARED] if self._above is not None else [])]
        if not self._clocks:
            modes = [TsMode.SHARED]
        if _GET(value, "trTsMode") not in modes:
            value = component_registers.TS_CONTROL.put(
                value, "trTsMode", next(mode for mode in modes if mode != TsMode.NONE)
            )
        value = self._limit(value)
        return value if _GET(value, "trTsMode") else component_registers.TS_CONTROL.put(value, "trTsEnable", 0)
