"""A hart's software encoder: it is built for what `trace start` requests, and continues from read-out to read-out.

A capture describes the encoder and its sink like those of an imported trace: bases are 0. There are no registers to
read back; their values in the capture are those with which the encoder was built. At the end of a read-out the
encoder's pending data are output, and the encoder continues as if they had not been.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from rvtrace_gdb.controlregs.encoder_features import ETRACE, NTRACE, NTRACE_SWITCHES, EncoderFeature
from rvtrace_gdb.controlregs.trace_control import encoder_registers as registers
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ImplicitReturnMode, InstMode, SyncMode, TeFormat
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings, TraceRequest
from rvtrace_gdb.decode.etrace.encoder import encoder as etrace
from rvtrace_gdb.decode.etrace.encoder import options as etrace_options
from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.ntrace import options
from rvtrace_gdb.decode.ntrace.encoder import encoder as ntrace
from rvtrace_gdb.decode.ntrace.encoder.state import NO_BLOCK
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions, SettingValue, etrace_of
from rvtrace_gdb.session.capture.model import CapturedEncoder, CapturedSink
from rvtrace_gdb.session.formats.imports.imported_encoders import full_sink
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of, etrace_encoder
from rvtrace_gdb.session.sources.qemu.records import Jumped, QemuIngressItem, RecordedItems

_SYNC_MAX = 10  # a period of 16384 halfwords: little is lost at the beginning of a ring that has wrapped
_STACK = 5  # the implicit return stack has 32 entries
_ASID_BITS = 16  # of satp: privileged architecture, 12.1.11
_TABLE = 6  # branch predictor and jump target cache have 64
_RETURNS = "trTeInstEnImplicitReturn"


@dataclass(frozen=True)
class NTraceOptions:
    """The options of an N-Trace encoder, and of the decoder of its messages."""

    options: options.EncoderOptions

    @property
    def trace_options(self) -> Options:
        return self.options.of_decoder

    @property
    def has_privilege(self) -> bool:
        """Whether the trace says which privilege mode the hart is in."""
        return self.options.context

    @property
    def has_spaces(self) -> bool:
        """Whether the trace says in which address space user mode runs."""
        return self.options.context


@dataclass(frozen=True)
class ETraceOptions:
    """The options of an E-Trace encoder, and of the decoder of its packets."""

    options: etrace_options.EncoderOptions
    trace_options: EtraceTraceOptions

    @property
    def has_privilege(self) -> bool:
        """Whether the trace says which privilege mode the hart is in."""
        return True

    @property
    def has_spaces(self) -> bool:
        """Whether the trace says in which address space user mode runs."""
        return self.options.parameters.context_width > 0


QemuEncoderOptions = NTraceOptions | ETraceOptions


def encoder_options(
    request: TraceRequest, xlen: int, options: Mapping[str, Any]
) -> tuple[QemuEncoderOptions, list[str]]:
    """Return the encoder for a hart of *xlen* bits, and notes about what it does not support of the request.

    *options*: the user's options, for the notes.
    """
    notes = [f"QEMU does not support {text}" for text in _left_out(request, options)]
    if request.format == TeFormat.E_TRACE:
        return _efficient(request, xlen, notes), notes
    return _ntrace(request, xlen, notes), notes


def _left_out(request: TraceRequest, options: Mapping[str, Any]) -> Iterator[str]:
    if request.filter is not None:
        yield "filters; everything is traced"
    if request.triggers is not None:
        yield "triggers; tracing is on from the start until it is stopped"
    if request.data:
        yield "data trace"
    if request.stop_on_wrap:
        yield "stopping when the ring is full; the newest is kept (rvtrace qemu --ring makes it larger)"
    if request.stall:
        yield "stalling (rvtrace qemu -o keeps all)"
    if options.get("to"):
        yield "choosing a sink; there is one for each hart"


def _ntrace(request: TraceRequest, xlen: int, notes: list[str]) -> NTraceOptions:
    on: dict[str, Any] = {it.ntrace: True for it in NTRACE_SWITCHES if it.field in request.features}
    notes += _unknown_features(request, NTRACE, "N-Trace")
    returns = request.implicit_return or (ImplicitReturnMode.FULL_ADDRESS_STACK if _RETURNS in request.features else 0)
    htm = request.inst_mode != InstMode.BTM
    if on.get("repeated_history") and not htm:
        notes.append("repeated history needs HTM: it is off")
        del on["repeated_history"]
    mode, period = _sync(request)
    built = options.EncoderOptions(
        xlen=xlen, btm=not htm, sync_mode=options.InstSyncMode(mode), sync_max=period,
        implicit_return=ImplicitReturn(returns), context=request.context, timestamps=request.timestamps,
        timestamp_bits=0, **on,
    )  # fmt: skip
    return NTraceOptions(built)


def _efficient(request: TraceRequest, xlen: int, notes: list[str]) -> ETraceOptions:
    on = {feature.etrace for feature in ETRACE if feature.field in request.features}
    if request.implicit_return:
        on.add("implicit_return")
    if "implicit_exception" in on:
        notes.append("addresses of traps are not left out: they could not be recovered afterwards")
        on.discard("implicit_exception")
    notes += _unknown_features(request, ETRACE, "E-Trace")
    values: dict[str, SettingValue] = {"iaddress_width": xlen, **dict.fromkeys(on, True)}
    values |= {"return_stack_size": _STACK} if "implicit_return" in on else {}
    values |= {"bpred_size": _TABLE} if "branch_prediction" in on else {}
    values |= {"cache_size": _TABLE} if "jump_target_cache" in on else {}
    values |= {"timestamp_bytes": 8} if request.timestamps else {}
    values |= {"context_width": _ASID_BITS} if request.context else {}
    trace_options = etrace_of(values)
    mode, period = _sync(request)
    of_decoder = trace_options.options
    options = etrace_options.EncoderOptions(
        of_decoder.parameters, of_decoder.modes, of_decoder.dialect, of_decoder.support,
        sync_mode=etrace_options.ResyncMode(mode), sync_max=period,
    )  # fmt: skip
    return ETraceOptions(options, trace_options)


def _unknown_features(request: TraceRequest, features: Sequence[EncoderFeature], format: str) -> list[str]:
    there = {feature.field for feature in features}
    return [f"{format} has no {field}" for field in request.features if field not in there]


def _sync(request: TraceRequest) -> tuple[int, int]:
    if request.sync_mode is None:
        return SyncMode.HALFWORDS, _SYNC_MAX
    return request.sync_mode, 0 if request.sync_max is None else request.sync_max


def encoder(hart: int, wanted: QemuEncoderOptions, image: Image) -> CapturedEncoder:
    """Return the capture's description of a hart's encoder."""
    name = f"encoder{hart}"
    if not isinstance(wanted, NTraceOptions):
        return etrace_encoder(name, hart, wanted.trace_options)
    (made,) = capture_of(RawImport(name, b"", wanted.trace_options, image)).encoders
    in_force, options = made.in_force, wanted.options
    assert isinstance(in_force, EncoderSettings)
    beside = registers.ENCODER_CONTROL.pack(
        trTeContext=options.context, trTeInstSyncMode=options.sync_mode, trTeInstSyncMax=options.sync_max
    )
    features = registers.INST_FEATURES.pack(**{it.field: getattr(options, it.ntrace) for it in NTRACE_SWITCHES})
    in_force = replace(in_force, name=name, control=in_force.control | beside, features=in_force.features | features)
    return replace(made, hart=hart, in_force=in_force)


def sink(hart: int, data: bytes, *, wrapped: bool) -> CapturedSink:
    """Return the capture's sink with the bytes of a hart's encoder."""
    return full_sink(f"hart{hart}", data, wrapped, (f"encoder{hart}",))


class HartEncoder(ABC):
    """An encoder: `feed` encodes what ran; `end` returns what would follow if tracing ended now,
    and changes nothing.
    """

    def __init__(self) -> None:
        self.instructions = 0
        """The number of retired instructions that were fed; timestamps count these."""
        self._sent: list[bytes] = []
        self._shared: list[Any] = [NO_BLOCK]  # not copied with the encoder

    def feed(self, items: RecordedItems) -> bytes:
        """Return the bytes for these items."""
        begin = 0
        if items.jumps:
            for at, item in enumerate(items):
                if isinstance(item, Jumped):
                    self._retire(items[begin:at])
                    self._jump()
                    begin = at + 1
        self._retire(items[begin:] if begin else items)
        self.instructions += items.instructions
        return self._taken_bytes()

    def end(self, items: RecordedItems, *, halted: bool = False) -> bytes:
        """Return the bytes for these items and the end of tracing after them. *halted*: a debugger halted the hart."""
        kept, instructions = self._copy(), self.instructions
        data = self.feed(items)
        self._stop_encoder(halted=halted)
        data += self._taken_bytes()
        self._restore(kept)
        self.instructions = instructions
        return data

    def _taken_bytes(self) -> bytes:
        data = b"".join(self._sent)
        self._sent.clear()
        return data

    def _duplicate(self, encoder: Any) -> Any:
        """Copy an encoder, sharing what never changes. The copy's output goes where the original's goes."""
        return deepcopy(encoder, {id(it): it for it in self._shared})

    @abstractmethod
    def lose(self) -> None:
        """Note that what comes next does not follow what was fed last."""

    @abstractmethod
    def _retire(self, items: Sequence[QemuIngressItem]) -> None: ...
    @abstractmethod
    def _jump(self) -> None: ...
    @abstractmethod
    def _stop_encoder(self, *, halted: bool) -> None: ...
    @abstractmethod
    def _copy(self) -> Any: ...
    @abstractmethod
    def _restore(self, kept: Any) -> None: ...


class _NtraceHartEncoder(HartEncoder):
    def __init__(self, options: NTraceOptions) -> None:
        super().__init__()
        self._shared += [options.options]
        self._encoder = ntrace.Encoder(options.options, self._sent.append)
        self._encoder.start(Sync.TRACE_ENABLE)

    def lose(self) -> None:
        self._encoder.start(Sync.RESTART_FROM_FIFO_OVERRUN)

    def _retire(self, items: Sequence[QemuIngressItem]) -> None:
        self._encoder.retire(cast(Sequence[Block], items))

    def _jump(self) -> None:
        self._encoder.stop(Evcode.DEBUG_MODE)
        self._encoder.start(Sync.EXIT_FROM_DEBUG)

    def _stop_encoder(self, *, halted: bool) -> None:
        self._encoder.stop(Evcode.DEBUG_MODE if halted else Evcode.TRACE_DISABLED)

    def _copy(self) -> ntrace.Encoder:
        return cast(ntrace.Encoder, self._duplicate(self._encoder))

    def _restore(self, kept: ntrace.Encoder) -> None:
        self._encoder = kept


class _Efficient(HartEncoder):
    def __init__(self, options: ETraceOptions) -> None:
        super().__init__()
        self._shared += [options.options]
        self._clock = [0]
        self._timed = options.trace_options.encapsulation.timestamp_bytes > 0
        self._encoder = etrace.Encoder(
            options.options, self._emitter(options), None if self._timed else self._emitter_of_all(options)
        )
        self._encoder.start()

    def _emitter(self, options: ETraceOptions) -> Callable[[bytes], None]:
        framer, sent, clock, timed = options.trace_options.encapsulation.framer(), self._sent, self._clock, self._timed

        def emit(payload: bytes) -> None:
            sent.append(framer.packet(payload, source=0, time=clock[0] if timed else None))

        return emit

    def _emitter_of_all(self, options: ETraceOptions) -> Callable[[list[bytes]], None]:
        frame, sent = options.trace_options.encapsulation.framer().packet, self._sent

        @lru_cache(maxsize=1 << 14)
        def framed(payload: bytes) -> bytes:
            return frame(payload, source=0, time=None)

        return lambda payloads: sent.extend(map(framed, payloads))

    def lose(self) -> None:
        self._encoder.lost()

    def _retire(self, items: Sequence[QemuIngressItem]) -> None:
        if not self._timed:
            self._encoder.retire(cast(Sequence[Block], items))
            return
        for item in items:
            self._encoder.retire([cast(Block, item)])
            self._clock[0] += item.instructions if isinstance(item, Block) else 0

    def _jump(self) -> None:
        self._encoder.stop(disable=False)
        self._encoder.start()

    def _stop_encoder(self, *, halted: bool) -> None:
        self._encoder.stop(disable=not halted)

    def _copy(self) -> tuple[etrace.Encoder, int]:
        return self._duplicate(self._encoder), self._clock[0]

    def _restore(self, kept: tuple[etrace.Encoder, int]) -> None:
        self._encoder, self._clock[0] = kept


def encoder_for(options: QemuEncoderOptions) -> HartEncoder:
    """Return an encoder that has started to trace."""
    return _NtraceHartEncoder(options) if isinstance(options, NTraceOptions) else _Efficient(options)
