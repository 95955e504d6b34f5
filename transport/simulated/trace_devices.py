"""Trace components as devices on the simulated bus: what they have in common.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Common registers", "Reset and discovery", "Enabling and
disabling"; fields and offsets come from the tables in `controlregs`. Where the document leaves a choice, the one is
taken that shows up a careless driver: fields that are undefined after reset hold junk, and a change of Active or Enable
shows up only when it has been polled for.
"""

from collections.abc import Mapping

from rvtrace_gdb.controlregs.common import CONTROL_OFFSET, IMPL_OFFSET
from rvtrace_gdb.controlregs.fields import Access, Register, RegisterBlock
from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.trace_build import ComponentBuild

ACTIVE, ENABLE, EMPTY = 1 << 0, 1 << 1, 1 << 3  # of tr??Control, at the same place in every component
BLOCK_SIZE = 0x1000
UNDEFINED = 0xA5A5_A5A5
"""What a field holds after reset whose reset value the document leaves undefined."""


class TraceComponent:
    """Storage and access rules of one component.

    *implemented* gives, by field name, the bits of a WARL field that can be written; fields not named there read 0.
    *constant* gives the value of read-only fields. *polls*: how many reads of tr??Control still show the old Active
    and Enable after a change, and Empty as 0 after Enable was cleared; anything else that happens also ends the wait.
    *build*: the choices of its makers, and their mistakes.
    """

    def __init__(
        self,
        block: RegisterBlock,
        *,
        implemented: Mapping[str, int],
        constant: Mapping[str, int],
        control_default: Mapping[str, int],
        polls: int = 1,
        build: ComponentBuild | None = None,
    ) -> None:
        self.block = block
        self.build = build or ComponentBuild()
        self._legal = {r.offset: _writable_bits(r, implemented) for r in block.registers}
        self._sticky = block.control.mask_of(Access.RW1C)
        self._impl = self.build.impl(block, block.impl.reset_value | _pack(block.impl, constant))
        self._control_default = block.control.pack(**control_default)
        self._never, self._always = self.build.stuck_bits(block)
        self._polls = polls
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
        """Active went to 1: everything has its reset value."""

    def deactivated(self) -> None:
        """Active went to 0: all that was under way is forgotten."""

    def control_changed(self, before: int) -> None:
        """tr??Control was written while active; *before* is its former value."""

    def flushed(self) -> None:
        """Enable was cleared and the time for the flush has passed."""

    def legalize(self, register: Register, value: int) -> int:
        """What becomes of *value*, reduced to writable bits already, on its way into *register*."""
        return value

    def load(self, register: Register) -> int:
        """The value a read of a register other than tr??Control and tr??Impl gives."""
        return self._registers.get(register.offset, 0)

    def store(self, register: Register, value: int) -> None:
        """A write to a register other than tr??Control."""
        self._registers[register.offset] = self.in_force(register, value & self._legal[register.offset])

    def in_force(self, register: Register, value: int) -> int:
        """What *value*, reduced to writable bits already, becomes in *register* of this very component.

        What goes together with other fields depends on what is hard-wired among them.
        """
        return self.build.legal(register, self.legalize(register, self.build.legal(register, value)))

    # -- state for those who know the component

    @property
    def active(self) -> bool:
        return bool(self._control & ACTIVE)

    @property
    def enabled(self) -> bool:
        return bool(self._control & ENABLE)

    @property
    def empty(self) -> bool:
        return not self._unsettled

    @property
    def impl(self) -> int:
        """tr??Impl."""
        return self._impl | self._registers.get(IMPL_OFFSET, 0)

    def field(self, name: str) -> int:
        """The value in force of a field, by the name the document gives it."""
        control = self.block.control
        if name in control.by_name:
            return control.get(self._control, name)
        register = next(r for r in self.block.registers if name in r.by_name)
        return self.field_of(register, name)

    def field_of(self, register: Register, name: str) -> int:
        """The same of one of several registers that have a field of this name."""
        return register.get(self._registers.get(register.offset, 0), name)

    def legal(self, register: Register) -> int:
        """The bits of *register* that can be written."""
        return self._legal[register.offset]

    def settle(self) -> None:
        """Time has passed: what was under way is done."""
        if self._unsettled:
            self._unsettled = False
            if self._shown & ENABLE and not self._control & ENABLE:
                self.flushed()

    # -- the bus side

    def read(self, offset: int, nbytes: int) -> int:
        """A bus read. 64-bit accesses are two of 32 bits; smaller ones read the whole register too."""
        if nbytes == 8:
            return self.read(offset, 4) | self.read(offset + 4, 4) << 32
        self._check_access(offset & ~3, nbytes)
        self.before_access()
        word = self._read_word(offset & ~3)
        return word >> 8 * (offset & 3) & (1 << 8 * nbytes) - 1

    def write(self, offset: int, nbytes: int, value: int) -> None:
        """A bus write of 32 bits, or twice that. Raises BusError for smaller ones: these registers are 32 bits wide."""
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
            self._control = self.build.legal(self.block.control, ACTIVE | self._control_default)
            self._registers = {offset: UNDEFINED & legal for offset, legal in self._legal.items()}
            for offset, junk in self._registers.items():
                self._registers[offset] = self.in_force(self.block.by_offset[offset], junk)
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
            self._polls_left = self._polls + self._flush_left
            self._unsettled = True
            if not self._polls_left:
                self.settle()


def _writable_bits(register: Register, implemented: Mapping[str, int]) -> int:
    bits = register.mask_of(Access.RW)
    return bits | _pack(register, {name: value for name, value in implemented.items() if name in register.by_name})


def _pack(register: Register, fields: Mapping[str, int]) -> int:
    return register.pack(**{name: value for name, value in fields.items() if name in register.by_name})
