"""The RAM sink of the simulated target.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace RAM sink"; fields and offsets come from the tables
in `controlregs`.
"""

from collections.abc import Callable

from controlregs import ram_sink
from controlregs.fields import Register
from transport.simulated.bus import Bus, BusError
from transport.simulated.trace_devices import ENABLE, TraceComponent

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
