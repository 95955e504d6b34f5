"""The trace encoder of version 0 in the simulated target, as the P550 has it.

Its messages are N-Trace as SiFive's encoders spoke it before the standard. What teInstruction 7 optimises, and how
full I-CNT is reported, is seen in SiFive's captures.

Sources: see `controlregs.sifive_v0` and `decode.ntrace.options`; the proposal's teControl, the P550's "Trace Encoder"
tables.
"""

import dataclasses
from collections.abc import Callable, Collection
from sys import maxsize

from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.sifive_v0 import ENCODER, component_registers
from rvtrace_gdb.controlregs.sifive_v0.component_registers import (
    SYNC_OFF,
    SliceFormat,
    TsBranch,
    V0InstMode,
    XtiAction,
)
from rvtrace_gdb.controlregs.trace_control.component_registers import TsMode
from rvtrace_gdb.decode.ntrace.options import SIFIVE, EncoderOptions, ImplicitReturn, InstSyncMode
from rvtrace_gdb.transport.simulated.devices import component
from rvtrace_gdb.transport.simulated.devices.component import BITS, TimestampUnit
from rvtrace_gdb.transport.simulated.devices.encoder import ExternalTriggers
from rvtrace_gdb.transport.simulated.devices.follower import HartFollower, HartSide, Underway
from rvtrace_gdb.transport.simulated.devices.ntrace import NTraceProtocol
from rvtrace_gdb.transport.simulated.devices.output import Outputs
from rvtrace_gdb.transport.simulated.devices.protocol import Begin, EncoderFields, ExecutingHart, TracedHart, TracePath
from rvtrace_gdb.transport.simulated.hart.triggers import TriggerAction
from rvtrace_gdb.transport.simulated.sifive_v0.component import Receivers, V0Build, V0Component

_RETURN_DEPTH = 1023  # the P550's counter of calls
_ICNT_LIMIT = 1 << 16


class V0Trace(NTraceProtocol):
    """An `NTraceProtocol` with the fields of teControl, teImpl and tsControl."""

    def __init__(self, hart: TracedHart, out: Outputs) -> None:
        super().__init__(hart, out, EncoderOptions(dialect=SIFIVE, timestamp_bits=BITS, return_depth=_RETURN_DEPTH))

    def _options(self, settings: EncoderFields) -> EncoderOptions:
        field = settings.field
        optimized = field("teInstruction") == V0InstMode.HTM_OPTIMIZED
        bits = 0 if field("teInhibitSrc") else field("nSrcBits")
        mode, period = _sync(field("teSyncMaxBTM"), field("teSyncMaxInst"))
        branches = field("tsBranch") != TsBranch.NONE
        return dataclasses.replace(
            self._built_with,
            src_bits=bits,
            src_id=field("srcID") & (1 << bits) - 1,
            sync_mode=mode,
            sync_max=period,
            icnt_limit=_ICNT_LIMIT if field("teSyncMaxInst") == SYNC_OFF else 1 << field("teSyncMaxInst") + 4,
            btm=field("teInstruction") == V0InstMode.BTM,
            implicit_return=ImplicitReturn.COUNTER if optimized else ImplicitReturn.OFF,
            repeated_history=optimized,
            timestamps=settings.timestamps.enabled,
            timestamp_sparse=1 if branches else maxsize,
            xlen=self._hart.xlen,
        )


def _sync(messages: int, halfwords: int) -> tuple[InstSyncMode, int]:
    """Return the synchronization mode and interval: 2**(teSyncMaxBTM + 5) messages; with that off 2**(teSyncMaxInst +
    4) halfwords.
    """
    if messages != SYNC_OFF:
        return InstSyncMode.MESSAGES, messages + 1
    return (InstSyncMode.OFF, 0) if halfwords == SYNC_OFF else (InstSyncMode.HALFWORDS, halfwords)


