"""The common part of encoders and funnels of version 0 in the simulated target: registers, and the receivers of trace.

A `V0Build` holds the choices that the documents leave to an implementation, and its faults. `V0Memory` is the memory in
which an encoder or a funnel stores trace: SRAM or system memory.

Sources: see `controlregs.sifive_v0`; the proposal's teControl, teImpl, "Trace Sinks", teSink* registers, and the P550's
tables ("Trace Funnel Sink").
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rvtrace_gdb.controlregs.fields import FieldAccess, Register, RegisterBlock
from rvtrace_gdb.controlregs.sifive_v0 import component_registers
from rvtrace_gdb.controlregs.sifive_v0.component_registers import SinkType, V0PibMode
from rvtrace_gdb.controlregs.trace_control.component_registers import TS_CONTROL, TS_COUNTER_HIGH, TS_COUNTER_LOW
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.devices.component import ENABLE, ComponentBuild, TimestampUnit, TraceComponent
from rvtrace_gdb.transport.simulated.devices.output import TraceOutput
from rvtrace_gdb.transport.simulated.devices.sinks import PinProbe, SinkTransfer


@dataclass(frozen=True)
class V0Build(ComponentBuild):
    """Fields are named as in `controlregs.sifive_v0`.

    version     another one than 0: te- or tfImpl is as that of the ratified interface, *comp_type* and *vendor* count
    plain_flag  teStallOrOverflow becomes what is written to it (P550: "RW"); else only 0 can be written
    """

    version: tuple[int, int] = (0, 0)
    plain_flag: bool = False

    def impl(self, block: RegisterBlock, value: int) -> int:
        """Return te- or tfImpl; *value* is that of version 0."""
        if self.version == (0, 0):
            return value
        return self.version[0] | self.version[1] << 4 | (self.comp_type or 0) << 8 | self.vendor << 24


_WORD = 4  # bytes; what SRAM is read by
_ONES = 0xFFFF_FFFF
_WRAPPED = component_registers.SINK_WP.mask("teSinkWrapped")


@dataclass
class SinkPointers:
    """The registers of a memory sink: where the buffer is, and where in it the next word is written and read.

    base, limit  the addresses of the first and of the last word; *high*: their bits from 32 on
    wp, rp       the write and the read pointer
    wrapped      whether the write pointer went back to the base
    """

    base: int = 0
    high: int = 0
    limit: int = 0
    wp: int = 0
    rp: int = 0
    wrapped: bool = False


class V0Memory:
    """*sram_size* bytes of its own (a power of two; 0: none), and, if it reaches *system* memory, the RAM on *bus*.

    *access_bytes*: the words it stores; what is less than one waits for more, or for the flush. *address_bits*: of the
    bus. *settable_bytes*: the steps in which addresses can be set, None: words. Limit belongs to buffers in system
    memory only: SRAM is used whole. Who owns it says whether it is *in_sram*.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        sram_size: int = 0,
        system: bool = True,
        access_bytes: int = 8,
        address_bits: int = 40,
        settable_bytes: int | None = None,
    ) -> None:
        if sram_size & sram_size - 1:
            raise ValueError(f"an SRAM of {sram_size} bytes: the size must be a power of two")
        if access_bytes not in (4, 8, 16, 32):
            raise ValueError(f"words of {access_bytes} bytes: they have 4, 8, 16 or 32")
        self.has_sram, self.has_system = bool(sram_size), system
        self.access_bytes = access_bytes
        self._step = settable_bytes or access_bytes
        self.in_sram = not system
        self.stops = False
        """It is to stop when it is full for the first time."""
        self.refused: Callable[[], None] = lambda: None
        """Told that there is no memory where it should store."""
        self.filled: Callable[[], None] = lambda: None
        """Told that it has stopped."""
        self.stopped = False
        self._bus = bus
        self._sram = bytearray(sram_size)
        self._high_bits = (1 << max(address_bits - 32, 0)) - 1
        self.reset()

    def reset(self) -> None:
        """All registers are 0."""
        self._pointers = SinkPointers()
        self.stopped = False
        self._queue = b""  # less than a word

    # -- registers

    def load(self, register: Register) -> int:
        """Return the value that a read gives."""
        pointers = self._pointers
        if register is component_registers.SINK_DATA:
            return self._next_word()
        if register is component_registers.SINK_WP:
            return pointers.wp | (_WRAPPED if pointers.wrapped else 0)
        values = {
            component_registers.SINK_BASE: pointers.base,
            component_registers.SINK_BASE_HIGH: pointers.high,
            component_registers.SINK_LIMIT: pointers.limit,
            component_registers.SINK_RP: pointers.rp,
        }
        return values[register]

    def store(self, register: Register, value: int) -> None:
        """Store a value written to a register. Addresses are multiples of the word."""
        pointers = self._pointers
        address = value & self._mask
        if register is component_registers.SINK_WP:
            pointers.wp, pointers.wrapped = address, bool(value & _WRAPPED)
        elif register is component_registers.SINK_RP:
            pointers.rp = value & len(self._sram) - 1 & -_WORD if self._sram else 0
        elif self.in_sram:
            return  # Base is 0, and there is no Limit
        elif register is component_registers.SINK_BASE:
            pointers.base = address
        elif register is component_registers.SINK_BASE_HIGH:
            pointers.high = value & self._high_bits
        elif register is component_registers.SINK_LIMIT:
            pointers.limit = address

    @property
    def _mask(self) -> int:
        """The bits of an address that exist."""
        return (len(self._sram) - 1 if self.in_sram else _ONES) & -self._step

    def _next_word(self) -> int:
        """Return teSinkData: the word at the read pointer, which then advances."""
        if not self._sram:
            return 0
        at = self._pointers.rp
        self._pointers.rp = (at + _WORD) % len(self._sram)
        return int.from_bytes(self._sram[at : at + _WORD], "little")

    # -- trace

    @property
    def waiting(self) -> bool:
        """Whether bytes wait for a word to be complete."""
        return bool(self._queue)

    @property
    def ready(self) -> bool:
        return not self.stopped

    def accept(self, data: bytes) -> int:
        """Store *data*. Return how many bytes were taken: fewer once it has stopped."""
        if self.stopped:
            return 0
        waiting, whole = len(self._queue), self._queue + data
        words = [whole[n : n + self.access_bytes] for n in range(0, len(whole), self.access_bytes)]
        self._queue = words.pop() if len(words[-1]) < self.access_bytes else b""
        for number, word in enumerate(words, 1):
            if self._put(word):
                self._queue = b""
                return number * self.access_bytes - waiting
        return len(data)

    def flush(self, filling: bytes) -> None:
        """Store the bytes that wait, the rest of the word filled."""
        queue, self._queue = self._queue, b""
        if queue and not self.stopped:
            self._put(queue + filling * (self.access_bytes - len(queue)))

    def _put(self, word: bytes) -> bool:
        """Store a word. Return whether the sink has stopped with it."""
        pointers = self._pointers
        if self.in_sram:
            self._sram[pointers.wp : pointers.wp + len(word)] = word
        else:
            try:
                self._bus.write_bytes(pointers.high << 32 | pointers.wp, word)
            except BusError:
                self.refused()
        last = len(self._sram) - len(word) if self.in_sram else pointers.limit
        if pointers.wp != last:
            pointers.wp = pointers.wp + len(word) & _ONES
            return False
        pointers.wp, pointers.wrapped, self.stopped = pointers.base, True, self.stops
        if self.stops:
            self.filled()
        return self.stops


