"""Raw trace bytes that something else made (a simulation, another tool's dump) as a capture.

What their owner says of them goes where a capture has it: into the registers that the encoder would have had and,
what no register tells, beside them. So they are decoded as any other capture is. An E-Trace gets an encoder for
each source in it; nothing of a tandem trace is in registers.

`why_unreadable` notices bytes that are no trace: hardly any of them are messages, and hardly an instruction ran in
them. Noise reads as a message here and there, so a share of the bytes is asked for; a larger one of few bytes, and
of E-Trace, where most bytes are some packet. A trace of few messages, without a place where decoding can start, or
of unknown code, is a trace.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple

from rvtrace_gdb.controlregs.trace_control import component_registers, encoder_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import CompType, RamMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import Format, InstMode
from rvtrace_gdb.controlregs.trace_control.request import EncoderInForce, SinkInForce
from rvtrace_gdb.decode.etrace.encapsulation import Kind, Packets
from rvtrace_gdb.decode.ntrace.decoder import source_of
from rvtrace_gdb.decode.ntrace.framing import Batch, Framer
from rvtrace_gdb.decode.ntrace.messages import MDO_BITS
from rvtrace_gdb.decode.ntrace.options import RATIFIED, ImplicitReturn, Options
from rvtrace_gdb.decode.ntrace.options import Options as NTrace
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem import plausibility as tandem_guess
from rvtrace_gdb.decode.tandem.protocol import Parameters
from rvtrace_gdb.session.capture.etrace_settings import REGISTERED_MODES, SETTINGS, ETrace, Value, values_of
from rvtrace_gdb.session.capture.model import (
    Capture,
    Captured,
    CapturedEncoder,
    CapturedImage,
    CapturedRecords,
    CapturedSink,
    CapturedTandem,
    ElfIdentity,
    PlacedElf,
    TandemPort,
    Unregistered,
)
from rvtrace_gdb.session.formats import format, registry, sinks
from rvtrace_gdb.session.formats.etrace import etrace_of_registers
from rvtrace_gdb.session.formats.format import How
from rvtrace_gdb.session.formats.sinks import Harts
from rvtrace_gdb.session.program import identity_of
from rvtrace_gdb.session.version import tool

EncoderHow = NTrace | ETrace
"""How to read a trace that encoders sent."""

_MAX_SRC_BITS, _MAX_SRC = 12, (1 << 12) - 1  # of trTeSrcBits and trTeSrcID
_SYNC, _WITH_ADDRESS = 0b11, (0, 1)  # format 3, subformats 0 and 1 (2.0, "Format 3 packets")


def etrace_encoder(name: str, hart: int, how: ETrace, source: int = 0) -> CapturedEncoder:
    """An encoder that was set up so: what registers can hold is in them, everything else beside them."""
    in_force = EncoderInForce(
        name=name,
        base=0,
        control=encoder_registers.ENCODER_CONTROL.pack(
            trTeActive=1,
            trTeEnable=1,
            trTeInstTracing=1,
            trTeInstMode=InstMode.VENDOR,
            trTeFormat=Format.E_TRACE,
        ),
        impl=encoder_registers.ENCODER_IMPL.pack(trTeVerMajor=1, trTeCompType=CompType.ENCODER),
        features=_features(how, source),
        ts_control=component_registers.TS_CONTROL.pack(
            trTsActive=how.encapsulation.timestamp_bytes > 0,
            trTsEnable=how.encapsulation.timestamp_bytes > 0,
            trTsWidth=min(8 * how.encapsulation.timestamp_bytes, _max_width()),
        ),
    )
    told = etrace_of_registers(in_force, {})
    beside: dict[str, Value] = {"iaddress_width": how.options.parameters.iaddress_width, **values_of(how, told)}
    if source != in_force.src_id & (1 << in_force.src_bits) - 1:
        beside["src_id"] = source
    return CapturedEncoder(hart, in_force, Unregistered(etrace=beside))


def etrace_sources(data: bytes, how: ETrace, *, wrapped: bool = False) -> list[int]:
    """The sources in a trace that decoding can start for: with a synchronizing packet. [0] without any."""
    found: set[int] = set()
    deframer = how.encapsulation.deframer(wrapped=wrapped)
    for item in chain(deframer.feed(data), deframer.finish()):
        if not isinstance(item, Packets) or item.kind is not Kind.INSTRUCTION or item.source in found:
            continue
        if any(map(_starts, item.payloads)):
            found.add(item.source)
    return sorted(found) or [0]


def _starts(payload: bytes) -> bool:
    return bool(payload) and payload[0] & 3 == _SYNC and payload[0] >> 2 & 3 in _WITH_ADDRESS


def _features(how: ETrace, source: int) -> int:
    modes = {SETTINGS[key].told_by: getattr(how.options.modes, key) for key in REGISTERED_MODES}
    bits = how.encapsulation.src_bits
    fits = bits <= _MAX_SRC_BITS and source <= _MAX_SRC
    return encoder_registers.INST_FEATURES.pack(
        **modes, trTeSrcID=source if fits else 0, trTeSrcBits=bits if bits <= _MAX_SRC_BITS else 0
    )


def _max_width() -> int:
    return (1 << component_registers.TS_CONTROL.by_name["trTsWidth"].width) - 1


def tandem_capture(
    name: str, data: bytes, parameters: Parameters, image: Image, *, hart: int = 0, wrapped: bool = False
) -> Capture:
    """The bytes as the capture of one hart. *name*: of the file. *image*: the program, empty where none is known."""
    port = TandemPort(f"tandem{hart}", parameters)
    return Capture(
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        tool=tool(),
        target=f"an unknown target, imported from {PurePath(name).name}",
        xlen=parameters.xlen,
        elf=identity_of(image) if image.path else None,
        encoders=(),
        sinks=(),
        code=tuple(image.code) if image.path else tuple(image.segments),
        tandem=(CapturedTandem(hart, port, data, wrapped),),
    )


_MAX_WIDTH = (1 << component_registers.TS_CONTROL.by_name["trTsWidth"].width) - 1


@dataclass(frozen=True)
class Raw:
    """Raw trace bytes and what their owner knows of them.

    *name*: of the file. *options*: how they were made. *image*: the program. *images*: see `captured_image`.
    *wrapped*: they start anywhere. *source*: they are taken for one hart's, which sends this; of N-Trace `src_id` says
    so. *sources*: who speaks in them, where that is known already.
    """

    name: str
    data: bytes
    options: EncoderHow
    image: Image
    images: tuple[CapturedImage, ...] = field(default=())
    wrapped: bool = False
    source: int | None = None
    sources: tuple[int, ...] | None = None


def capture_of(raw: Raw) -> Capture:
    """The bytes as a capture. Harts are numbered by their source."""
    encoders = tuple(_encoders(raw))
    names = tuple(traced.in_force.name for traced in encoders)
    return Capture(
        created=_now(),
        tool=tool(),
        target=f"an unknown target, imported from {PurePath(raw.name).name}",
        xlen=raw.image.xlen,
        elf=identity_of(raw.image) if raw.image.path else None,
        encoders=encoders,
        sinks=(_sink(raw.name, raw.data, raw.wrapped, names),),
        code=tuple(raw.image.code),
        images=raw.images,
    )


def with_settings(settings: Capture, name: str, data: bytes, *, wrapped: bool = False) -> Capture:
    """The bytes as a capture, made as the registers said when *settings* were saved. *name*: of the file.

    The bytes left the chip, so they are of the encoders that feed no buffer, if there are such.
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
        sinks=(_sink(name, data, wrapped, names),),
        records=(),
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _encoders(raw: Raw) -> Iterator[CapturedEncoder]:
    how = raw.options
    if raw.sources is not None:
        for source in raw.sources:
            yield (
                etrace_encoder(f"encoder{source}", source, how, source)
                if isinstance(how, ETrace)
                else _encoder(source, how)
            )
        return
    if isinstance(how, ETrace):
        sources = [raw.source] if raw.source is not None else etrace_sources(raw.data, how, wrapped=raw.wrapped)
        for source in sources:
            yield etrace_encoder(f"encoder{source}", source, how, source)
        return
    for source in [how.src_id] if how.src_id is not None else sources_in(raw.data, how, raw.wrapped):
        yield _encoder(source, how)