STARTS, STOPS = 1, 2
"""What a trigger output can tell: bits of xtoEvent."""
_BTM_MAX, _INST_MAX = 11, 10
_CONTROL = component_registers.ENCODER_CONTROL
_RESET = {"teSyncMaxBTM": 3, "teSyncMaxInst": 10, "teSliceFormat": SliceFormat.NEXUS}
_FIELDS = {
    "teInstruction": 7, "teInstrumentation": 3, "teStallEnable": 1, "teInhibitSrc": 1,
    "teSyncMaxBTM": 15, "teSyncMaxInst": 15, "itcTraceEnable": 0xFFFF_FFFF, "itcTrigEnable": 0xFFFF_FFFF,
}  # fmt: skip
_TRACED = (V0InstMode.BTM, V0InstMode.HTM, V0InstMode.HTM_OPTIMIZED)
P550_MODES = (V0InstMode.NONE, V0InstMode.HTM, V0InstMode.HTM_OPTIMIZED)


@dataclasses.dataclass(frozen=True)
class V0Source:
    """The source ID of an encoder. *src_id*, *src_bits*: what srcID and nSrcBits hold; *fixed*: always. *hartid*: None,
    as on the P550 the source ID.
    """

    src_id: int = 0
    src_bits: int = 0
    fixed: bool = True
    hartid: int | None = None

    @property
    def own(self) -> dict[str, int]:
        """What the fields hold after a reset."""
        return {"srcID": self.src_id, "nSrcBits": self.src_bits}

    @property
    def writable(self) -> dict[str, int]:
        """The bits of the fields that software can write."""
        return {} if self.fixed else {"srcID": 15, "nSrcBits": 7}

    @property
    def constant(self) -> dict[str, int]:
        """What always reads the same."""
        hartid = self.src_id if self.hartid is None else self.hartid
        return {"hartid": hartid, **(self.own if self.fixed else {})}


def _trigger_fields(triggers: ExternalTriggers) -> dict[str, int]:
    inputs = {f"xtiAction{n}": 15 for n in range(triggers.inputs)}
    return inputs | {f"xtoEvent{n}": STARTS | STOPS for n in range(triggers.outputs)}