_HAS = {
    SinkType.SRAM: "hasSRAMSink",
    SinkType.ATB: "hasATBSink",
    SinkType.PIB: "hasPIBSink",
    SinkType.SBA: "hasSBASink",
    SinkType.FUNNEL: "hasFunnelSink",
}
_TIME = {
    component_registers.TS_CONTROL: TS_CONTROL,
    component_registers.TS_LOWER: TS_COUNTER_LOW,
    component_registers.TS_UPPER: TS_COUNTER_HIGH,
}
"""The unit's registers, as those of 1.0 are called: what both have is at the same bits."""
_FILLING = b"\xff"  # MSEO 11 and no data
_IMPLEMENTED = {
    "pibMode": 15, "pibRefCenter": 1, "pibCalibrate": 1, "pibDivider": 0xFFFF,
    "tsCount": 1, "tsType": 7, "tsPrescale": 3, "tsEnable": 1, "tsBranch": 3,
}  # fmt: skip


@dataclass(frozen=True)
class Receivers:
    """Where the trace of a component goes.

    to                 the input of the funnel above
    memory, pins, atb  the sinks inside the component
    """

    to: TraceOutput | None = None
    memory: V0Memory | None = None
    pins: PinProbe | None = None
    atb: SinkTransfer | None = None

    @property
    def kinds(self) -> list[SinkType]:
        """What the component can send to, in the order of the codes."""
        memory = self.memory
        there = {
            SinkType.SRAM: memory is not None and memory.has_sram,
            SinkType.ATB: self.atb is not None,
            SinkType.PIB: self.pins is not None,
            SinkType.SBA: memory is not None and memory.has_system,
            SinkType.FUNNEL: self.to is not None,
        }
        return [kind for kind, present in there.items() if present]


