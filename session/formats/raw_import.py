"""Converts raw trace bytes of another program (a simulation, another tool's dump) into a capture.

The given options are stored as in any capture: in the registers that the encoder would have had and, if no register
contains them, beside them. So the bytes are decoded as any other capture. An E-Trace gets an encoder for each source in
it; the parameters of a tandem trace are not in registers.

`why_unreadable` detects bytes that are not trace: hardly any of them are messages, and hardly an instruction ran in
them. Noise contains a message here and there, so a certain share of the bytes must be messages; a larger one of few
bytes, and of E-Trace, in which most bytes are some packet. A trace of few messages, without a place where decoding can
start, or of unknown code, is still a trace.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple

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
from rvtrace_gdb.decode.ntrace.options import Options as NTrace
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem import plausibility as tandem_guess
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions, SettingValue, values_of
from rvtrace_gdb.session.capture.model import (
    Capture,
    Captured,
    CapturedEncoder,
    CapturedImage,
    CapturedPort,
    CapturedRecords,
    CapturedSink,
    CapturedTandem,
    ElfIdentity,
    PlacedElf,
    Unregistered,
)
from rvtrace_gdb.session.formats import format, registry, sinks
from rvtrace_gdb.session.formats.etrace import etrace_of_registers
from rvtrace_gdb.session.formats.format import TraceOptions
from rvtrace_gdb.session.formats.sinks import HartHistories
from rvtrace_gdb.session.program import identity_of
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.text import counted

EncoderTraceOptions = NTrace | EtraceTraceOptions
"""How to read a trace that encoders sent."""

_MAX_SRC_BITS, _MAX_SRC = 12, (1 << 12) - 1  # of trTeSrcBits and trTeSrcID
_MAX_WIDTH = (1 << component_registers.TS_CONTROL.by_name["trTsWidth"].width) - 1
_SYNC, _WITH_ADDRESS = 0b11, (0, 1)  # format 3, subformats 0 and 1 (2.0, "Format 3 packets")


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
    found: set[int] = set()
    deframer = trace_options.encapsulation.deframer(wrapped=wrapped)
    for item in chain(deframer.feed(data), deframer.finish()):
        if not isinstance(item, SourcePackets) or item.kind is not ContentKind.INSTRUCTION or item.source in found:
            continue
        if any(map(_starts, item.payloads)):
            found.add(item.source)
    return sorted(found) or [0]


def _starts(payload: bytes) -> bool:
    return bool(payload) and payload[0] & 3 == _SYNC and payload[0] >> 2 & 3 in _WITH_ADDRESS


def _features(trace_options: EtraceTraceOptions, source: int) -> int:
    modes = {feature.field: getattr(trace_options.options.modes, feature.etrace) for feature in ETRACE}
    bits = trace_options.encapsulation.src_bits
    fits = bits <= _MAX_SRC_BITS and source <= _MAX_SRC
    return encoder_registers.INST_FEATURES.pack(
        **modes, trTeSrcID=source if fits else 0, trTeSrcBits=bits if bits <= _MAX_SRC_BITS else 0
    )


def tandem_capture(
    name: str, data: bytes, parameters: TandemParameters, image: Image, *, hart: int = 0, wrapped: bool = False
) -> Capture:
    """Return the bytes as the capture of one hart. *name*: the file's. *image*: the program, empty if unknown."""
    port = CapturedPort(f"tandem{hart}", parameters)
    return Capture(
        created=_now(),
        tool=tool(),
        target=f"an unknown target, imported from {PurePath(name).name}",
        xlen=parameters.xlen,
        elf=identity_of(image) if image.path else None,
        encoders=(),
        sinks=(),
        code=tuple(image.code) if image.path else tuple(image.segments),
        tandem=(CapturedTandem(hart, port, data, wrapped),),
    )


@dataclass(frozen=True)
class RawImport:
    """Raw trace bytes, and what the user knows about them.

    *name*: the file's. *trace_options*: those of the encoder. *image*: the program. *images*: see `captured_image`.
    *wrapped*: they may start inside a message. *source*: they all come from the hart with this source; for N-Trace see
    also `src_id`. *sources*: the sources in them, if these are known already.
    """

    name: str
    data: bytes
    trace_options: EncoderTraceOptions
    image: Image
    images: tuple[CapturedImage, ...] = field(default=())
    wrapped: bool = False
    source: int | None = None
    sources: tuple[int, ...] | None = None