def is_imported(capture: Capture) -> bool:
    """Whether its encoders' registers are what somebody said of them (docs/capture-format.md: bases of 0)."""
    return bool(capture.encoders) and not any(traced.in_force.base for traced in capture.encoders)


def captured_image(
    image: Image,
    name: str,
    *,
    scontext: int | None = None,
    hcontext: int | None = None,
    virtual: bool | None = None,
) -> CapturedImage:
    """A program that is in memory in the contexts with these values, with all its code."""
    return CapturedImage(
        name,
        scontext,
        hcontext,
        virtual,
        tuple(image.segments),
        tuple(
            PlacedElf(ElfIdentity(elf.path, elf.build_id, elf.sha256), bias & (1 << 64) - 1)
            for elf, bias in image.elves
        ),
        tuple((absent.addresses.start, len(absent.addresses), absent.what) for absent in image.absent),
    )


def sources_in(data: bytes, options: Options, wrapped: bool = False) -> list[int]:
    """The SRC values of the synchronizing messages in a trace: only there decoding can start. [0] without any."""
    if not options.src_bits:
        return [0]
    found = set()
    first_bytes = {tcode << 8 - MDO_BITS for tcode, layout in options.dialect.layouts.items() if layout.synchronizes}
    for batch in Framer(wrapped=wrapped).feed(data):
        for frame in batch.frames if isinstance(batch, Batch) else ():
            if frame[0] in first_bytes:
                found.add(source_of(frame, options.src_bits))
    return sorted(found) or [0]


