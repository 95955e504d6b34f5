"""The trace encoder of the simulated target: the registers of the Trace Control Interface in front of a
`TraceProtocol`.

`implemented` returns the fields of its registers that do not depend on its protocol and its filters. External triggers
are inputs that switch the trace, and outputs that signal it. `ntrace` and `etrace` have what is specific to one
protocol.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace Encoder Control Interface", "Debug Trigger Module"
and "External Trace Triggers".
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from rvtrace_gdb.controlregs.encoder_features import FEATURES
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.trace_control import component_registers
from rvtrace_gdb.controlregs.trace_control import encoder_registers as te
from rvtrace_gdb.controlregs.trace_control.component_registers import TsMode
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions as ETraceOptions
from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.transport.simulated.devices import component
from rvtrace_gdb.transport.simulated.devices.component import UNDEFINED, ComponentBuild, TimestampUnit, TraceComponent
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild, ETraceProtocol
from rvtrace_gdb.transport.simulated.devices.filters import FilterUnits
from rvtrace_gdb.transport.simulated.devices.follower import HartFollower, HartSide, HartView, Qualifier, Underway
from rvtrace_gdb.transport.simulated.devices.ntrace import NTraceProtocol
from rvtrace_gdb.transport.simulated.devices.output import Outputs, TraceOutput
from rvtrace_gdb.transport.simulated.devices.protocol import Begin, ExecutingHart, TracedHart, TracePath, TraceProtocol
from rvtrace_gdb.transport.simulated.hart.triggers import TriggerAction

__all__ = ["OPTIONAL", "TraceEncoder"]

MAX_SRC_BITS = 12

OPTIONAL: Mapping[str, int] = {
    "trTeContext": 1,
    "trTeInstTrigEnable": 1,
    **dict.fromkeys((feature.field for feature in FEATURES), 1),
    "trTeInstImplicitReturnMode": 3,
    "trTeDataTracing": 1,
    "trTeDataNoValue": 1,
    "trTeDataNoAddr": 1,
    "trTeDataAddrCompress": 3,
    **component.IMPLEMENTED,
}
"""Fields an encoder may be built without, and their bits."""
_REQUIRED = {
    "trTeInstMode": 7,
    "trTeInstStallOrOverflow": 1,
    "trTeInhibitSrc": 1,
    "trTeInstSyncMode": 3,
    "trTeInstSyncMax": 15,
    "trTeSrcID": (1 << MAX_SRC_BITS) - 1,
    "trTeSrcBits": 15,
}


def implemented(absent: Collection[str], *, several_formats: bool) -> dict[str, int]:
    """Return the bits that can be written, by field."""
    optional = {name: bits for name, bits in OPTIONAL.items() if name not in absent}
    return {"trTeFormat": 7 if several_formats else 0} | _REQUIRED | optional


_BITS = 4  # of each one
_EVENTS = 0b0011  # tracing goes from 0 to 1, from 1 to 0; there are none of a vendor's
MOST = 8


@dataclass(frozen=True)
class ExternalTriggers:
    """The numbers of external trigger inputs and outputs. *fired* is called with the number of an output. Raises
    ValueError for more than 8.
    """

    inputs: int = 0
    outputs: int = 0
    fired: Callable[[int], None] = lambda number: None

    def __post_init__(self) -> None:
        if not 0 <= self.inputs <= MOST or not 0 <= self.outputs <= MOST:
            raise ValueError(f"an encoder has up to {MOST} trigger inputs and outputs")

    def legal(self) -> dict[int, int]:
        """Return the bits of their registers that can be written, by offset."""
        events = sum(_EVENTS << _BITS * number for number in range(self.outputs))
        return {te.TRIG_EXT_IN_CONTROL.offset: (1 << _BITS * self.inputs) - 1, te.TRIG_EXT_OUT_CONTROL.offset: events}

    def legalize(self, register: Register, value: int) -> int:
        """Replace reserved actions by none."""
        if register is te.TRIG_EXT_IN_CONTROL:
            for name, action in register.unpack(value).items():
                if action not in tuple(te.TrigAction):
                    value = register.put(value, name, te.TrigAction.NONE)
        return value

    def action(self, control: int, number: int) -> te.TrigAction:
        """Return the action of an input according to *control*, trTeTrigExtInControl."""
        return te.TrigAction(te.TRIG_EXT_IN_CONTROL.get(control, f"trTeTrigExtInAction{number}"))

    def tell(self, control: int, tracing: bool) -> None:
        """Fire the outputs that *control*, trTeTrigExtOutControl, selects when tracing is switched on or off."""
        event = 0 if tracing else 1
        for number in range(self.outputs):
            if control >> _BITS * number + event & 1:
                self.fired(number)


@dataclass(frozen=True)
class Protocols:
    """The protocols of an encoder.

    formats         those it has (trTeFormat), the one after reset first
    ntrace, etrace  the properties of each that no register sets
    """

    formats: Sequence[int] = (te.TeFormat.N_TRACE,)
    ntrace: EncoderOptions | None = None
    etrace: ETraceBuild | None = None

    def by_number(self, hart: TracedHart, out: Outputs) -> dict[int, TraceProtocol]:
        """Return the protocols by format, for the trace of *hart*, which goes to *out*."""
        make: dict[int, Callable[[], TraceProtocol]] = {
            te.TeFormat.N_TRACE: lambda: NTraceProtocol(hart, out, self.ntrace),
            te.TeFormat.E_TRACE: lambda: ETraceProtocol(hart, out, self.etrace or ETraceBuild()),
        }
        return {code: make[code]() for code in self.formats}

    @property
    def timestamp_bits(self) -> int:
        """The width of the timestamp counter."""
        return (self.ntrace and self.ntrace.timestamp_bits) or component.BITS


class TraceEncoder(HartSide, TraceComponent):
    """Follows one hart and feeds a sink, a bridge or a funnel, or two of them.

    `halted` and `resumed` report Debug Mode, in which it is silent.

    What the sink does not take (it is off, or stopped when full) is lost: trTeInstStallOrOverflow is set, and when the
    sink takes data again a message reports it and a synchronization follows. The hart is never stalled.

    *outputs*: one receiver of the trace or two; one that is not enabled gets none as long as another one is.
    *protocols*: N-Trace alone by default. *absent*: fields of OPTIONAL that read 0. *filters*, *triggers*: none by
    default. *time_from*: a funnel's unit that it shares timestamps with.
    """

    def __init__(
        self,
        hart: ExecutingHart,
        outputs: Sequence[TraceOutput],
        *,
        protocols: Protocols | None = None,
        absent: Collection[str] = (),
        filters: FilterUnits | None = None,
        triggers: ExternalTriggers | None = None,
        time_from: TimestampUnit | None = None,
        build: ComponentBuild | None = None,
    ) -> None:
        protocols = protocols or Protocols()
        formats = protocols.formats
        self._outputs = Outputs(tuple(outputs))
        self._units = filters or FilterUnits()
        self._triggers = triggers or ExternalTriggers()
        self._view = HartView(hart)
        seen = self._view if self._units.filters or self._units.comparators else hart
        self._protocols = protocols.by_number(seen, self._outputs)
        self._path = TracePath(self._protocols[formats[0]], lambda: self._outputs.ready)
        self._follower = HartFollower(hart, self._path)
        self.timestamps = TimestampUnit(
            {TsMode.INTERNAL_SYSTEM: lambda: seen.elapsed, TsMode.INTERNAL_CORE: lambda: seen.now},
            0 if "trTsActive" in absent else protocols.timestamp_bits,
            time_from,
            lambda value: self.build.legal(component_registers.TS_CONTROL, value),
        )
        mode = self._path.protocol.legalize(te.ENCODER_CONTROL, te.ENCODER_CONTROL.pack(trTeInstMode=te.InstMode.HTM))
        super().__init__(
            te.ENCODER,
            implemented=implemented(absent, several_formats=len(formats) > 1),
            constant={},
            control_default={"trTeInstMode": te.ENCODER_CONTROL.get(mode, "trTeInstMode"), "trTeFormat": formats[0]},
            build=build,
        )
        self._legal |= self._units.legal() | self._triggers.legal()
        self._hart = hart
        self._traced = False  # trTeInstTracing, as the trigger outputs have it
        self._outputs.connect(self.drain)

    @property
    def etrace(self) -> ETraceOptions | None:
        """The properties of its E-Trace side, if it has one."""
        protocol = self._protocols.get(te.TeFormat.E_TRACE)
        return protocol.options if isinstance(protocol, ETraceProtocol) else None

    # -- the hart's side

    def triggered(self, action: int) -> None:
        """Process a trigger with one of the trace actions that has fired at the hart's pc, between two blocks."""
        if action == TriggerAction.TRACE_NOTIFY:
            self.notify()
        elif self.enabled and self.field("trTeInstTrigEnable"):
            self._control = te.ENCODER_CONTROL.put(
                self._control, "trTeInstTracing", int(action == TriggerAction.TRACE_ON)
            )
            self._follow(Begin.ENABLED)

    def external_trigger(self, number: int) -> None:
        """Process external trigger input *number*."""
        control = self._registers.get(te.TRIG_EXT_IN_CONTROL.offset, 0)
        action = self._triggers.action(control, number)
        if action != te.TrigAction.NONE:
            self.triggered(action)

    # -- the encoder itself

    def _follow(self, reason: Begin, underway: Underway | None = None) -> None:
        """Start or stop as the registers and the hart's state demand. *underway*: see `HartFollower`."""
        traced = self.enabled and bool(self.field("trTeInstTracing")) and self.field("trTeInstMode") != te.InstMode.OFF
        self._follower.follow(self.enabled, traced, reason, underway)
        traced = bool(self.field("trTeInstTracing"))
        if traced != self._traced:
            self._traced = traced
            self._triggers.tell(self._registers[te.TRIG_EXT_OUT_CONTROL.offset], traced)

    def _deliver(self) -> None:
        """Deliver what is encoded; nothing is delivered while a flush is under way."""
        if not self._unsettled and not self._outputs.deliver():
            self._lose()

    def _lose(self) -> None:
        self._control |= te.ENCODER_CONTROL.mask("trTeInstStallOrOverflow")
        self._follower.lose()

    def _qualifier(self) -> Qualifier | None:
        """Return the filters, with the present contents of the registers."""
        if not self._units.filters and not self._units.comparators:
            return None
        filters = self._units.in_force(lambda register: self._registers.get(register.offset, 0), self._view.xlen)
        qualifier = Qualifier(self._view, self._path, filters)
        return None if qualifier.idle else qualifier

    # -- the register side

    @property
    def empty(self) -> bool:
        return super().empty and not self._outputs

    @property
    def impl(self) -> int:
        major, minor = self._path.protocol.version
        return te.ENCODER_IMPL.put(
            te.ENCODER_IMPL.put(super().impl, "trTeProtocolMajor", major), "trTeProtocolMinor", minor
        )

    @property
    def async_interval(self) -> int:
        return self._outputs.async_interval

    @property
    def _time_after_reset(self) -> int:
        return self.build.after_reset(component_registers.TS_CONTROL, UNDEFINED)

    def activated(self) -> None:
        self._path.protocol = self._protocols[self.field("trTeFormat")]
        self._outputs.clear()
        self.timestamps.reset(self._legal[component_registers.TS_CONTROL.offset], self._time_after_reset)

    def deactivated(self) -> None:
        self._follower.follow(False, False, Begin.ENABLED, self._hart.in_progress)
        self._path.protocol.trace_data(False)
        self._outputs.clear()
        self._traced = False
        self.timestamps.reset()

    def control_changed(self, before: int) -> None:
        if self.field("trTeFormat") != self._path.protocol.format:
            self._path.protocol = self._protocols[self.field("trTeFormat")]
            for register in (te.INST_FEATURES, te.DATA_CONTROL):
                self._registers[register.offset] = self.in_force(register, self._registers[register.offset])
        if self.enabled and not before & te.ENCODER_CONTROL.mask("trTeEnable"):
            self._control &= ~te.ENCODER_CONTROL.mask("trTeInstStallOrOverflow")
            self._outputs.fill_with(self._path.protocol.filling)
            self._follower.set_up(self._qualifier())
            self._path.protocol.set_up(self)
        self._path.protocol.trace_data(self.enabled and bool(self.field("trTeDataTracing")))
        self._follow(Begin.ENABLED, self._hart.in_progress)

    def flushed(self) -> None:
        self._outputs.fill()
        self._deliver()

    def legalize(self, register: Register, value: int) -> int:
        """Limit the fields to those of the selected protocol; another one can be selected while the encoder is not
        enabled.
        """
        protocol = self._path.protocol
        if register is te.ENCODER_CONTROL:
            if not self.enabled:
                protocol = self._protocols.get(register.get(value, "trTeFormat"), protocol)
            value = register.put(value, "trTeFormat", protocol.format)
        elif register is te.INST_FEATURES:
            value = register.put(value, "trTeSrcBits", min(register.get(value, "trTeSrcBits"), MAX_SRC_BITS))
        elif register is not te.DATA_CONTROL:
            return self._triggers.legalize(register, self._units.legalize(register, value))
        return protocol.legalize(register, value)

    def load(self, register: Register) -> int:
        if register in component_registers.TS_REGISTERS:
            return self.timestamps.load(register)
        if register is te.DATA_CONTROL:
            return register.put(super().load(register), "trTeDataImplemented", int(self._path.protocol.has_data_trace))
        return super().load(register)

    def store(self, register: Register, value: int) -> None:
        if register is component_registers.TS_CONTROL:
            self.timestamps.write(value, self.legal(register), self._time_after_reset)
            return
        super().store(register, value)
        if register is te.DATA_CONTROL and self.enabled:
            self._path.protocol.trace_data(bool(self.field("trTeDataTracing")))
