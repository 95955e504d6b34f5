"""Common Trace Format 1.8: the description of the events, and streams of them in packets.

No library that is kept writes it: Babeltrace's bindings are for the system's own Python, barectf generates C for the
program that is traced. What is used of the format is small: four events, integers of whole bytes, texts.

Source: the CTF 1.8.3 specification (diamon.org/ctf), sections 5 (packets), 6 (events), 7 (TSDL).
"""

import struct
from enum import IntEnum
from typing import BinaryIO, NamedTuple

_MAGIC = 0xC1FC1FC1
_HEADER = struct.Struct("<IIQQQQQI")
"""Of a packet: magic, stream, its instance; begin, end (times), content and size (bits), hart."""
_EVENT = struct.Struct("<BQQ")
"""Of each event: its kind, its time, the number of the instruction."""
_ENTRY, _EXIT, _TRAP = struct.Struct("<QIB"), struct.Struct("<I"), struct.Struct("<bq")
_PACKET = 1 << 16
NOT_KNOWN = -1
"""Of a trap: what the trace does not say."""

METADATA = """/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 64; align = 8; signed = false; base = hex; }} := address_t;
typealias integer {{ size = 8; align = 8; signed = true; }} := int8_t;
typealias integer {{ size = 64; align = 8; signed = true; }} := int64_t;

trace {{
    major = 1; minor = 8; byte_order = le;
    packet.header := struct {{ uint32_t magic; uint32_t stream_id; uint64_t stream_instance_id; }};
}};
env {{ tracer_name = "rvtrace"; tracer_version = "{version}"; time_unit = "{unit}"; }};
clock {{ name = trace_time; description = "{unit}"; freq = 1000000000; offset = 0; }};
typealias integer {{ size = 64; align = 8; signed = false; map = clock.trace_time.value; }} := time_t;

stream {{
    id = 0;
    packet.context := struct {{
        time_t timestamp_begin; time_t timestamp_end; uint64_t content_size; uint64_t packet_size; uint32_t cpu_id;
    }};
    event.header := struct {{ uint8_t id; time_t timestamp; }};
    event.context := struct {{ uint64_t number; }}; /* of the instruction */
}};
/* called: 1 if the trace shows the call, 0 if the function was running before */
event {{ name = "function_entry"; id = 0; stream_id = 0;
    fields := struct {{ address_t address; uint32_t task; uint8_t called; string name; }}; }};
event {{ name = "function_exit"; id = 1; stream_id = 0; fields := struct {{ uint32_t task; string name; }}; }};
/* interrupt: 1 an interrupt, 0 an exception; -1 in both: the trace does not say */
event {{ name = "trap"; id = 2; stream_id = 0;
    fields := struct {{ int8_t interrupt; int64_t cause; string text; }}; }};
/* the name of what has a number in the fields task */
event {{ name = "task"; id = 4; stream_id = 0; fields := struct {{ uint32_t task; string name; }}; }};
event {{ name = "missing"; id = 3; stream_id = 0; fields := struct {{ string what; string text; }}; }};
"""
"""The description, in the Trace Stream Description Language, with places for *version* and *unit*."""


class EventId(IntEnum):
    """The events, by their numbers in the description."""

    FUNCTION_ENTRY = 0
    FUNCTION_EXIT = 1
    TRAP = 2
    MISSING = 3
    TASK = 4


class CtfEvent(NamedTuple):
    """An event before the instruction at *position*. *fields*: as they are in the stream."""

    position: int
    kind: EventId
    fields: bytes


def entry_fields(address: int, task: int, name: str, *, called: bool) -> bytes:
    """Return the fields of a function that begins."""
    return _ENTRY.pack(address, task, called) + _ctf_string(name)


def exit_fields(task: int, name: str) -> bytes:
    """Return the fields of a function that ends."""
    return _EXIT.pack(task) + _ctf_string(name)


def task_fields(task: int, name: str) -> bytes:
    """Return the fields of a task that begins to run."""
    return exit_fields(task, name)


def trap_fields(interrupt: int, cause: int, text: str) -> bytes:
    """Return the fields of a trap."""
    return _TRAP.pack(interrupt, cause if cause < 1 << 63 else NOT_KNOWN) + _ctf_string(text)


def missing_fields(what: str, text: str) -> bytes:
    """Return the fields of something that is missing."""
    return _ctf_string(what) + _ctf_string(text)


def _ctf_string(text: str) -> bytes:
    return text.encode() + b"\0"


class CtfStream:
    """A stream under construction: that of a hart."""

    def __init__(self, file: BinaryIO, hart: int) -> None:
        self._file, self._hart = file, hart
        self._events = bytearray()
        self._begin = self._end = 0

    def add(self, time: int, event: CtfEvent) -> None:
        """Add an event. Times never go back."""
        if not self._events:
            self._begin = time
        self._end = time
        self._events += _EVENT.pack(event.kind, time, event.position + 1) + event.fields
        if len(self._events) >= _PACKET:
            self.flush()

    def flush(self) -> None:
        """Write the events since the last packet."""
        bits = 8 * (_HEADER.size + len(self._events))
        self._file.write(_HEADER.pack(_MAGIC, 0, self._hart, self._begin, self._end, bits, bits, self._hart))
        self._file.write(self._events)
        self._events.clear()
