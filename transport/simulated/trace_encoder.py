"""The trace encoder of the simulated target: an N-Trace encoder behind the registers of the Trace Control Interface.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace encoder"; N-Trace 1.0, "Trace Control" (which fields
exist, and trTeInstMode 6 for HTM) and chapter 8 (EVCODE, SYNC). The messages come from `decode.ntrace.encoder`.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

from controlregs import encoder as te
from controlregs.fields import Register
from decode.ingress import Block, Trap
from decode.instructions import classify
from decode.ntrace.encoder import Encoder, EncoderOptions, SyncMode
from decode.ntrace.layout import Evcode, Sync
from transport.simulated.block import HartBlock, TrapEntry
from transport.simulated.hart import Retired
from transport.simulated.trace_devices import RamSink, TraceComponent

_WORD = 4  # the encoder hands bytes on in words of this size; a flush fills the last one up with idle bytes
_IDLE = b"\xff"  # N-Trace: MSEO 11 and no data
_MAX_SRC_BITS = 12


class TracedHart(Protocol):
    """What the encoder sees of its hart."""

    retired: list[Retired] | None

    @property
    def xlen(self) -> int: ...

    @property
    def pc(self) -> int: ...


class TraceEncoder(TraceComponent):
    """Follows one hart and feeds one RAM sink. `halted` and `resumed` tell it of Debug Mode, in which it is silent.

    What the sink does not take (it is off, or stopped when full) is lost: trTeInstStallOrOverflow is set, and when the
    sink takes data again an Error message and a synchronization follow. The hart is never stalled.
    """

    def __init__(
        self,
        hart: TracedHart,
        sink: RamSink,
        in_progress: Callable[[], tuple[HartBlock, int] | None] = lambda: None,
        *,
        built_with: EncoderOptions | None = None,
        polls: int = 1,
    ) -> None:
        super().__init__(
            te.ENCODER,
            implemented={
                "trTeInstMode": 7,
                "trTeInstStallOrOverflow": 1,
                "trTeInhibitSrc": 1,
                "trTeInstSyncMode": 3,
                "trTeInstSyncMax": 15,
                "trTeSrcID": (1 << _MAX_SRC_BITS) - 1,
                "trTeSrcBits": 15,
            },
            constant={"trTeProtocolMajor": 1, "trTeProtocolMinor": 0},
            control_default={"trTeInstMode": te.InstMode.HTM, "trTeFormat": te.Format.N_TRACE},
            polls=polls,
        )
        self.watch: Callable[[Sequence[Retired]], None] = lambda retired: None
        """Shown everything the hart retires while it is traced, before it is encoded: what the trace must say."""
        self._hart = hart
        self._sink = sink
        self._in_progress = in_progress
        sink.feeder = self.drain
        self._built_with = built_with or EncoderOptions()
        self._in_debug = False
        self._tracing = False
        self._overrun = False
        self._fifo = bytearray()
        self._encoder = Encoder(self._built_with, self._fifo.extend)

    # -- the hart's side

    def drain(self) -> None:
        """Encode what the hart has retired since the last time, and pass it on to the sink."""
        retired = self._hart.retired if self._tracing else None
        if retired:
            self.watch(retired)
            if self._overrun and self._sink.enabled:
                self._overrun = False
                self._encoder.error()
            if not self._overrun:
                self._encoder.retire(self._ingress(retired))
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

    def _ingress(self, retired: Sequence[Retired]) -> list[Block | Trap]:
        convert = self._convert
        return [
            item.ingress if item.__class__ is HartBlock and item.ingress is not None else convert(item)  # type: ignore[misc]
            for item in retired
        ]

    def _convert(self, item: Retired) -> Block | Trap:
        if isinstance(item, TrapEntry):
            return Trap(item.epc, item.interrupt, item.cause, item.tval, item.handler)
        if isinstance(item, HartBlock):
            return self._whole(item)
        block, count = item
        return Block(block.pc, self._whole(block).lengths[:count])

    def _whole(self, block: HartBlock) -> Block:
        if not isinstance(block.ingress, Block):
            xlen = self._hart.xlen
            block.ingress = Block.of(block.pc, [classify(word, xlen) for word in block.words])
        return block.ingress

    # -- the encoder itself

    def _follow(self, reason: Sync) -> None:
        """Start or stop as the registers and the hart's state demand."""
        wanted = self.enabled and bool(self.field("trTeInstTracing")) and self.field("trTeInstMode") != te.InstMode.OFF
        if not wanted:
            self._stop(Evcode.TRACE_DISABLED)
        elif not self._tracing and not self._in_debug:
            self._tracing = True
            self._encoder.start(reason)
            self._hart.retired = []

    def _stop(self, evcode: Evcode) -> None:
        if not self._tracing:
            return
        pc = self._hart.pc
        underway = self._in_progress()
        if underway is not None:  # the program itself writes our registers: its block has retired this far
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
        bits = 0 if self.field("trTeInhibitSrc") else self.field("trTeSrcBits")
        return dataclasses.replace(
            self._built_with,
            src_bits=bits,
            src_id=self.field("trTeSrcID") & (1 << bits) - 1,
            sync_mode=SyncMode(self.field("trTeInstSyncMode")),
            sync_max=self.field("trTeInstSyncMax"),
        )

    # -- the register side

    @property
    def empty(self) -> bool:
        return super().empty and not self._fifo

    def before_access(self) -> None:
        self.drain()

    def activated(self) -> None:
        self._fifo.clear()

    def deactivated(self) -> None:
        self._stop(Evcode.TRACE_DISABLED)
        self._fifo.clear()

    def control_changed(self, before: int) -> None:
        if self.enabled and not before & te.CONTROL.mask("trTeEnable"):
            self._control &= ~te.CONTROL.mask("trTeInstStallOrOverflow")
            self._encoder = Encoder(self._options(), self._fifo.extend)
        self._follow(Sync.TRACE_ENABLE)

    def flushed(self) -> None:
        self._fifo.extend(_IDLE * (-len(self._fifo) % _WORD))
        self._deliver()

    def legalize(self, register: Register, value: int) -> int:
        if register is te.CONTROL:
            if register.get(value, "trTeInstMode") not in (te.InstMode.OFF, te.InstMode.HTM):
                return register.put(value, "trTeInstMode", te.InstMode.HTM)
        elif register is te.INST_FEATURES:
            return register.put(value, "trTeSrcBits", min(register.get(value, "trTeSrcBits"), _MAX_SRC_BITS))
        return value