class V0Encoder(HartSide, V0Component):
    """Follows one hart, and sends to a funnel or to a sink inside of it, as teSink says.

    What does not find room is lost: teStallOrOverflow is set, and when there is some again a message says so. The hart
    is never stalled. *modes*: what teInstruction can be. *triggers*: none by default. *time_from*: whose slave the
    timestamp unit is; without one it counts the bus clock.
    """

    def __init__(
        self,
        hart: ExecutingHart,
        *,
        receivers: Receivers,
        source: V0Source = V0Source(),
        modes: Collection[int] = P550_MODES,
        triggers: ExternalTriggers | None = None,
        time_from: TimestampUnit | None = None,
        build: V0Build | None = None,
    ) -> None:
        self._outputs = Outputs((_EncoderOutput(self),))
        self._path = TracePath(V0Trace(hart, self._outputs), lambda: self.takes)
        self._follower = HartFollower(hart, self._path)
        self._modes = sorted(modes)
        triggers = triggers or ExternalTriggers()
        self._fired = triggers.fired
        self._hart = hart
        self._traced = False  # teTracing, as the trigger outputs have it
        self._source = source
        super().__init__(
            ENCODER,
            receivers,
            fields=_FIELDS | _trigger_fields(triggers) | source.writable,
            constant=source.constant,
            reset=_RESET,
            build=build,
        )
        self.timestamps = TimestampUnit(
            {} if time_from is not None else {TsMode.INTERNAL_SYSTEM: lambda: hart.elapsed},
            component.BITS,
            time_from,
            self.limited,
        )
        if receivers.to is not None:
            receivers.to.fed_by(self.drain)

    # -- the hart's side

    def triggered(self, action: int) -> None:
        """Process a debug trigger with one of the trace actions that has fired: no register has to allow it."""
        if action == TriggerAction.TRACE_NOTIFY:
            self.notify()
        elif self.enabled:
            self._control = _CONTROL.put(self._control, "teTracing", int(action == TriggerAction.TRACE_ON))
            self._follow(Begin.ENABLED)

    def external_trigger(self, number: int) -> None:
        """Process external trigger input *number*."""
        action = component_registers.XTI_CONTROL.get(
            self._registers.get(component_registers.XTI_CONTROL.offset, 0), f"xtiAction{number}"
        )
        if action:
            self.triggered(action)

    # -- the encoder itself

    def _follow(self, reason: Begin, underway: Underway | None = None) -> None:
        traced = self.enabled and bool(self.field("teTracing")) and self.field("teInstruction") in _TRACED
        self._follower.follow(self.enabled, traced, reason, underway)
        traced = bool(self.field("teTracing"))
        if traced != self._traced:
            self._traced = traced
            events = component_registers.XTO_CONTROL.unpack(
                self._registers.get(component_registers.XTO_CONTROL.offset, 0)
            )
            for number, event in enumerate(events.values()):
                if event & (STARTS if traced else STOPS):
                    self._fired(number)

    def _deliver(self) -> None:
        """Deliver what is encoded; nothing is delivered while a flush is under way."""
        if self._unsettled:
            return
        if not self._outputs.deliver():
            self._lose()
        if not self.enabled and self._follower.tracing:
            self._follow(Begin.ENABLED)  # its own sink was full

    def _lose(self) -> None:
        self._control |= _CONTROL.mask("teStallOrOverflow")
        self._follower.lose()

    # -- the register side

    @property
    def empty(self) -> bool:
        return super().empty and not self._outputs

    def activated(self) -> None:
        super().activated()
        if not self._source.fixed:
            self._registers[component_registers.ENCODER_IMPL.offset] = component_registers.ENCODER_IMPL.pack(
                **self._source.own
            )
        self._outputs.clear()

    def deactivated(self) -> None:
        self._follower.follow(False, False, Begin.ENABLED, self._hart.in_progress)
        self._outputs.clear()
        self._traced = False
        super().deactivated()

    def control_changed(self, before: int) -> None:
        super().control_changed(before)
        if self.enabled and not before & _CONTROL.mask("teEnable"):
            self._follower.set_up(None)
            self._path.protocol.set_up(self)
        self._follow(Begin.ENABLED, self._hart.in_progress)

    def flushed(self) -> None:
        self._deliver()
        super().flushed()

    def legalize(self, register: Register, value: int) -> int:
        if register is _CONTROL:
            if register.get(value, "teInstruction") not in self._modes:
                value = register.put(value, "teInstruction", self._modes[0])
            value = _limited(value, "teSyncMaxBTM", _BTM_MAX)
            value = _limited(value, "teSyncMaxInst", _INST_MAX)
        elif register is component_registers.XTI_CONTROL:
            for name, action in register.unpack(value).items():
                if action not in list(XtiAction):
                    value = register.put(value, name, XtiAction.NONE)
        return super().legalize(register, value)

    def field(self, name: str) -> int:
        if name in component_registers.ENCODER_IMPL.by_name:
            return component_registers.ENCODER_IMPL.get(self.impl, name)
        if name in component_registers.TS_CONTROL.by_name:
            return component_registers.TS_CONTROL.get(self.timestamps.control, name)
        return super().field(name)


def _limited(value: int, name: str, highest: int) -> int:
    got = _CONTROL.get(value, name)
    return value if got <= highest or got == SYNC_OFF else _CONTROL.put(value, name, highest)


class _EncoderOutput:
    """The output through which the encoder's messages pass."""

    by_message = True
    enabled = True
    filling = b"\xff"
    async_interval = 0

    def __init__(self, owner: V0Encoder) -> None:
        self._owner = owner

    @property
    def ready(self) -> bool:
        return self._owner.takes

    def fed_by(self, drain: Callable[[], None]) -> None:
        """Do nothing: its owner knows what feeds it."""

    def accept(self, data: bytes) -> int:
        return self._owner.send(data)
