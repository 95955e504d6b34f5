"""What is imported, raw trace bytes of encoders, and the encoders that sent them: a capture has registers for these.

The given options are stored in the registers that the encoder would have had and, if no register contains them, beside
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING

from rvtrace_gdb.controlregs.encoder_features import ETRACE, RAW_NTRACE
from rvtrace_gdb.controlregs.trace_control import component_registers, encoder_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import CompType, RamMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    SYNC_MAX_LOWEST_UNIT,
    InstMode,
    SyncMode,
    TeFormat,
)
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings, SinkSettings
from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, SourcePackets
from rvtrace_gdb.decode.ntrace.decoder import source_of
from rvtrace_gdb.decode.ntrace.framing import FrameBatch, MessageFramer
from rvtrace_gdb.decode.ntrace.messages import MAX_REPEAT_BITS, MDO_BITS
from rvtrace_gdb.decode.ntrace.options import RATIFIED, ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions, SettingValue, values_of
from rvtrace_gdb.session.capture.model import CapturedEncoder, CapturedImage, CapturedSink, Unregistered
from rvtrace_gdb.session.formats.etrace import etrace_of_registers

if TYPE_CHECKING:
    from rvtrace_gdb.decode.coresight.frames import FrameForm

EncoderTraceOptions = Options | EtraceTraceOptions
"""How to read a trace that encoders sent."""

_MAX_SRC_BITS, _MAX_SRC = 12, (1 << 12) - 1  # of trTeSrcBits and trTeSrcID
_MAX_WIDTH = (1 << component_registers.TS_CONTROL.by_name["trTsWidth"].width) - 1
_SYNC, _WITH_ADDRESS = 0b11, (0, 1)  # format 3, subformats 0 and 1 (2.0, "Format 3 packets")


@dataclass(frozen=True)
class ImportedFrames:
    """How imported bytes are in CoreSight frames. *harts*: by ATB ID, None: as the trace says; no other ID is decoded
    then.
    """

    form: "FrameForm"
    harts: Mapping[int, int | None] = field(default_factory=dict)

    def is_chosen(self, atb_id: int) -> bool:
        """Return whether the bytes of an ATB ID are decoded."""
        return not self.harts or atb_id in self.harts


@dataclass(frozen=True)
class RawImport:
    """Raw trace bytes, and what the user knows about them.

    *name*: the file's. *trace_options*: those of the encoder. *image*: the program. *images*: see `captured_image`.
    *wrapped*: they may start inside a message. *source*: they all come from the hart with this source; for N-Trace see
    also `src_id`. *sources*: the sources in them, if these are known already.
    *frames*: they are in CoreSight frames.
    """

    name: str
    data: bytes
    trace_options: EncoderTraceOptions
    image: Image
    images: tuple[CapturedImage, ...] = field(default=())
    wrapped: bool = False
    source: int | None = None
    sources: tuple[int, ...] | None = None
    frames: ImportedFrames | None = None


def sources_of(raw: RawImport) -> list[int]:
    """Return the sources in the bytes: the one that is known, else those with which decoding can start, if any."""
    trace_options = raw.trace_options
    only = raw.source if isinstance(trace_options, EtraceTraceOptions) else trace_options.src_id
    return [only] if only is not None else synchronizing_sources(raw.data, trace_options, wrapped=raw.wrapped)


def synchronizing_sources(data: bytes, trace_options: EncoderTraceOptions, *, wrapped: bool) -> list[int]:
    """Return the sources in a trace with which decoding can start; [0] if messages do not name any."""
    if isinstance(trace_options, EtraceTraceOptions):
        return _synchronizing_packets(data, trace_options, wrapped=wrapped)
    return _synchronizing_messages(data, trace_options, wrapped=wrapped)


def encoder_of_source(source: int, trace_options: EncoderTraceOptions) -> CapturedEncoder:
    """Return an encoder with these options, of the hart whose number is its source."""
    if isinstance(trace_options, EtraceTraceOptions):
        return etrace_encoder(f"encoder{source}", source, trace_options, source)
    return _captured_encoder(source, trace_options)


def encoder_of_hart(name: str, hart: int, trace_options: EncoderTraceOptions, data: bytes) -> CapturedEncoder:
    """Return the encoder of a hart, whose trace alone is in *data*: its source is the first that is found there."""
    found = synchronizing_sources(data, trace_options, wrapped=False) or [0]
    only = None if isinstance(trace_options, EtraceTraceOptions) else trace_options.src_id
    made = encoder_of_source(found[0] if only is None else only, trace_options)
    return replace(made, hart=hart, in_force=replace(made.in_force, name=name))


def etrace_encoder(name: str, hart: int, trace_options: EtraceTraceOptions, source: int = 0) -> CapturedEncoder:
    """Return an encoder with these settings: in its registers if they can hold them, else beside them."""
    in_force = EncoderSettings(
        name=name,
        base=0,
        control=encoder_registers.ENCODER_CONTROL.pack(
            trTeActive=1,
            trTeEnable=1,
            trTeInstTracing=1,
            trTeInstMode=InstMode.VENDOR,
            trTeFormat=TeFormat.E_TRACE,
        ),
        impl=encoder_registers.ENCODER_IMPL.pack(trTeVerMajor=1, trTeCompType=CompType.ENCODER),
        features=_features(trace_options, source),
        ts_control=component_registers.TS_CONTROL.pack(
            trTsActive=trace_options.encapsulation.timestamp_bytes > 0,
            trTsEnable=trace_options.encapsulation.timestamp_bytes > 0,
            trTsWidth=min(8 * trace_options.encapsulation.timestamp_bytes, _MAX_WIDTH),
        ),
    )
    told = etrace_of_registers(in_force, {})
    beside: dict[str, SettingValue] = {
        "iaddress_width": trace_options.options.parameters.iaddress_width,
        **values_of(trace_options, told),
    }
    if source != in_force.src_id & (1 << in_force.src_bits) - 1:
        beside["src_id"] = source
    return CapturedEncoder(hart, in_force, Unregistered(etrace=beside))


def etrace_sources(data: bytes, trace_options: EtraceTraceOptions, *, wrapped: bool = False) -> list[int]:
    """Return the sources that have a synchronizing packet, so that decoding can start; [0] if there are none."""
    return _synchronizing_packets(data, trace_options, wrapped=wrapped) or [0]


def _synchronizing_packets(data: bytes, trace_options: EtraceTraceOptions, *, wrapped: bool) -> list[int]:
    found: set[int] = set()
    deframer = trace_options.encapsulation.deframer(wrapped=wrapped)
    for item in chain(deframer.feed(data), deframer.finish()):
        if not isinstance(item, SourcePackets) or item.kind is not ContentKind.INSTRUCTION or item.source in found:
            continue
        if any(map(_starts, item.payloads)):
            found.add(item.source)
    return sorted(found)


def _starts(payload: bytes) -> bool:
    return bool(payload) and payload[0] & 3 == _SYNC and payload[0] >> 2 & 3 in _WITH_ADDRESS


def _features(trace_options: EtraceTraceOptions, source: int) -> int:
    modes = {feature.field: getattr(trace_options.options.modes, feature.etrace) for feature in ETRACE}
    bits = trace_options.encapsulation.src_bits
    fits = bits <= _MAX_SRC_BITS and source <= _MAX_SRC
    return encoder_registers.INST_FEATURES.pack(
        **modes, trTeSrcID=source if fits else 0, trTeSrcBits=bits if bits <= _MAX_SRC_BITS else 0
    )


def sources_in(data: bytes, options: Options, wrapped: bool = False) -> list[int]:
    """Return the SRC values of the synchronizing messages in a trace, where decoding can start; [0]
    if there are none.
    """
    return _synchronizing_messages(data, options, wrapped=wrapped) or [0]


def _synchronizing_messages(data: bytes, options: Options, *, wrapped: bool) -> list[int]:
    if not options.src_bits:
        return [0]
    found = set()
    first_bytes = {tcode << 8 - MDO_BITS for tcode, layout in options.dialect.layouts.items() if layout.synchronizes}
    for batch in MessageFramer(wrapped=wrapped).feed(data):
        for frame in batch.frames() if isinstance(batch, FrameBatch) else ():
            if frame[0] in first_bytes:
                found.add(source_of(frame, options.src_bits))
    return sorted(found)


def _captured_encoder(source: int, options: Options) -> CapturedEncoder:
    """Return an encoder with these *options*."""
    wraps_late = options.timestamp_bits > _MAX_WIDTH  # later specified than its register can hold
    in_force = EncoderSettings(
        name=f"encoder{source}",
        base=0,
        control=encoder_registers.ENCODER_CONTROL.pack(
            trTeActive=1,
            trTeEnable=1,
            trTeInstTracing=1,
            trTeInstMode=InstMode.BTM if options.btm else InstMode.HTM,
            trTeInstSyncMode=SyncMode.MESSAGES if options.sync_period else SyncMode.OFF,
            trTeInstSyncMax=options.sync_period.bit_length() - 1 - SYNC_MAX_LOWEST_UNIT if options.sync_period else 0,
            trTeFormat=TeFormat.N_TRACE,
        ),
        impl=encoder_registers.ENCODER_IMPL.pack(trTeVerMajor=1, trTeCompType=CompType.ENCODER, trTeProtocolMajor=1),
        features=encoder_registers.INST_FEATURES.pack(
            **{feature.field: getattr(options, feature.ntrace) for feature in RAW_NTRACE},
            trTeInstEnImplicitReturn=options.implicit_return != ImplicitReturn.OFF,
            trTeInstImplicitReturnMode=options.implicit_return,
            trTeSrcID=source,
            trTeSrcBits=options.src_bits,
        ),
        ts_control=component_registers.TS_CONTROL.pack(
            trTsActive=options.timestamps,
            trTsEnable=options.timestamps,
            trTsWidth=0 if wraps_late else options.timestamp_bits,
        ),
    )
    unregistered = Unregistered(
        None if options.dialect is RATIFIED else options.dialect.name,
        options.address_bits,
        options.timestamp_bits if wraps_late else None,
        None if options.repeat_bits == MAX_REPEAT_BITS else options.repeat_bits,
    )
    return CapturedEncoder(source, in_force, unregistered)


def full_sink(name: str, data: bytes, wrapped: bool, encoders: tuple[str, ...]) -> CapturedSink:
    """Return a buffer that is full to the last byte."""
    control = component_registers.RAM_CONTROL.pack(trRamActive=1, trRamEnable=1, trRamMode=RamMode.SMEM)
    impl = component_registers.RAM_IMPL.pack(trRamVerMajor=1, trRamCompType=CompType.RAM_SINK, trRamHasSMEM=1)
    in_force = SinkSettings(PurePath(name).name, 0, control, impl, 0, max(len(data) - 1, 0), 1)
    return CapturedSink(in_force, data, wrapped, 0, encoders, ())
