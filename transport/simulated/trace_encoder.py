"""The trace encoder of the simulated target: the registers of the Trace Control Interface before a `TraceProtocol`.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace Encoder Control Interface" and "Debug Trigger
Module". What only one protocol has is in `trace_ntrace` and `trace_etrace`.
"""

from collections.abc import Callable, Collection, Sequence

from controlregs import encoder as te
from controlregs import timestamp
from controlregs.fields import Register
from controlregs.timestamp import TsMode
from decode.etrace.encoder_options import EncoderOptions as ETraceOptions
from decode.ntrace.encoder import EncoderOptions
from transport.simulated import timestamp_unit
from transport.simulated.block import HartBlock
from transport.simulated.hart import Retired
from transport.simulated.timestamp_unit import TimestampUnit
from transport.simulated.trace_devices import UNDEFINED, TraceComponent
from transport.simulated.trace_etrace import ETrace, ETraceBuild
from transport.simulated.trace_ingress import TracedHart
from transport.simulated.trace_ntrace import NTrace
from transport.simulated.trace_protocol import Begin, End, TraceProtocol
from transport.simulated.trace_ram_sink import RamSink
from transport.simulated.triggers import Action

_WORD = 4  # the encoder hands bytes on in words of this size; a flush fills the last one up
_MAX_SRC_BITS = 12

OPTIONAL = {
    "trTeContext": 1,
    "trTeInstTrigEnable": 1,
    "trTeInstNoAddrDiff": 1,
    "trTeInstNoTrapAddr": 1,
    "trTeInstEnSequentialJump": 1,
    "trTeInstEnImplicitReturn": 1,
    "trTeInstEnBranchPrediction": 1,
    "trTeInstEnJumpTargetCache": 1,
    "trTeInstImplicitReturnMode": 3,
    "trTeInstEnRepeatedHistory": 1,
    "trTeInstEnAllJumps": 1,
    "trTeInstExtendAddrMSB": 1,
    "trTeDataTracing": 1,
    "trTeDataNoValue": 1,
    "trTeDataNoAddr": 1,
    "trTeDataAddrCompress": 3,
    **timestamp_unit.IMPLEMENTED,
}
"""Fields an encoder may be built without, and their bits."""
_REQUIRED = {
    "trTeInstMode": 7,
    "trTeInstStallOrOverflow": 1,
    "trTeInhibitSrc": 1,
    "trTeInstSyncMode": 3,
    "trTeInstSyncMax": 15,
    "trTeSrcID": (1 << _MAX_SRC_BITS) - 1,
    "trTeSrcBits": 15,
}


class TraceEncoder(TraceComponent):
    """Follows one hart and feeds one RAM sink. `halted` and `resumed` tell it of Debug Mode, in which it is silent.

    What the sink does not take (it is off, or stopped when full) is lost: trTeInstStallOrOverflow is set, and when the
    sink takes data again a message says so and a synchronization follows. The hart is never stalled.

    *formats*: the protocols it has (trTeFormat), the one after reset first. *built_with*, *etrace*: the properties of
    each that no register sets. *absent*: fields of OPTIONAL that read 0.
    """

    def __init__(
        self,
        hart: TracedHart,
        sink: RamSink,
        in_progress: Callable[[], tuple[HartBlock, int] | None] = lambda: None,
        *,
        formats: Sequence[int] = (te.Format.N_TRACE,),
        built_with: EncoderOptions | None = None,
        etrace: ETraceBuild | None = None,
        absent: Collection[str] = (),
        polls: int = 1,
    ) -> None:
        self._fifo = bytearray()
        make: dict[int, Callable[[], TraceProtocol]] = {
            te.Format.N_TRACE: lambda: NTrace(hart, self._fifo.extend, built_with),
            te.Format.E_TRACE: lambda: ETrace(hart, self._fifo.extend, etrace or ETraceBuild()),
        }
        self._protocols = {code: make[code]() for code in formats}
        self._protocol = self._protocols[formats[0]]
        self.timestamps = TimestampUnit(
            {TsMode.INTERNAL_SYSTEM: lambda: hart.elapsed, TsMode.INTERNAL_CORE: lambda: hart.now},
            0 if "trTsActive" in absent else (built_with and built_with.timestamp_bits) or timestamp_unit.BITS,
        )
        mode = self._protocol.legalize(te.CONTROL, te.CONTROL.pack(trTeInstMode=te.InstMode.HTM))
        super().__init__(
            te.ENCODER,
            implemented={"trTeFormat": 7 if len(self._protocols) > 1 else 0}
            | _REQUIRED
            | {name: bits for name, bits in OPTIONAL.items() if name not in absent},
            constant={},
            control_default={"trTeInstMode": te.CONTROL.get(mode, "trTeInstMode"), "trTeFormat": formats[0]},
            polls=polls,
        )
        self.watch: Callable[[Sequence[Retired]], None] = lambda retired: None
        """Shown everything the hart retires while it is traced, before it is encoded: what the trace must say."""
        self._hart = hart
        self._sink = sink
        self._in_progress = in_progress
        sink.feeder = self.drain
        self._in_debug = False
        self._tracing = False
        self._overrun = False

    @property
    def etrace(self) -> ETraceOptions | None:
        """How its E-Trace side is built, if it has one."""
        protocol = self._protocols.get(te.Format.E_TRACE)
        return protocol.options if isinstance(protocol, ETrace) else None

    # -- the hart's side

    def drain(self) -> None:
        """Encode what the hart has retired since the last time, and pass it on to the sink."""
        retired = self._hart.retired if self._tracing else None
        if retired:
            self.watch(retired)
            if self._overrun and self._sink.enabled:
                self._overrun = False
                self._protocol.recover()
            if not self._overrun:
                self._protocol.tell(retired)
            else:
                self._protocol.skip(retired)
            retired.clear()
        self._deliver()

    def halted(self) -> None:
        """The hart entered Debug Mode. This does not flush."""
        self._stop(End.IN_DEBUG)
        self._in_debug = True

    def resumed(self) -> None:
        """The hart leaves Debug Mode."""
        self._in_debug = False
        self._follow(Begin.LEFT_DEBUG)

    def hart_reset(self) -> None:
        """The hart is about to be reset while running. The encoder is not."""
        self._stop(End.DISABLED)

    def hart_started(self) -> None:
        """The hart starts at its reset vector."""
        self._in_debug = False
        self._follow(Begin.LEFT_RESET)

    def triggered(self, action: int) -> None:
        """A trigger with one of the trace actions has fired at the hart's pc, between two blocks."""
        if action == Action.TRACE_NOTIFY:
            self.drain()
            if self._tracing and not self._overrun:
                self._protocol.notify()
        elif self.enabled and self.field("trTeInstTrigEnable"):
            self._control = te.CONTROL.put(self._control, "trTeInstTracing", int(action == Action.TRACE_ON))
            self._follow(Begin.ENABLED)

    # -- the encoder itself

    def _follow(self, reason: Begin, underway: tuple[HartBlock, int] | None = None) -> None:
        """Start or stop as the registers and the hart's state demand. *underway*: see `_stop`."""
        wanted = self.enabled and bool(self.field("trTeInstTracing")) and self.field("trTeInstMode") != te.InstMode.OFF
        if not wanted:
            self._stop(End.DISABLED, underway)
        elif not self._tracing and not self._in_debug:
            self._tracing = True
            self._protocol.begin(reason)
            self._hart.retired = []

    def _stop(self, reason: End, underway: tuple[HartBlock, int] | None = None) -> None:
        """*underway*: the program itself writes our registers, and its block has retired this far."""
        if not self._tracing:
            return
        pc = self._hart.pc
        if underway is not None:
            block, count = underway
            pc = block.pcs[count]
            if count and self._hart.retired is not None:
                self._hart.retired.append(underway)
        self.drain()
        self._tracing = False
        self._hart.retired = None
        if not self._overrun:
            self._protocol.end(reason, pc)
        self._overrun = False

    def _deliver(self) -> None:
        """Whole words go to the sink; the rest waits for more, or for a flush."""
        whole = len(self._fifo) - len(self._fifo) % _WORD
        if whole and not self._unsettled:
            taken = self._sink.accept(bytes(self._fifo[:whole]))
            if taken < whole:
                self._control |= te.CONTROL.mask("trTeInstStallOrOverflow")
                self._overrun = self._tracing
                self._fifo.clear()
            else:
                del self._fifo[:whole]

    # -- the register side

    @property
    def empty(self) -> bool:
        return super().empty and not self._fifo

    @property
    def impl(self) -> int:
        major, minor = self._protocol.version
        return te.IMPL.put(te.IMPL.put(super().impl, "trTeProtocolMajor", major), "trTeProtocolMinor", minor)

    @property
    def async_interval(self) -> int:
        return self._sink.async_interval

    def before_access(self) -> None:
        self.drain()

    def activated(self) -> None:
        self._protocol = self._protocols[self.field("trTeFormat")]
        self._fifo.clear()
        self.timestamps.reset()

    def deactivated(self) -> None:
        self._stop(End.DISABLED, self._in_progress())
        self._protocol.trace_data(False)
        self._fifo.clear()
        self.timestamps.reset()

    def control_changed(self, before: int) -> None:
        if self.field("trTeFormat") != self._protocol.format:
            self._protocol = self._protocols[self.field("trTeFormat")]
            for register in (te.INST_FEATURES, te.DATA_CONTROL):
                self._registers[register.offset] = self.legalize(register, self._registers[register.offset])
        if self.enabled and not before & te.CONTROL.mask("trTeEnable"):
            self._control &= ~te.CONTROL.mask("trTeInstStallOrOverflow")
            self._protocol.set_up(self)
        self._protocol.trace_data(self.enabled and bool(self.field("trTeDataTracing")))
        self._follow(Begin.ENABLED, self._in_progress())

    def flushed(self) -> None:
        self._fifo.extend(self._protocol.filling * (-len(self._fifo) % _WORD))
        self._deliver()

    def legalize(self, register: Register, value: int) -> int:
        """The fields of the protocol that is selected; another one can be selected while the encoder is not enabled."""
        protocol = self._protocol
        if register is te.CONTROL:
            if not self.enabled:
                protocol = self._protocols.get(register.get(value, "trTeFormat"), protocol)
            value = register.put(value, "trTeFormat", protocol.format)
        elif register is te.INST_FEATURES:
            value = register.put(value, "trTeSrcBits", min(register.get(value, "trTeSrcBits"), _MAX_SRC_BITS))
        elif register is not te.DATA_CONTROL:
            return value
        return protocol.legalize(register, value)

    def load(self, register: Register) -> int:
        if register is timestamp.CONTROL:
            return register.put(self.timestamps.control, "trTsWidth", self.timestamps.bits)
        if register is timestamp.COUNTER_LOW:
            return self.timestamps.counter & 0xFFFF_FFFF
        if register is timestamp.COUNTER_HIGH:
            return self.timestamps.counter >> 32
        if register is te.DATA_CONTROL:
            return register.put(super().load(register), "trTeDataImplemented", int(self._protocol.has_data_trace))
        return super().load(register)

    def store(self, register: Register, value: int) -> None:
        if register is timestamp.CONTROL:
            self.timestamps.write(value, self.legal(register), UNDEFINED)
            return
        super().store(register, value)
        if register is te.DATA_CONTROL and self.enabled:
            self._protocol.trace_data(bool(self.field("trTeDataTracing")))