def _encoder(source: int, options: Options) -> CapturedEncoder:
    """An encoder that was set up as *options* say."""
    wraps_late = options.timestamp_bits > _MAX_WIDTH  # later than its register can say
    in_force = EncoderInForce(
        name=f"encoder{source}",
        base=0,
        control=encoder_registers.ENCODER_CONTROL.pack(
            trTeActive=1,
            trTeEnable=1,
            trTeInstTracing=1,
            trTeInstMode=InstMode.BTM if options.btm else InstMode.HTM,
            trTeFormat=Format.N_TRACE,
        ),
        impl=encoder_registers.ENCODER_IMPL.pack(trTeVerMajor=1, trTeCompType=CompType.ENCODER, trTeProtocolMajor=1),
        features=encoder_registers.INST_FEATURES.pack(
            trTeInstEnSequentialJump=options.sequential_jump,
            trTeInstEnImplicitReturn=options.implicit_return != ImplicitReturn.OFF,
            trTeInstImplicitReturnMode=options.implicit_return,
            trTeInstEnAllJumps=options.all_jumps,
            trTeInstExtendAddrMSB=options.extend_addr_msb,
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
    )
    return CapturedEncoder(source, in_force, unregistered)


def _sink(name: str, data: bytes, wrapped: bool, encoders: tuple[str, ...]) -> CapturedSink:
    """A buffer that is full to the last byte."""
    control = component_registers.RAM_CONTROL.pack(trRamActive=1, trRamEnable=1, trRamMode=RamMode.SMEM)
    impl = component_registers.RAM_IMPL.pack(trRamVerMajor=1, trRamCompType=CompType.RAM_SINK, trRamHasSMEM=1)
    in_force = SinkInForce(PurePath(name).name, 0, control, impl, 0, max(len(data) - 1, 0), 1)
    return CapturedSink(in_force, data, wrapped, 0, encoders, ())


_PIECE = 1 << 12  # bytes
_LOOKED_AT = 1 << 16  # bytes that are no filling
_FEW = 1 << 6  # bytes
_OF_FEW = 75  # percent of them are messages
_DENSE = 16  # bytes for each instruction, or fewer, are a program's


class _Format(NamedTuple):
    """*least*: what part of a trace are messages, in percent."""

    name: str
    least: int


_FORMATS = {NTrace: _Format("N-Trace", 25), ETrace: _Format("E-Trace", 75)}
_TANDEM = _Format("a tandem trace", 25)


class _Read(NamedTuple):
    """Bytes of messages, and others that are no filling."""

    sensible: int
    others: int


def empty_history(found: Harts) -> str | None:
    """That there is nothing but filling, in words; None: there is more. *found*: what was decoded."""
    total, _, idle, _ = found.accounting
    return f"is empty: {_count(total, 'byte')} of filling, and no message" if total == idle > 0 else None


def why_unreadable(capture: Capture, found: Harts) -> str | None:
    """Why imported bytes are no trace, in words; None: they may be one. *found*: what was decoded of them."""
    total, _, idle, _ = found.accounting
    instructions = sum(history.instructions for history in found.histories.values())
    if is_dense(instructions, total - idle):
        return None
    problems = [_problem(captured, capture, instructions) for captured in capture.captured]
    return problems[0] if problems and all(problems) else None


def is_dense(instructions: int, size: int) -> bool:
    """Whether so many bytes have so many instructions that they are a trace, whatever else is in them."""
    return instructions * _DENSE >= size


def _problem(captured: Captured, capture: Capture, instructions: int) -> str | None:
    """The same of one buffer."""
    if isinstance(captured, CapturedRecords) or _is_of_other_parameters(captured):
        return None
    how = sinks.how_of(captured, capture.encoders)
    kind = _FORMATS.get(type(how), _TANDEM)
    sensible, others = _share_of_messages(captured.data, how, capture.xlen, wrapped=captured.wrapped)
    size = sensible + others
    if sensible and sensible * 100 >= size * (_OF_FEW if size < _FEW else kind.least):
        return None
    if isinstance(captured, CapturedTandem):
        advice = tandem_guess.advice(captured.data, captured.in_force.parameters, wrapped=captured.wrapped)
        if advice:
            return advice
    first = "the first " if size > _LOOKED_AT else ""
    of = f"of {first}{_count(size or len(captured.data), 'byte')} {sensible} are messages"
    ran = _count(instructions, "instruction")
    return f"cannot be read as {kind.name}: {of}, {ran} ran: is it a trace, and was it made with these options?"


def _is_of_other_parameters(captured: Captured) -> bool:
    """Whether it is a tandem trace that can be read with others than was said: a warning tells."""
    if not isinstance(captured, CapturedTandem):
        return False
    told = captured.in_force.parameters
    return tandem_guess.looks_like(captured.data, told, wrapped=captured.wrapped) is not None


def _share_of_messages(data: bytes, how: How, xlen: int, *, wrapped: bool) -> _Read:
    """What the beginning of a trace is made of. A message that is cut off by its end does not count."""
    itemizer, makes_sense = registry.itemizer(how, xlen, wrapped=wrapped), _judge(how)
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
    return _Read(sensible, others)


def _items(data: bytes, itemizer: format.Itemizer) -> Iterator[Any]:
    for at in range(0, len(data), _PIECE):
        yield from itemizer.feed(data[at : at + _PIECE])
    yield from itemizer.finish()


def _judge(how: How) -> Callable[[Any], bool]:
    """What tells whether an item is a message that such an encoder sends."""
    wording = registry.wording(how)
    if isinstance(how, ETrace):
        return lambda item: (item.packet or item.data) is not None and not wording.is_odd(item)
    return lambda item: not wording.is_odd(item)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