class V0Component(TraceComponent):
    """A component of version 0.

    fields    the bits that can be written, by field, besides those of the sinks
    constant  the values of fields that never change
    reset     the values of fields after a reset
    """

    filling = _FILLING

    def __init__(
        self,
        block: RegisterBlock,
        receivers: Receivers,
        *,
        fields: Mapping[str, int],
        constant: Mapping[str, int],
        reset: Mapping[str, int],
        build: V0Build | None,
    ) -> None:
        self._to, self._memory, self._pins, self._atb = receivers.to, receivers.memory, receivers.pins, receivers.atb
        memory, self._sinks = receivers.memory, receivers.kinds
        if not self._sinks:
            raise ValueError(f"a {block.name} needs a sink")
        prefix, build = block.prefix, build or V0Build()
        width = memory.access_bytes if memory else 4
        stops = {prefix + "StopOnWrap": 1} if memory else {}
        flag = {"teStallOrOverflow": 1} if build.plain_flag else {}
        self._flag = 0 if build.plain_flag else block.control.mask_of(FieldAccess.RW0C)
        super().__init__(
            block,
            implemented={**_IMPLEMENTED, prefix + "Sink": 15, **stops, **flag, **fields},
            constant={**{_HAS[k]: 1 for k in self._sinks}, "sinkBytes": width.bit_length() - 3, **constant},
            control_default={prefix + "Sink": self._sinks[0], **reset},
            build=build,
        )
        self.timestamps: TimestampUnit
        if memory:
            memory.refused, memory.filled = self._refused, self._filled

    # -- where trace goes, as a `TraceOutput`

    by_message = True
    async_interval = 0

    def send(self, message: bytes) -> int:
        """Send one message to the selected sink. Return how many bytes were taken."""
        kind = self._chosen
        if kind is SinkType.FUNNEL and self._to is not None:
            if not self._to.enabled:
                self._refused()
            return self._to.accept(message)
        if kind is SinkType.PIB and self._pins is not None:
            return self._through_pins(self._pins, message)
        if kind is SinkType.ATB and self._atb is not None:
            return self._over_atb(self._atb, message)
        return self._memory.accept(message) if self._memory else 0

    def _through_pins(self, probe: PinProbe, message: bytes) -> int:
        control = self._registers[component_registers.PIB_CONTROL.offset]
        now = component_registers.PIB_CONTROL.unpack(control)
        if not (now["pibActive"] and now["pibEnable"] and now["pibMode"]):
            self._refused()
            return 0
        probe.write(message)
        return len(message)

    def _over_atb(self, transfer: SinkTransfer, message: bytes) -> int:
        now = component_registers.ATB_CONTROL.unpack(self._registers[component_registers.ATB_CONTROL.offset])
        if not (now["atbActive"] and now["atbEnable"]):
            self._refused()
            return 0
        transfer(now["atbId"], message)
        return len(message)

    @property
    def takes(self) -> bool:
        """Return whether the selected sink takes messages now."""
        if self._chosen is SinkType.FUNNEL and self._to is not None:
            return self._to.ready
        return self._memory.ready if self._chosen in (SinkType.SRAM, SinkType.SBA) and self._memory else True

    @property
    def _chosen(self) -> SinkType:
        code = self.field(self.block.prefix + "Sink")
        return self._sinks[0] if code == SinkType.DEFAULT else SinkType(code)

    def _refused(self) -> None:
        """Note a refused access in te- or tfSinkError."""
        self._control |= self.block.control.mask(self.block.prefix + "SinkError")

    def _filled(self) -> None:
        """Disable it, because its sink is full (te- or tfStopOnWrap)."""
        self._control &= ~ENABLE

    # -- registers

    @property
    def empty(self) -> bool:
        return super().empty and not (self._memory and self._memory.waiting and not self.enabled)

    def activated(self) -> None:
        self._registers = {r.offset: self.in_force(r, r.reset_value) for r in self.block.registers}
        self.timestamps.powered = True
        self.timestamps.reset()
        self.control_follows()

    def deactivated(self) -> None:
        self.timestamps.powered = False
        self.timestamps.reset()
        if self._memory:
            self._memory.reset()

    def control_follows(self) -> None:
        """Set what the selected sink needs to know of te- or tfControl."""
        if self._memory:
            self._memory.in_sram = self._chosen is not SinkType.SBA and self._memory.has_sram
            self._memory.stops = bool(self.field(self.block.prefix + "StopOnWrap"))

    def control_changed(self, before: int) -> None:
        if self._memory and self.enabled and not before & ENABLE:
            self._memory.stopped = False
        self.control_follows()

    def flushed(self) -> None:
        if self._memory:
            self._memory.flush(self.filling)

    def legalize(self, register: Register, value: int) -> int:
        if register is self.block.control:
            field = self.block.prefix + "Sink"
            if register.get(value, field) not in self._sinks:
                value = register.put(value, field, self._sinks[0])
        elif register is component_registers.PIB_CONTROL:
            mode = register.get(value, "pibMode")
            if mode not in list(V0PibMode):
                value = register.put(value, "pibMode", V0PibMode.OFF)
            if mode < V0PibMode.PARALLEL_1:
                value = register.put(value, "pibRefCenter", 0)
        return value

    def load(self, register: Register) -> int:
        if register in _TIME:
            return self.timestamps.load(_TIME[register])
        if register in component_registers.MEMORY_REGISTERS:
            return self.build.legal(register, self._memory.load(register)) if self._memory else 0
        return super().load(register)

    def store(self, register: Register, value: int) -> None:
        if register in _TIME:
            if register is component_registers.TS_CONTROL:
                self.timestamps.write(value, self.legal(register), 0)
        elif register in component_registers.MEMORY_REGISTERS:
            if self._memory:
                self._memory.store(register, self.build.legal(register, value))
        else:
            super().store(register, value)

    def _write_control(self, value: int) -> None:
        if not value & self._flag:
            self._control &= ~self._flag
        super()._write_control(value)

    def limited(self, value: int) -> int:
        """Return what a value of tsControl becomes in this component."""
        return self.build.legal(component_registers.TS_CONTROL, value)
