"""Converts raw trace bytes of another program (a simulation, another tool's dump) into a capture.

The given options are stored as in any capture (`imported_encoders`), so the bytes are decoded as any other capture. An
E-Trace gets an encoder for each source in it; the parameters of a tandem trace are not in registers.

`why_unreadable` detects bytes that are not trace: hardly any of them are messages, and hardly an instruction ran in
them. Noise contains a message here and there, so a certain share of the bytes must be messages; a larger one of few
bytes, and of E-Trace, in which most bytes are some packet. A trace of few messages, without a place where decoding can
start, or of unknown code, is still a trace.
"""

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, NamedTuple

from rvtrace_gdb.decode.ntrace.options import Options as NTrace
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem import plausibility as tandem_guess
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.capture.model import (
    BranchPort,
    Capture,
    Captured,
    CapturedBranches,
    CapturedEncoder,
    CapturedImage,
    CapturedPort,
    CapturedRecords,
    CapturedSink,
    CapturedTandem,
    ElfIdentity,
    PlacedElf,
    is_framed,
)
from rvtrace_gdb.session.formats import format, registry, sinks
from rvtrace_gdb.session.formats.format import TraceOptions
from rvtrace_gdb.session.formats.imports.imported_encoders import EncoderTraceOptions as EncoderTraceOptions
from rvtrace_gdb.session.formats.imports.imported_encoders import (
    ImportedFrames,
    encoder_of_source,
    full_sink,
    sources_of,
)
from rvtrace_gdb.session.formats.imports.imported_encoders import RawImport as RawImport
from rvtrace_gdb.session.formats.imports.imported_encoders import etrace_encoder as etrace_encoder
from rvtrace_gdb.session.formats.imports.imported_encoders import etrace_sources as etrace_sources
from rvtrace_gdb.session.formats.imports.imported_encoders import sources_in as sources_in
from rvtrace_gdb.session.formats.sinks import HartHistories
from rvtrace_gdb.session.program import identity_of
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.text import counted


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


def branches_capture(name: str, captured: Sequence[CapturedBranches], image: Image) -> Capture:
    """Return traces of transfers as a capture. *name*: the file's. *image*: the program."""
    return Capture(
        created=_now(),
        tool=tool(),
        target=f"an unknown target, imported from {PurePath(name).name}",
        xlen=image.xlen,
        elf=identity_of(image) if image.path else None,
        encoders=(),
        sinks=(),
        code=tuple(image.code),
        branches=tuple(captured),
        elfs=files_beside(image),
        patched=tuple(image.patched),
    )


def capture_of(raw: RawImport) -> Capture:
    """Return the bytes as a capture. Harts are numbered by their source; in frames without sources by their ATB ID."""
    encoders, sink = _encoders_and_sink(raw)
    return Capture(
        created=_now(),
        tool=tool(),
        target=f"an unknown target, imported from {PurePath(raw.name).name}",
        xlen=raw.image.xlen,
        elf=identity_of(raw.image) if raw.image.path else None,
        encoders=encoders,
        sinks=(sink,),
        code=tuple(raw.image.code),
        images=raw.images,
        elfs=files_beside(raw.image),
        patched=tuple(raw.image.patched),
    )


def files_beside(image: Image) -> tuple[PlacedElf, ...]:
    """Return the files of a program besides its own, for their symbols."""
    first = next((number for number, (elf, _) in enumerate(image.elves) if elf.path == image.path), None)
    return tuple(_placed(elf, bias) for number, (elf, bias) in enumerate(image.elves) if number != first)


def with_settings(
    settings: Capture, name: str, data: bytes, *, wrapped: bool = False, frames: ImportedFrames | None = None
) -> Capture:
    """Return the bytes as a capture with the registers of *settings*. *name*: the file's.

    The bytes left the chip, so they come from the encoders that feed no buffer, if there are any.
    """
    buffered = {encoder for sink in settings.sinks for encoder in sink.encoders}
    others = tuple(made for made in settings.encoders if made.in_force.name not in buffered)
    encoders = others or settings.encoders
    sink = full_sink(name, data, wrapped, tuple(made.in_force.name for made in encoders))
    if frames is not None:
        from rvtrace_gdb.session.formats.imports import framed_import  # few traces are in frames

        sink = framed_import.sink_of_encoders(sink, encoders, settings.sinks, frames)
    return replace(
        settings,
        created=_now(),
        tool=tool(),
        encoders=encoders,
        sinks=(sink,),
        records=(),
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _encoders_and_sink(raw: RawImport) -> tuple[tuple[CapturedEncoder, ...], CapturedSink]:
    if raw.frames is not None:
        from rvtrace_gdb.session.formats.imports import framed_import  # few traces are in frames

        return framed_import.encoders_and_sink(raw, raw.frames)
    encoders = tuple(encoder_of_source(source, raw.trace_options) for source in raw.sources or sources_of(raw) or [0])
    return encoders, full_sink(raw.name, raw.data, raw.wrapped, tuple(made.in_force.name for made in encoders))


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
    epochs: tuple[int, ...] = (),
) -> CapturedImage:
    """Return a program, with all its code, that is in memory in the contexts with these values."""
    return CapturedImage(
        name,
        scontext,
        hcontext,
        virtual,
        tuple(image.segments),
        tuple(_placed(elf, bias) for elf, bias in image.elves),
        tuple((it.addresses.start, it.addresses.stop - it.addresses.start, it.what) for it in image.absent),
        epochs,
    )


