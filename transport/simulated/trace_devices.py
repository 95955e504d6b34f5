"""Trace components as devices on the simulated bus: what they have in common, and the RAM sink.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Common registers", "Reset and discovery", "Enabling and
disabling", "Trace RAM sink"; fields and offsets come from the tables in `controlregs`. Where the document leaves a
choice, the one is taken that shows up a careless driver: fields that are undefined after reset hold junk, and a change
of Active or Enable shows up only when it has been polled for.
"""

from collections.abc import Callable, Mapping

from controlregs import ram_sink
from controlregs.common import CONTROL_OFFSET, IMPL_OFFSET
from controlregs.fields import Access, Register, RegisterBlock
from transport.simulated.bus import Bus, BusError

ACTIVE, ENABLE, EMPTY = 1 << 0, 1 << 1, 1 << 3  # of tr??Control, at the same place in every component
BLOCK_SIZE = 0x1000
UNDEFINED = 0xA5A5_A5A5
"""What a field holds after reset whose reset value the document leaves undefined."""


class TraceComponent:
    """Storage and access rules of one component.

    *implemented* gives, by field name, the bits of a WARL field that can be written; fields not named there read 0.
    *constant* gives the value of read-only fields. *polls*: how many reads of tr??Control still show the old Active
    and Enable after a change, and Empty as 0 after Enable was cleared; anything else that happens also ends the wait.
    """

    def __init__(
        self,
        block: RegisterBlock,
        *,
        implemented: Mapping[str, int],
        constant: Mapping[str, int],
        control_default: Mapping[str, int],
        polls: int = 1,
    ) -> None:
        self.block = block
        self._legal = {r.offset: _writable_bits(r, implemented) for r in block.registers}
        self._sticky = block.control.mask_of(Access.RW1C)
        self._impl = block.impl.reset_value | _pack(block.impl, constant)
        self._control_default = block.control.pack(**control_default)
        self._polls = polls
        self._polls_left = 0
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
        """A write to a register other than tr??Control and tr??Impl."""
        self._registers[register.offset] = self.legalize(register, value & self._legal[register.offset])

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
        return self._impl

    def field(self, name: str) -> int:
        """The value in force of a field, by the name the document gives it."""
        control = self.block.control
        if name in control.by_name:
            return control.get(self._control, name)
        register = next(r for r in self.block.registers if name in r.by_name)
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
        self.before_access()
        self._write_word(offset, value)

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
        elif register is not None and offset != IMPL_OFFSET and self.active:
            self.store(register, value)

    def _read_control(self) -> int:
        if not self._unsettled:
            return self._control | (EMPTY if self.empty else 0)
        value = self._control & ~(ACTIVE | ENABLE) | self._shown
        self._polls_left -= 1
        if self._polls_left <= 0:
            self.settle()
        return value

    def _write_control(self, value: int) -> None:
        before = self._control
        if not value & ACTIVE:
            self._control = 0
            self._registers.clear()
            self.deactivated()
        elif not before & ACTIVE:
            self._control = ACTIVE | self._control_default
            self._registers = {offset: UNDEFINED & legal for offset, legal in self._legal.items()}
            for offset, junk in self._registers.items():
                self._registers[offset] = self.legalize(self.block.by_offset[offset], junk)
            self.activated()
        else:
            legal = self._legal[CONTROL_OFFSET]
            sticky = before & self._sticky & ~value
            new = before & ~legal | value & legal
            self._control = self.legalize(self.block.control, new & ~self._sticky | sticky)
            self.control_changed(before)
        if (before ^ self._control) & (ACTIVE | ENABLE):
            self._shown = before & (ACTIVE | ENABLE)
            self._polls_left = self._polls
            self._unsettled = True
            if not self._polls:
                self.settle()


def _writable_bits(register: Register, implemented: Mapping[str, int]) -> int:
    bits = register.mask_of(Access.RW)
    return bits | _pack(register, {name: value for name, value in implemented.items() if name in register.by_name})


def _pack(register: Register, fields: Mapping[str, int]) -> int:
    return register.pack(**{name: value for name, value in fields.items() if name in register.by_name})


_START, _LIMIT = ram_sink.START_LOW.offset, ram_sink.LIMIT_LOW.offset
_WP, _RP = ram_sink.WP_LOW.offset, ram_sink.RP_LOW.offset
_DATA = ram_sink.DATA.offset
_WRAP = ram_sink.WP_LOW.mask("trRamWrap")
_ADDRESS_BITS = (1 << 30) - 1
_ASYNC_UNIT = 128  # bytes; how often synchronization sequences come, trRamAsyncFreq doubling it, is ours to choose


class RamSink(TraceComponent):
    """A RAM sink with both kinds of storage: *sram_size* bytes of its own, and whatever RAM is on *bus* (SMEM).

    It takes words of 4 bytes, so Limit is the address of the last word written before the pointer returns to Start.
    *sram_size* is a power of two. The whole address space is below 4 GiB, so the High registers do not exist.
    """

    def __init__(self, bus: Bus, *, sram_size: int = 0x1_0000, polls: int = 1) -> None:
        pointers = dict.fromkeys(("trRamStartLow", "trRamLimitLow", "trRamWPLow", "trRamRPLow"), _ADDRESS_BITS)
        super().__init__(
            ram_sink.RAM_SINK,
            implemented={"trRamMode": 1, "trRamStopOnWrap": 1, "trRamAsyncFreq": 7, "trRamWrap": 1, **pointers},
            constant={"trRamHasSRAM": 1, "trRamHasSMEM": 1},
            control_default={"trRamMode": ram_sink.RamMode.SRAM},
            polls=polls,
        )
        if sram_size & sram_size - 1 or sram_size < 8:
            raise ValueError(f"an SRAM of {sram_size} bytes: the size must be a power of two")
        self._bus = bus
        self._sram = bytearray(sram_size)
        self.feeder: Callable[[], None] = lambda: None  # whoever sends data here: delivers what it has

    @property
    def async_interval(self) -> int:
        """After so many bytes another synchronization sequence is due (trRamAsyncFreq), 0: never.

        The encoder inserts it, which sees where packets begin.
        """
        frequency = self.field("trRamAsyncFreq")
        return _ASYNC_UNIT << frequency if frequency else 0

    def accept(self, data: bytes) -> int:
        """Store *data*, whole words. Returns how many bytes were taken: fewer once the sink is off or has stopped."""
        taken = 0
        while taken < len(data) and self.enabled:
            pointer = self._registers[_WP] & ~_WRAP
            # Only the very word at Limit turns the pointer back, so one set beyond Limit runs on, as in hardware.
            room = (self._registers[_LIMIT] - pointer) % self._space + 4
            piece = data[taken : taken + room]
            self._put(pointer, piece)
            taken += len(piece)
            self._advance(pointer + len(piece), full=len(piece) == room)
        return taken

    def before_access(self) -> None:
        self.feeder()

    def control_changed(self, before: int) -> None:
        for offset in (_START, _LIMIT, _WP, _RP):
            self._registers[offset] = self.legalize(self.block.by_offset[offset], self._registers[offset])

    def legalize(self, register: Register, value: int) -> int:
        """In SRAM mode Start is fixed and the other pointers wrap at the memory's size; in SMEM mode there is no RP."""
        if register.offset in (_LIMIT, _WP, _RP) and self._is_sram:
            return value & (self._space - 1)
        if register.offset == (_START if self._is_sram else _RP):
            return 0
        return value

    def store(self, register: Register, value: int) -> None:
        if not self.enabled:  # software must not move the pointers of a running sink; this one does not let it
            super().store(register, value)

    def load(self, register: Register) -> int:
        return self._next_word() if register.offset == _DATA and self._is_sram else super().load(register)

    @property
    def _is_sram(self) -> bool:
        return self.field("trRamMode") == ram_sink.RamMode.SRAM

    @property
    def _space(self) -> int:
        """Where addresses start again from 0."""
        return len(self._sram) if self._is_sram else 1 << 32

    def _next_word(self) -> int:
        """trRamData: the word at the read pointer, which then advances, from Limit to Start."""
        pointer = self._registers[_RP]
        at_limit = pointer == self._registers[_LIMIT]
        self._registers[_RP] = self._registers[_START] if at_limit else (pointer + 4) % self._space
        return int.from_bytes(self._sram[pointer : pointer + 4], "little")

    def _advance(self, pointer: int, *, full: bool) -> None:
        if not full:
            self._registers[_WP] = pointer % self._space | self._registers[_WP] & _WRAP
            return
        self._registers[_WP] = self._registers[_START] | _WRAP
        if self.field("trRamStopOnWrap"):
            self._control &= ~ENABLE

    def _put(self, address: int, data: bytes) -> None:
        if self._is_sram:
            first = data[: len(self._sram) - address]
            self._sram[address : address + len(first)] = first
            self._sram[: len(data) - len(first)] = data[len(first) :]
            return
        try:
            self._bus.write_bytes(address, data)
        except BusError:
            return  # the document has no error bit: what is sent to where no memory is, is gone
