"""Raw trace bytes that something else made (a simulation, another tool's dump) as a capture.

What their owner says of them goes where a capture has it: into the registers the encoder would have had and, what no
register tells, beside them. So they are decoded as any other capture is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePath

from rvtrace_gdb.controlregs import encoder, ram_sink, timestamp
from rvtrace_gdb.controlregs.common import CompType
from rvtrace_gdb.controlregs.encoder import Format, InstMode
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import EncoderInForce, SinkInForce
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.ntrace.dialect import RATIFIED
from rvtrace_gdb.decode.ntrace.framing import Batch, Framer
from rvtrace_gdb.decode.ntrace.layout import MDO_BITS
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn, Options
from rvtrace_gdb.decode.ntrace.streams import source_of
from rvtrace_gdb.session.captured import (
    Capture,
    CapturedEncoder,
    CapturedImage,
    CapturedSink,
    ElfIdentity,
    PlacedElf,
    Unregistered,
)
from rvtrace_gdb.session.decoding import identity_of
from rvtrace_gdb.session.etrace import ETrace
from rvtrace_gdb.session.formats import How
from rvtrace_gdb.session.importing_etrace import etrace_encoder, etrace_sources
from rvtrace_gdb.session.version import tool

__all__ = ["Raw", "capture_of", "captured_image", "etrace_encoder", "is_imported", "sources_in", "with_settings"]

_MAX_WIDTH = (1 << timestamp.CONTROL.by_name["trTsWidth"].width) - 1


@dataclass(frozen=True)
class Raw:
    """Raw trace bytes and what their owner knows of them.

    *name*: of the file. *options*: how they were made. *image*: the program. *images*: see `captured_image`.
    *wrapped*: they start anywhere. *source*: they are taken for one hart's, which sends this; of N-Trace `src_id` says
    so. *sources*: who speaks in them, where that is known already.
    """

    name: str
    data: bytes
    options: How
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
        control=encoder.CONTROL.pack(
            trTeActive=1,
            trTeEnable=1,
            trTeInstTracing=1,
            trTeInstMode=InstMode.BTM if options.btm else InstMode.HTM,
            trTeFormat=Format.N_TRACE,
        ),
        impl=encoder.IMPL.pack(trTeVerMajor=1, trTeCompType=CompType.ENCODER, trTeProtocolMajor=1),
        features=encoder.INST_FEATURES.pack(
            trTeInstEnSequentialJump=options.sequential_jump,
            trTeInstEnImplicitReturn=options.implicit_return != ImplicitReturn.OFF,
            trTeInstImplicitReturnMode=options.implicit_return,
            trTeInstEnAllJumps=options.all_jumps,
            trTeInstExtendAddrMSB=options.extend_addr_msb,
            trTeSrcID=source,
            trTeSrcBits=options.src_bits,
        ),
        ts_control=timestamp.CONTROL.pack(
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
    control = ram_sink.CONTROL.pack(trRamActive=1, trRamEnable=1, trRamMode=RamMode.SMEM)
    impl = ram_sink.IMPL.pack(trRamVerMajor=1, trRamCompType=CompType.RAM_SINK, trRamHasSMEM=1)
    in_force = SinkInForce(PurePath(name).name, 0, control, impl, 0, max(len(data) - 1, 0), 1)
    return CapturedSink(in_force, data, wrapped, 0, encoders, ())