def _placed(elf: Elf, bias: int) -> PlacedElf:
    return PlacedElf(ElfIdentity(elf.path, elf.build_id, elf.sha256, elf.loaded or None), bias & (1 << 64) - 1)


_PIECE = 1 << 12  # bytes
_TEXT_LOOKED_AT, _SHORTEST_TEXT = 1 << 12, 32  # bytes
_PRINTED = bytes((*range(0x20, 0x7F), *b"\t\r\n\f"))
_LOOKED_AT = 1 << 16  # bytes that are not idle
_FEW = 1 << 6  # bytes
_OF_FEW = 75  # percent of them are messages
_DENSE = 16  # a program's trace has so many bytes for each instruction, or fewer


class _FormatSigns(NamedTuple):
    """*least*: the share of the bytes that must be messages, in percent."""

    name: str
    least: int


_FORMATS = {NTrace: _FormatSigns("N-Trace", 25), EtraceTraceOptions: _FormatSigns("E-Trace", 75)}
_BRANCHES = {
    "neorv32": _FormatSigns("pairs of NEORV32's TRACER", 75), "tacit": _FormatSigns("TACIT", 75),
    "ctxp": _FormatSigns("CTXP", 75), "gem5": _FormatSigns("E-Trace of gem5", 75),
}  # fmt: skip
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
    if any(map(is_framed, capture.captured)):
        return _why_frames_are_unreadable(capture, instructions, total)
    problems = [_problem(captured, capture, instructions) for captured in capture.captured]
    return problems[0] if problems and all(problems) else None


def _why_frames_are_unreadable(capture: Capture, instructions: int, size: int) -> str | None:
    """Return the same of CoreSight frames: that of the ATB ID with the most bytes, if none of them is trace."""
    from rvtrace_gdb.session.formats.framed_sinks import FramedSinks  # few captures have frames

    streams = [it for it in FramedSinks().streams(capture.captured) if it.data]
    if not streams and _has_no_ids(capture.captured):
        text = "no frame says which trace source sent its"
        return f"{text} {counted(size, 'byte')} (no ATB ID): is it all of the buffer, and are these CoreSight frames?"
    if not streams:
        return f"no trace source has sent any of its {counted(size, 'byte')}: are these CoreSight frames of this form?"
    problems = {_problem(it, capture, instructions): len(it.data) for it in streams}
    if None in problems:
        return None
    most = max(problems, key=lambda it: problems[it])
    return f"of the ATB ID with most of its bytes: {most} Are these CoreSight frames?"


def _has_no_ids(captured: Sequence[Captured]) -> bool:
    """Return whether all frames are of one unknown source, as in a part of a buffer whose ID came before it."""
    from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace
    from rvtrace_gdb.decode.coresight.frames import NoId

    framed = [(it.frames, it.data) for it in captured if isinstance(it, CapturedSink) and it.frames is not None]
    found = [DemultiplexedTrace(form, data).accounting for form, data in framed if any(data)]
    return bool(found) and all(it.others.get(NoId.UNKNOWN) and not it.of_ids for it in found)


def is_dense(instructions: int, size: int) -> bool:
    """Return whether there are enough instructions for so many bytes to be a trace, whatever else is in it."""
    return instructions * _DENSE >= size


def _problem(captured: Captured, capture: Capture, instructions: int) -> str | None:
    """Return the same as `why_unreadable` for one buffer."""
    if isinstance(captured, CapturedRecords) or _is_of_other_parameters(captured):
        return None
    trace_options = sinks.options_of_sink(captured, capture.encoders)
    kind = _FORMATS.get(type(trace_options), _TANDEM)
    kind = _BRANCHES[trace_options.kind] if isinstance(trace_options, BranchPort) else kind
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
    if other := _other_content(captured.data):
        return f"cannot be read as {kind.name}: {of}, {ran} ran: {other}"
    return f"cannot be read as {kind.name}: {of}, {ran} ran: is it a trace, and was it made with these options?"


_PACKED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"PK\3\4": "zip"}
"""What packed files begin with."""


def _other_content(data: bytes) -> str | None:
    """Return what to do with bytes that are no trace by their beginning: a text, or a packed file."""
    head = data[:_TEXT_LOOKED_AT]
    packed = next((name for magic, name in _PACKED.items() if head.startswith(magic)), None)
    if packed is not None:
        return f"it is packed by {packed}: unpack it first"
    is_utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and head.count(0) * 3 > len(head)
    if not is_utf16 and (len(head) < _SHORTEST_TEXT or head.translate(None, _PRINTED)):
        return None
    text = "a text in UTF-16: save it as UTF-8" if is_utf16 else "a text"
    return f"it is {text}; of a log of Spike, QEMU or Ibex `rvtrace import --log FORM` makes a trace (docs/logs.md)"


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
    if isinstance(trace_options, BranchPort):
        from rvtrace_gdb.decode.branches.plausibility import PlausibleEntries  # few traces are

        return PlausibleEntries(trace_options.kind)
    wording = registry.format_of(trace_options).wording(trace_options)
    if isinstance(trace_options, EtraceTraceOptions):
        return lambda item: (item.packet or item.data) is not None and not wording.is_odd(item)
    return lambda item: not wording.is_odd(item)
