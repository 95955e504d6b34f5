"""The RAM sink of the simulated target.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace RAM Sink"; fields and offsets come from the tables
in `controlregs`.
"""

from collections.abc import Collection

from rvtrace_gdb.controlregs import ram_sink
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.trace_build import ComponentBuild
from rvtrace_gdb.transport.simulated.trace_devices import ENABLE
from rvtrace_gdb.transport.simulated.trace_output import TraceConsumer, async_interval

_START, _LIMIT = ram_sink.START_LOW.offset, ram_sink.LIMIT_LOW.offset
_WP, _RP = ram_sink.WP_LOW.offset, ram_sink.RP_LOW.offset
_DATA = ram_sink.DATA.offset
_HIGH = 4  # from trRam..Low to trRam..High
_WRAP = ram_sink.WP_LOW.mask("trRamWrap")
_ADDRESS_BITS = (1 << 30) - 1
_WORD = 4  # bytes; what SRAM is accessed by
_POINTERS = ("trRamStart", "trRamLimit", "trRamWP", "trRamRP")


class RamSink(TraceConsumer):
    """A RAM sink with up to two kinds of storage: *sram_size* bytes of its own, and whatever RAM is on *bus* (SMEM).

    *modes*: the kinds it has. *access_bytes*: the words it writes to system memory; what is less than one waits inside
    for more, or for the flush. Limit is the address of the last one written before the pointer returns to Start.
    *address_bits*: of the bus; with 32 the High registers do not exist. *window*: trRamData works in SMEM mode too.
    *sram_size* is a power of two.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        sram_size: int = 0x1_0000,
        modes: Collection[RamMode] = tuple(RamMode),
        access_bytes: int = _WORD,
        address_bits: int = 32,
        window: bool = False,
        polls: int = 1,
        build: ComponentBuild | None = None,
    ) -> None:
        _check(sram_size, access_bytes)
        self._bus = bus
        self._sram = bytearray(sram_size)
        self._modes, self._access_bytes = tuple(sorted(modes)), access_bytes
        self._address_bits, self._window = address_bits, window
        self._queue = b""  # less than a word
        low = {name + "Low": _ADDRESS_BITS for name in _POINTERS}
        high = {name + "High": (1 << address_bits - 32) - 1 for name in _POINTERS}
        super().__init__(
            ram_sink.RAM_SINK,
            implemented={"trRamMode": 1, "trRamStopOnWrap": 1, "trRamAsyncFreq": 7, "trRamWrap": 1, **low, **high},
            constant={"trRamHasSRAM": int(RamMode.SRAM in modes), "trRamHasSMEM": int(RamMode.SMEM in modes)},
            control_default={"trRamMode": self._modes[0]},
            polls=polls,
            build=build,
        )

    @property
    def async_interval(self) -> int:
        return async_interval(self.field("trRamAsyncFreq"))

    def accept(self, data: bytes) -> int:
        """Store *data*. Returns how many bytes were taken: fewer once the sink is off or has stopped."""
        if not self.ready:
            return 0
        waiting, self._queue = len(self._queue), self._queue + data
        whole = len(self._queue) - len(self._queue) % self._width
        stored = self._store(self._queue[:whole])
        self._queue = self._queue[whole:] if self.enabled else b""
        return len(data) if self.enabled else stored - waiting

    # -- registers

    @property
    def empty(self) -> bool:
        return super().empty and not self._queue

    def deactivated(self) -> None:
        self._queue = b""

    def control_changed(self, before: int) -> None:
        for register in self.block.registers:
            if _START <= register.offset <= _RP + _HIGH:
                self._registers[register.offset] = self.in_force(register, self._registers[register.offset])

    def flushed(self) -> None:
        queue, self._queue = self._queue, b""
        if queue:
            self._store(queue + self.filling * (-len(queue) % self._width), flushing=True)

    def legalize(self, register: Register, value: int) -> int:
        """In SRAM mode Start is fixed and the other pointers wrap at the memory's size; in SMEM mode there is no RP,
        unless there is a window."""
        if register is ram_sink.CONTROL:
            mode = register.get(value, "trRamMode")
            return register.put(value, "trRamMode", mode if mode in self._modes else self._modes[0])
        if not _START <= register.offset <= _RP + _HIGH:
            return value
        name = register.name.removesuffix("Low").removesuffix("High")
        absent = "trRamStart" if self._is_sram else "trRamRP" if not self._window else ""
        if name == absent:
            return 0
        if register.name.endswith("High"):
            return 0 if self._is_sram else value
        flag = value & _WRAP if register.offset == _WP else 0
        width = _WORD if register.offset == _RP else self._width
        return value & self._space - 1 & ~(width - 1) & 0xFFFF_FFFF | flag

    def store(self, register: Register, value: int) -> None:
        if not self.enabled:  # software must not move the pointers of a running sink; this one does not let it
            super().store(register, value)

    def load(self, register: Register) -> int:
        if register.offset == _DATA and (self._is_sram or self._window):
            return self._next_word()
        return super().load(register)

    @property
    def _is_sram(self) -> bool:
        return self.field("trRamMode") == RamMode.SRAM

    @property
    def _width(self) -> int:
        return _WORD if self._is_sram else self._access_bytes

    @property
    def _space(self) -> int:
        """Where addresses start again from 0."""
        return len(self._sram) if self._is_sram else 1 << self._address_bits

    def _pointer(self, low: int) -> int:
        return self._registers[low + _HIGH] << 32 | self._registers[low] & ~(_WORD - 1)

    def _point(self, low: int, address: int, flag: int = 0) -> None:
        self._registers[low + _HIGH], self._registers[low] = address >> 32, address & 0xFFFF_FFFF | flag

    # -- memory

    def _store(self, data: bytes, *, flushing: bool = False) -> int:
        """Write whole words; returns how many bytes there was room for before the sink stopped."""
        stored = 0
        while stored < len(data) and (self.enabled or flushing):
            pointer = self._pointer(_WP)
            # Only the very word at Limit turns the pointer back, so one set beyond Limit runs on, as in hardware.
            room = (self._pointer(_LIMIT) - pointer) % self._space + self._width
            piece = data[stored : stored + room]
            self._put(pointer, piece)
            stored += len(piece)
            self._advance(pointer + len(piece), full=len(piece) == room)
        return stored

    def _next_word(self) -> int:
        """trRamData: the word at the read pointer, which then advances, from Limit to Start, unless trace comes in."""
        pointer = self._pointer(_RP)
        if not self.enabled:
            at_limit = pointer == self._pointer(_LIMIT) + self._width - _WORD
            self._point(_RP, self._pointer(_START) if at_limit else (pointer + _WORD) % self._space)
        if self._is_sram:
            return int.from_bytes(self._sram[pointer : pointer + _WORD], "little")
        try:
            return int.from_bytes(self._bus.read_bytes(pointer, _WORD), "little")
        except BusError:
            return 0

    def _advance(self, pointer: int, *, full: bool) -> None:
        if not full:
            self._point(_WP, pointer % self._space, self._registers[_WP] & _WRAP)
            return
        self._point(_WP, self._pointer(_START), _WRAP)
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


def _check(sram_size: int, access_bytes: int) -> None:
    """Raises ValueError for what no sink can be."""
    if sram_size & sram_size - 1 or sram_size < 8:
        raise ValueError(f"an SRAM of {sram_size} bytes: the size must be a power of two")
    if access_bytes & access_bytes - 1 or access_bytes < _WORD:
        raise ValueError(f"words of {access_bytes} bytes: the size must be a power of two, and 4 or more")
