"""A timeline as Perfetto reads it (ui.perfetto.dev): its trace of protobuf messages, written as a stream.

A process for each hart, a track for each task and context in it, slices for calls, instants for traps, a track for what
is missing, counters. What is shorter than the resolution is summed up. Names are sent once. Times are nanoseconds in
Perfetto: the name of the process says what a nanosecond is.

The messages are those of PyPI's `perfetto`. Source: google/perfetto, docs/reference/synthetic-track-event and
protos/perfetto/trace/track_event/.
"""

from typing import Any, BinaryIO

from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.extra_library import library
from rvtrace_gdb.session.exports.timelines.tracks import EventValues, Track, write_harts
from rvtrace_gdb.support.errors import Progress

_AT_ONCE = 1 << 12
"""Packets in each piece that is written."""
_SEQUENCE = 1


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the timelines of all harts. Raises LibraryMissing."""
    messages = library("perfetto.protos.perfetto.trace.perfetto_trace_pb2", "perfetto", "perfetto")
    made = _PerfettoFile(messages, file)
    written = write_harts(trace, made, progress)
    made.flush()
    return written


class _PerfettoFile:
    """Packets of one sequence, with names by number; see `TimelineFile`."""

    def __init__(self, messages: Any, file: BinaryIO) -> None:
        self._trace_class, self._file, self._types = messages.Trace, file, messages.TrackEvent
        self._trace = self._trace_class()
        self._names: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._value_names: dict[str, int] = {}
        self._tracks = 0
        self._harts: dict[int, int] = {}
        first = self._packet()
        first.sequence_flags = messages.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        first.trace_packet_defaults.timestamp_clock_id = messages.BUILTIN_CLOCK_BOOTTIME
        self._needs_state = messages.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE

    def flush(self) -> None:
        """Write what was collected."""
        self._file.write(self._trace.SerializeToString(deterministic=True))
        self._trace = self._trace_class()

    def hart(self, hart: int, name: str) -> None:
        """See `TimelineFile`. A process has no number 0 in Perfetto."""
        described = self._new_descriptor(name)
        self._harts[hart] = described.uuid
        described.process.pid, described.process.process_name = hart + 1, name

    def track(self, hart: int, name: str, unit: str = "") -> Track:
        """See `TimelineFile`."""
        described = self._new_descriptor(name)
        described.parent_uuid = self._harts[hart]
        if unit:
            described.counter.unit_name = unit
        return Track(hart, described.uuid)

    def begin(self, at: int, track: Track, name: str, category: str, values: EventValues) -> None:
        """See `TimelineFile`."""
        self._event(at, track, self._types.TYPE_SLICE_BEGIN, name, category, values)

    def end(self, at: int, track: Track, values: EventValues) -> None:
        """See `TimelineFile`."""
        self._event(at, track, self._types.TYPE_SLICE_END, "", "", values)

    def instant(self, at: int, track: Track, name: str, category: str, values: EventValues) -> None:
        """See `TimelineFile`."""
        self._event(at, track, self._types.TYPE_INSTANT, name, category, values)

    def counter_value(self, at: int, track: Track, value: "int | float") -> None:
        """See `TimelineFile`."""
        event = self._event(at, track, self._types.TYPE_COUNTER, "", "", {})
        if isinstance(value, int):
            event.counter_value = value
        else:
            event.double_counter_value = value

    def _new_descriptor(self, name: str) -> Any:
        self._tracks += 1
        described = self._packet().track_descriptor
        described.uuid, described.name = self._tracks, name
        return described

    def _event(self, at: int, track: Track, kind: int, name: str, category: str, values: EventValues) -> Any:
        packet = self._packet()
        packet.timestamp, packet.sequence_flags = at, self._needs_state
        event = packet.track_event
        event.type, event.track_uuid = kind, track.number
        if name:
            event.name_iid = self._interned_number(packet, "event_names", self._names, name)
            event.category_iids.append(self._interned_number(packet, "event_categories", self._categories, category))
        for what, value in values.items():
            annotation = event.debug_annotations.add()
            annotation.name_iid = self._interned_number(packet, "debug_annotation_names", self._value_names, what)
            if isinstance(value, int):
                annotation.int_value = value
            else:
                annotation.string_value = value
        return event

    def _interned_number(self, packet: Any, field: str, numbers: dict[str, int], text: str) -> int:
        number = numbers.get(text)
        if number is None:
            number = numbers[text] = len(numbers) + 1
            getattr(packet.interned_data, field).add(iid=number, name=text)
        return number

    def _packet(self) -> Any:
        if len(self._trace.packet) >= _AT_ONCE:
            self.flush()
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet
