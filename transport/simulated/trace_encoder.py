"""The trace encoder of the simulated target: an N-Trace encoder behind the registers of the Trace Control Interface.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace Encoder Control Interface" and "Debug Trigger
Module"; N-Trace 1.0, "N-Trace Specific Trace Controls" (which fields exist), and its EVCODE and SYNC codes. The
messages come from `decode.ntrace.encoder`.
"""

import dataclasses
from collections.abc import Callable, Collection, Sequence

from controlregs import encoder as te
from controlregs import timestamp
from controlregs.fields import Register
from controlregs.timestamp import TsMode
from decode.ntrace.encoder import Encoder, EncoderOptions, SyncMode
from decode.ntrace.layout import Evcode, Sync
from decode.ntrace.options import ImplicitReturn
from transport.simulated import timestamp_unit
from transport.simulated.block import HartBlock
from transport.simulated.hart import Retired
from transport.simulated.timestamp_unit import TimestampUnit
from transport.simulated.trace_devices import UNDEFINED, RamSink, TraceComponent
from transport.simulated.trace_ingress import Ingress, TracedHart
from transport.simulated.triggers import Action

_WORD = 4  # the encoder hands bytes on in words of this size; a flush fills the last one up with idle bytes
_IDLE = b"\xff"  # N-Trace: MSEO 11 and no data
_MAX_SRC_BITS = 12

OPTIONAL = {
    "trTeContext": 1,
    "trTeInstTrigEnable": 1,
    "trTeInstEnSequentialJump": 1,
    "trTeInstEnImplicitReturn": 1,
    "trTeInstImplicitReturnMode": 3,
    "trTeInstEnRepeatedHistory": 1,
    "trTeInstEnAllJumps": 1,
    "trTeInstExtendAddrMSB": 1,
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
SET_BY_REGISTERS = frozenset((
    "src_bits", "src_id", "sync_mode", "sync_max", "implicit_return", "sequential_jump", "repeated_history",
    "all_jumps", "extend_addr_msb", "context", "timestamps", "xlen",
))  # fmt: skip
"""The encoder options that are not a matter of how the encoder is built."""



class TraceEncoder(TraceComponent):
    """Follows one hart and feeds one RAM sink. `halted` and `resumed` tell it of Debug Mode, in which it is silent.

    What the sink does not take (it is off, or stopped when full) is lost: trTeInstStallOrOverflow is set, and when the
    sink takes data again an Error message and a synchronization follow. The hart is never stalled.

    *built_with*: the properties no register sets; what does not go together with them cannot be set. *absent*: fields
    of OPTIONAL that read 0.
    """

    def __init__(
        self,
        hart: TracedHart,
        sink: RamSink,
        in_progress: Callable[[], tuple[HartBlock, int] | None] = lambda: None,
        *,
        built_with: EncoderOptions | None = None,
        absent: Collection[str] = (),
        polls: int = 1,
    ) -> None:
        self._built_with = built_with or EncoderOptions()
        self._modes = [mode for mode in (te.InstMode.HTM, te.InstMode.BTM) if self._can(btm=mode is te.InstMode.BTM)]
        if not self._can(repeated_history=True):
            absent = {*absent, "trTeInstEnRepeatedHistory"}
        self.timestamps = TimestampUnit(
            {TsMode.INTERNAL_SYSTEM: lambda: hart.elapsed, TsMode.INTERNAL_CORE: lambda: hart.now},
            0 if "trTsActive" in absent else self._built_with.timestamp_bits or timestamp_unit.BITS,
        )
        super().__init__(
            te.ENCODER,
            implemented=_REQUIRED | {name: bits for name, bits in OPTIONAL.items() if name not in absent},
            constant={"trTeProtocolMajor": 1, "trTeProtocolMinor": 0},
            control_default={"trTeInstMode": self._modes[0], "trTeFormat": te.Format.N_TRACE},
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
        self._fifo = bytearray()
        self._set_up(self._built_with)

    def _can(self, **fields: bool) -> bool:
        """Whether these settings go together with how it is built."""
        try:
            dataclasses.replace(self._built_with, **fields)  # type: ignore[arg-type]
        except ValueError:
            return False
        return True

    def _set_up(self, options: EncoderOptions) -> None:
        self._encoder = Encoder(options, self._fifo.extend)
        clock = self.timestamps if options.timestamps else None
        self._ingress = Ingress(self._hart, self._encoder, context=options.context, clock=clock)

    # -- the hart's side

    def drain(self) -> None:
        """Encode what the hart has retired since the last time, and pass it on to the sink."""
        retired = self._hart.retired if self._tracing else None
        if retired:
            self.watch(retired)
            if self._overrun and self._sink.enabled:
                self._overrun = False
                self._encoder.error()
                self._ingress.resume()
            if not self._overrun:
                self._ingress.tell(retired)
            else:
                self._ingress.skip(retired)
            retired.clear()
        self._deliver()

    def halted(self) -> None:
        """The hart entered Debug Mode. This does not flush."""
        self._stop(Evcode.DEBUG_MODE)
        self._in_debug = True

    def resumed(self) -> None:
        """The hart leaves Debug Mode."""
        self._in_debug = False
        self._follow(Sync.EXIT_FROM_DEBUG)

    def hart_reset(self) -> None:
        """The hart is about to be reset while running. The encoder is not."""
        self._stop(Evcode.TRACE_DISABLED)

    def hart_started(self) -> None:
        """The hart starts at its reset vector."""
        self._in_debug = False
        self._follow(Sync.EXIT_FROM_RESET)

    def triggered(self, action: int) -> None:
        """A trigger with one of the trace actions has fired at the hart's pc, between two blocks."""
        if action == Action.TRACE_NOTIFY:
            self.drain()
            if self._tracing and not self._overrun:
                self._encoder.mark(Sync.TRACE_EVENT)
        elif self.enabled and self.field("trTeInstTrigEnable"):
            self._control = te.CONTROL.put(self._control, "trTeInstTracing", int(action == Action.TRACE_ON))
            self._follow(Sync.TRACE_ENABLE)

    # -- the encoder itself

    def _follow(self, reason: Sync, underway: tuple[HartBlock, int] | None = None) -> None:
        """Start or stop as the registers and the hart's state demand. *underway*: see `_stop`."""
        wanted = self.enabled and bool(self.field("trTeInstTracing")) and self.field("trTeInstMode") != te.InstMode.OFF
        if not wanted:
            self._stop(Evcode.TRACE_DISABLED, underway)
        elif not self._tracing and not self._in_debug:
            self._tracing = True
            self._ingress.begin()
            self._encoder.start(reason)
            self._hart.retired = []

    def _stop(self, evcode: Evcode, underway: tuple[HartBlock, int] | None = None) -> None:
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
            self._encoder.stop(evcode, pc)
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

    def _options(self) -> EncoderOptions:
        """What the registers say now, and what it is built with."""
        bits = 0 if self.field("trTeInhibitSrc") else self.field("trTeSrcBits")
        btm = self.field("trTeInstMode") == te.InstMode.BTM
        repeated = bool(self.field("trTeInstEnRepeatedHistory"))
        return dataclasses.replace(
            self._built_with,
            src_bits=bits,
            src_id=self.field("trTeSrcID") & (1 << bits) - 1,
            sync_mode=SyncMode(self.field("trTeInstSyncMode")),
            sync_max=self.field("trTeInstSyncMax"),
            btm=btm,
            implicit_return=self._implicit_return(),
            sequential_jump=bool(self.field("trTeInstEnSequentialJump")),
            repeated_history=repeated and not btm,
            repeat_branch=(repeated and btm) or self._built_with.repeat_branch,
            all_jumps=bool(self.field("trTeInstEnAllJumps")),
            extend_addr_msb=bool(self.field("trTeInstExtendAddrMSB")),
            context=bool(self.field("trTeContext")),
            timestamps=self.timestamps.enabled,
            timestamp_bits=self.timestamps.bits,
            xlen=self._hart.xlen,
        )

    def _implicit_return(self) -> ImplicitReturn:
        """Mode 0 is what an encoder says that does not tell how it follows calls; this one does it in the best way."""
        if not self.field("trTeInstEnImplicitReturn"):
            return ImplicitReturn.OFF
        return ImplicitReturn(self.field("trTeInstImplicitReturnMode") or ImplicitReturn.FULL_STACK)

    # -- the register side

    @property
    def empty(self) -> bool:
        return super().empty and not self._fifo

    def before_access(self) -> None:
        self.drain()

    def activated(self) -> None:
        self._fifo.clear()
        self.timestamps.reset()

    def deactivated(self) -> None:
        self._stop(Evcode.TRACE_DISABLED, self._in_progress())
        self._fifo.clear()
        self.timestamps.reset()

    def control_changed(self, before: int) -> None:
        if self.enabled and not before & te.CONTROL.mask("trTeEnable"):
            self._control &= ~te.CONTROL.mask("trTeInstStallOrOverflow")
            self._set_up(self._options())
        self._follow(Sync.TRACE_ENABLE, self._in_progress())

    def flushed(self) -> None:
        self._fifo.extend(_IDLE * (-len(self._fifo) % _WORD))
        self._deliver()

    def legalize(self, register: Register, value: int) -> int:
        if register is te.CONTROL:
            if register.get(value, "trTeInstMode") not in (te.InstMode.OFF, *self._modes):
                return register.put(value, "trTeInstMode", self._modes[0])
        elif register is te.INST_FEATURES:
            return register.put(value, "trTeSrcBits", min(register.get(value, "trTeSrcBits"), _MAX_SRC_BITS))
        return value

    def load(self, register: Register) -> int:
        if register is timestamp.CONTROL:
            return register.put(self.timestamps.control, "trTsWidth", self.timestamps.bits)
        if register is timestamp.COUNTER_LOW:
            return self.timestamps.counter & 0xFFFF_FFFF
        if register is timestamp.COUNTER_HIGH:
            return self.timestamps.counter >> 32
        return super().load(register)

    def store(self, register: Register, value: int) -> None:
        if register is timestamp.CONTROL:
            self.timestamps.write(value, self.legal(register), UNDEFINED)
        else:
            super().store(register, value)
