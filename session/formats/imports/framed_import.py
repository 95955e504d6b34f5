"""Imports bytes in CoreSight frames: which encoder has which ATB ID.

Where messages name their source, that is the hart, whatever the ID: Linux gives IDs in the order in which it finds the
components. Else each ID is a hart. A user may say both otherwise.
"""

from collections.abc import Sequence
from dataclasses import replace

from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace
from rvtrace_gdb.decode.coresight.frames import USABLE_IDS
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.capture.model import Capture, CapturedEncoder, CapturedSink
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.framed_sinks import remarks_of
from rvtrace_gdb.session.formats.imports.imported_encoders import (
    EncoderTraceOptions,
    ImportedFrames,
    RawImport,
    encoder_of_source,
    full_sink,
    synchronizing_sources,
)
from rvtrace_gdb.session.formats.sinks import options_of, source_of_encoder
from rvtrace_gdb.support.text import counted, printable


def encoders_and_sink(raw: RawImport, frames: ImportedFrames) -> tuple[tuple[CapturedEncoder, ...], CapturedSink]:
    """Return an encoder for each source of each ATB ID, and the buffer that they feed: at least one."""
    trace = DemultiplexedTrace(frames.form, raw.data)
    has_sources = registry.format_of(raw.trace_options).has_sources(raw.trace_options)
    chosen = [atb_id for atb_id in trace.atb_ids if frames.is_chosen(atb_id)]
    only = raw.source if isinstance(raw.trace_options, EtraceTraceOptions) else raw.trace_options.src_id
    found = [
        (atb_id, source)
        for atb_id in chosen
        for source in synchronizing_sources(trace.stream(atb_id), raw.trace_options, wrapped=raw.wrapped)
        if not has_sources or only in (None, source)
    ]
    made: dict[str, CapturedEncoder] = {}
    atb_ids: dict[str, int] = {}
    for atb_id, source in found or [((chosen or [*frames.harts, USABLE_IDS[0]])[0], only or 0)]:
        given = frames.harts.get(atb_id)
        hart = given if given is not None else source if has_sources else atb_id
        name = f"encoder{hart}" if f"encoder{hart}" not in made else f"encoder{hart}_{atb_id:02x}_{source}"
        encoder = encoder_of_source(source, raw.trace_options)
        made[name] = replace(encoder, hart=hart, in_force=replace(encoder.in_force, name=name))
        atb_ids[name] = atb_id
    sink = full_sink(raw.name, raw.data, raw.wrapped, tuple(made))
    return tuple(made.values()), replace(sink, frames=frames.form, atb_ids=atb_ids)


def sink_of_encoders(
    sink: CapturedSink,
    encoders: Sequence[CapturedEncoder],
    buffers: Sequence[CapturedSink],
    frames: ImportedFrames,
) -> CapturedSink:
    """Return a buffer that holds frames of known encoders. Their ATB IDs are those that the user gave, else those in
    *buffers*, else those of the bytes with their source. Raises Unsupported: one cannot be told.
    """
    atb_ids = {name: atb_id for it in buffers for name, atb_id in it.atb_ids.items()}
    atb_ids |= _found_by_source(sink, encoders, frames) if not atb_ids else {}
    given = {hart: atb_id for atb_id, hart in frames.harts.items() if hart is not None}
    atb_ids |= {it.in_force.name: given[it.hart] for it in encoders if it.hart in given}
    own = {it.in_force.name: atb_ids[it.in_force.name] for it in encoders if it.in_force.name in atb_ids}
    trace_options = options_of(list(encoders))
    has_sources = registry.format_of(trace_options).has_sources(trace_options)
    if not own and (sink.data or (not has_sources and len(encoders) > 1)):
        names = ", ".join(it.in_force.name for it in encoders)
        advice = "--atb-id ID=HART says whose trace an ID is"
        raise Unsupported(printable(f"the ATB ID of {names} cannot be told: {advice}"))
    own = own or {it.in_force.name: atb_id for it, atb_id in zip(encoders, USABLE_IDS, strict=False)}
    return replace(sink, encoders=tuple(own), frames=frames.form, atb_ids=own)


def _found_by_source(sink: CapturedSink, encoders: Sequence[CapturedEncoder], frames: ImportedFrames) -> dict[str, int]:
    """Return the ATB ID of each encoder whose source is in the bytes; of the only encoder the only ID."""
    trace_options = options_of(list(encoders))
    assert isinstance(trace_options, EncoderTraceOptions)
    trace = DemultiplexedTrace(frames.form, sink.data)
    chosen = [atb_id for atb_id in trace.atb_ids if frames.is_chosen(atb_id)]
    if not registry.format_of(trace_options).has_sources(trace_options):
        return {encoders[0].in_force.name: chosen[0]} if len(encoders) == len(chosen) == 1 else {}
    names = {source_of_encoder(it): it.in_force.name for it in encoders}
    found: dict[str, int] = {}
    for atb_id in chosen:
        for source in synchronizing_sources(trace.stream(atb_id), trace_options, wrapped=sink.wrapped):
            if source in names:
                found.setdefault(names[source], atb_id)
    return found


def with_tandem_streams(capture: Capture, frames: ImportedFrames) -> Capture:
    """Return a capture of raw tandem traces in frames with the trace of each ATB ID instead: it is a hart's."""
    (whole,) = capture.tandem
    trace = DemultiplexedTrace(frames.form, whole.data)
    found = []
    for atb_id in filter(frames.is_chosen, trace.atb_ids):
        hart = frames.harts.get(atb_id)
        hart = atb_id if hart is None else hart
        port = replace(whole.in_force, name=f"tandem{hart}")
        found.append(replace(whole, hart=hart, in_force=port, data=trace.stream(atb_id)))
    lines = remarks_of(frames.form, trace.accounting, trace.firsts, "the frames", trace.atb_ids)
    about = f"note: the tandem traces were in {counted(len(whole.data), 'byte')} of CoreSight frames"
    return replace(capture, tandem=tuple(found) or (replace(whole, data=b""),), notes=(*capture.notes, about, *lines))
