"""What encoder and funnel of version 0 have in common in the simulated target: registers, and where trace goes.

Sources: see `controlregs.sifive_v0`; the proposal's teControl, teImpl, "Trace Sinks", and the P550's tables.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.controlregs.fields import Access, Register, RegisterBlock
from rvtrace_gdb.controlregs.sifive_v0 import sinks, timestamp
from rvtrace_gdb.controlregs.sifive_v0.common import SinkType
from rvtrace_gdb.controlregs.sifive_v0.sinks import PibMode
from rvtrace_gdb.controlregs.timestamp import CONTROL as TS_CONTROL
from rvtrace_gdb.controlregs.timestamp import COUNTER_HIGH, COUNTER_LOW
from rvtrace_gdb.transport.simulated.timestamp_unit import TimestampUnit
from rvtrace_gdb.transport.simulated.trace_devices import ENABLE, TraceComponent
from rvtrace_gdb.transport.simulated.trace_output import TraceOutput
from rvtrace_gdb.transport.simulated.trace_pib_sink import Probe
from rvtrace_gdb.transport.simulated.v0_build import V0Build
from rvtrace_gdb.transport.simulated.v0_memory import V0Memory

Transfer = Callable[[int, bytes], None]
_HAS = {
    SinkType.SRAM: "hasSRAMSink",
    SinkType.ATB: "hasATBSink",
    SinkType.PIB: "hasPIBSink",
    SinkType.SBA: "hasSBASink",
    SinkType.FUNNEL: "hasFunnelSink",
}
_TIME = {timestamp.CONTROL: TS_CONTROL, timestamp.LOWER: COUNTER_LOW, timestamp.UPPER: COUNTER_HIGH}
"""The unit's registers, as those of 1.0 are called: what both have is at the same bits."""
_FILLING = b"\xff"  # MSEO 11 and no data
_IMPLEMENTED = {
    "pibMode": 15, "pibRefCenter": 1, "pibCalibrate": 1, "pibDivider": 0xFFFF,
    "tsCount": 1, "tsType": 7, "tsPrescale": 3, "tsEnable": 1, "tsBranch": 3,
}  # fmt: skip


class V0Component(TraceComponent):
    """*to*: the funnel's input it is connected to. *memory*, *pins*, *atb*: sinks inside of it. *fields*: the bits that
    can be written, by field, besides those of the sinks; *constant*, *reset*: what other fields hold, always or first.
    """

    filling = _FILLING

    def __init__(
        self,
        block: RegisterBlock,
        *,
        to: TraceOutput | None,
        memory: V0Memory | None,
        pins: Probe | None,
        atb: Transfer | None,
        fields: Mapping[str, int],
        constant: Mapping[str, int],
        reset: Mapping[str, int],
        polls: int,
        build: V0Build | None,
    ) -> None:
        self._to, self._memory, self._pins, self._atb = to, memory, pins, atb
        there = {
            SinkType.SRAM: memory is not None and memory.has_sram,
            SinkType.ATB: atb is not None,
            SinkType.PIB: pins is not None,
            SinkType.SBA: memory is not None and memory.has_system,
            SinkType.FUNNEL: to is not None,
        }
        self._sinks = [kind for kind, present in there.items() if present]
        if not self._sinks:
            raise ValueError(f"a {block.name} needs a sink")
        prefix, build = block.prefix, build or V0Build()
        width = memory.access_bytes if memory else 4
        stops = {prefix + "StopOnWrap": 1} if memory else {}
        flag = {"teStallOrOverflow": 1} if build.plain_flag else {}
        self._flag = 0 if build.plain_flag else block.control.mask_of(Access.RW0C)
        super().__init__(
            block,
            implemented={**_IMPLEMENTED, prefix + "Sink": 15, **stops, **flag, **fields},
            constant={**{_HAS[k]: 1 for k in self._sinks}, "sinkBytes": width.bit_length() - 3, **constant},
            control_default={prefix + "Sink": self._sinks[0], **reset},
            polls=polls,
            build=build,
        )
        self.timestamps: TimestampUnit
        if memory:
            memory.refused, memory.filled = self._refused, self._filled

    # -- where trace goes, as a `TraceOutput`

    by_message = True
    async_interval = 0

    def send(self, message: bytes) -> int:
        """One message to the chosen sink. Returns how many bytes were taken."""
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

    def _through_pins(self, probe: Probe, message: bytes) -> int:
        control = self._registers[sinks.PIB_CONTROL.offset]
        now = sinks.PIB_CONTROL.unpack(control)
        if not (now["pibActive"] and now["pibEnable"] and now["pibMode"]):
            self._refused()
            return 0
        probe.write(message)
        return len(message)

    def _over_atb(self, transfer: Transfer, message: bytes) -> int:
        now = sinks.ATB_CONTROL.unpack(self._registers[sinks.ATB_CONTROL.offset])
        if not (now["atbActive"] and now["atbEnable"]):
            self._refused()
            return 0
        transfer(now["atbId"], message)
        return len(message)

    @property
    def takes(self) -> bool:
        """The chosen sink takes messages now."""
        if self._chosen is SinkType.FUNNEL and self._to is not None:
            return self._to.ready
        return self._memory.ready if self._chosen in (SinkType.SRAM, SinkType.SBA) and self._memory else True

    @property
    def _chosen(self) -> SinkType:
        code = self.field(self.block.prefix + "Sink")
        return self._sinks[0] if code == SinkType.DEFAULT else SinkType(code)

    def _refused(self) -> None:
        """te- or tfSinkError."""
        self._control |= self.block.control.mask(self.block.prefix + "SinkError")

    def _filled(self) -> None:
        """te- or tfStopOnWrap."""
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
        """What the chosen sink has to know of te- or tfControl."""
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
        elif register is sinks.PIB_CONTROL:
            mode = register.get(value, "pibMode")
            if mode not in list(PibMode):
                value = register.put(value, "pibMode", PibMode.OFF)
            if mode < PibMode.PARALLEL_1:
                value = register.put(value, "pibRefCenter", 0)
        return value

    def load(self, register: Register) -> int:
        if register in _TIME:
            return self.timestamps.load(_TIME[register])
        if register in sinks.MEMORY:
            return self.build.legal(register, self._memory.load(register)) if self._memory else 0
        return super().load(register)

    def store(self, register: Register, value: int) -> None:
        if register in _TIME:
            if register is timestamp.CONTROL:
                self.timestamps.write(value, self.legal(register), 0)
        elif register in sinks.MEMORY:
            if self._memory:
                self._memory.store(register, self.build.legal(register, value))
        else:
            super().store(register, value)

    def _write_control(self, value: int) -> None:
        if not value & self._flag:
            self._control &= ~self._flag
        super()._write_control(value)

    def limited(self, value: int) -> int:
        """What becomes of tsControl in this very component."""
        return self.build.legal(timestamp.CONTROL, value)