def capture_of(raw: RawImport) -> Capture:
    """Return the bytes as a capture. Harts are numbered by their source."""
    encoders = tuple(_encoders(raw))
    names = tuple(traced.in_force.name for traced in encoders)
    return Capture(
        created=_now(),
        tool=tool(),
        target=f"an unknown target, imported from {PurePath(raw.name).name}",
        xlen=raw.image.xlen,
        elf=identity_of(raw.image) if raw.image.path else None,
        encoders=encoders,
        sinks=(full_sink(raw.name, raw.data, raw.wrapped, names),),
        code=tuple(raw.image.code),
        images=raw.images,
        elfs=tuple(_placed(elf, bias) for elf, bias in raw.image.elves[1:]),
    )


def with_settings(settings: Capture, name: str, data: bytes, *, wrapped: bool = False) -> Capture:
    """Return the bytes as a capture with the registers of *settings*. *name*: the file's.

    The bytes left the chip, so they come from the encoders that feed no buffer, if there are any.
    """
    buffered = {encoder for sink in settings.sinks for encoder in sink.encoders}
    others = tuple(made for made in settings.encoders if made.in_force.name not in buffered)
    encoders = others or settings.encoders
    names = tuple(made.in_force.name for made in encoders)
    return replace(
        settings,
        created=_now(),
        tool=tool(),
        encoders=encoders,
        sinks=(full_sink(name, data, wrapped, names),),
        records=(),
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _encoders(raw: RawImport) -> Iterator[CapturedEncoder]:
    trace_options = raw.trace_options
    if isinstance(trace_options, EtraceTraceOptions):
        only = raw.source
        found = raw.sources or (
            [only] if only is not None else etrace_sources(raw.data, trace_options, wrapped=raw.wrapped)
        )
        yield from (etrace_encoder(f"encoder{source}", source, trace_options, source) for source in found)
        return
    only = trace_options.src_id
    for source in raw.sources or ([only] if only is not None else sources_in(raw.data, trace_options, raw.wrapped)):
        yield _captured_encoder(source, trace_options)


def is_imported(capture: Capture) -> bool:
    """Return whether the encoders' registers were given by a user (docs/capture-format.md: bases of 0)."""
    return bool(capture.encoders) and not any(traced.in_force.base for traced in capture.encoders)


def captured_image(
    image: Image,
    name: str,
    *,
    scontext: int | None = None,
    hcontext: int | None = None,
    virtual: bool | None = None,
) -> CapturedImage:
    """Return a program, with all its code, that is in memory in the contexts with these values."""
    return CapturedImage(
        name,
        scontext,
        hcontext,
        virtual,
        tuple(image.segments),
        tuple(_placed(elf, bias) for elf, bias in image.elves),
        tuple((absent.addresses.start, len(absent.addresses), absent.what) for absent in image.absent),
    )


def _placed(elf: Elf, bias: int) -> PlacedElf:
    return PlacedElf(ElfIdentity(elf.path, elf.build_id, elf.sha256, elf.loaded or None), bias & (1 << 64) - 1)


def sources_in(data: bytes, options: Options, wrapped: bool = False) -> list[int]:
    """Return the SRC values of the synchronizing messages in a trace, where decoding can start; [0]
    if there are none.
    """
    if not options.src_bits:
        return [0]
    found = set()
    first_bytes = {tcode << 8 - MDO_BITS for tcode, layout in options.dialect.layouts.items() if layout.synchronizes}
    for batch in MessageFramer(wrapped=wrapped).feed(data):
        for frame in batch.frames() if isinstance(batch, FrameBatch) else ():
            if frame[0] in first_bytes:
                found.add(source_of(frame, options.src_bits))
    return sorted(found) or [0]


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


_PIECE = 1 << 12  # bytes
_LOOKED_AT = 1 << 16  # bytes that are not idle
_FEW = 1 << 6  # bytes
_OF_FEW = 75  # percent of them are messages
_DENSE = 16  # a program's trace has so many bytes for each instruction, or fewer


class _FormatSigns(NamedTuple):
    """*least*: the share of the bytes that must be messages, in percent."""

    name: str
    least: int


_FORMATS = {NTrace: _FormatSigns("N-Trace", 25), EtraceTraceOptions: _FormatSigns("E-Trace", 75)}
_TANDEM = _FormatSigns("a tandem trace", 25)


class _MessageShare(NamedTuple):
    """The number of bytes in messages, and of others that are not filling."""

    sensible: int
    others: int


def empty_history(histories: HartHistories) -> str | None:
    """Return a text if the trace contains nothing but idle bytes, else None. *histories*: the decoded histories."""
    total, _, idle, _ = histories.accounting
    return f"is empty: {counted(total, 'idle byte')}, no message" if total == idle > 0 else None


def why_unreadable(capture: Capture, histories: HartHistories) -> str | None:
    """Return why imported bytes are not trace; None: they may be one. *histories*: the decoded histories."""
    total, _, idle, _ = histories.accounting
    instructions = sum(history.instructions for history in histories.histories.values())
    if is_dense(instructions, total - idle):
        return None
    problems = [_problem(captured, capture, instructions) for captured in capture.captured]
    return problems[0] if problems and all(problems) else None


def is_dense(instructions: int, size: int) -> bool:
    """Return whether there are enough instructions for so many bytes to be a trace, whatever else is in it."""
    return instructions * _DENSE >= size


def _problem(captured: Captured, capture: Capture, instructions: int) -> str | None:
    """Return the same as `why_unreadable` for one buffer."""
    if isinstance(captured, CapturedRecords) or _is_of_other_parameters(captured):
        return None
    trace_options = sinks.options_of_sink(captured, capture.encoders)
    kind = _FORMATS.get(type(trace_options), _TANDEM)
    sensible, others = _share_of_messages(captured.data, trace_options, capture.xlen, wrapped=captured.wrapped)
    size = sensible + others
    if sensible and sensible * 100 >= size * (_OF_FEW if size < _FEW else kind.least):
        return None
    if isinstance(captured, CapturedTandem):
        advice = tandem_guess.parameter_hint(captured.data, captured.in_force.parameters, wrapped=captured.wrapped)
        if advice:
            return advice
    first = "the first " if size > _LOOKED_AT else ""
    of = f"of {first}{counted(size or len(captured.data), 'byte')} {sensible} are messages"
    ran = counted(instructions, "instruction")
    return f"cannot be read as {kind.name}: {of}, {ran} ran: is it a trace, and was it made with these options?"


def _is_of_other_parameters(captured: Captured) -> bool:
    """Return whether it is a tandem trace with other parameters than given, about which there is a warning."""
    if not isinstance(captured, CapturedTandem):
        return False
    told = captured.in_force.parameters
    return tandem_guess.likelier_parameters(captured.data, told, wrapped=captured.wrapped) is not None


def _share_of_messages(data: bytes, trace_options: TraceOptions, xlen: int, *, wrapped: bool) -> _MessageShare:
    """Count the messages at the beginning of a trace, without one that the trace's end cuts off."""
    itemizer = registry.format_of(trace_options).itemizer(trace_options, xlen, wrapped=wrapped)
    makes_sense = _judge(trace_options)
    sensible = others = 0
    for item in _items(data, itemizer):
        if item.is_idle:
            continue
        if makes_sense(item):
            sensible += item.end - item.offset
        elif item.end < len(data):
            others += item.end - item.offset
        if sensible + others > _LOOKED_AT:
            break
    return _MessageShare(sensible, others)


def _items(data: bytes, itemizer: format.AnyItemizer) -> Iterator[Any]:
    for at in range(0, len(data), _PIECE):
        yield from itemizer.feed(data[at : at + _PIECE])
    yield from itemizer.finish()


def _judge(trace_options: TraceOptions) -> Callable[[Any], bool]:
    """Return a function that returns whether an item is a message that such an encoder sends."""
    wording = registry.format_of(trace_options).wording(trace_options)
    if isinstance(trace_options, EtraceTraceOptions):
        return lambda item: (item.packet or item.data) is not None and not wording.is_odd(item)
    return lambda item: not wording.is_odd(item)
