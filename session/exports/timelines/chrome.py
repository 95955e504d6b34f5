"""A timeline as Chrome's Trace Event Format, which Perfetto, Speedscope and older viewers read: JSON, an event a line.

The harts are its processes, the tracks its threads. Its times are microseconds, with three digits behind the point: a
thousandth of one is a tick of the trace's time, or an instruction; the name of the process says which. The end of a
slice has its name, too, which the format leaves open: speedscope ends no slice without it.
Source: "Trace Event Format", google/trace-viewer.
"""

import json
from collections import defaultdict
from typing import BinaryIO

from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.timelines.tracks import EventValues, Track, write_harts
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import json_line

_AT_ONCE = 1 << 12


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the timelines of all harts."""
    head = json.dumps({"exporter": tool()})
    file.write(f'{{"displayTimeUnit": "ns", "otherData": {head}, "traceEvents": [\n'.encode())
    made = _ChromeFile(file)
    written = write_harts(trace, made, progress)
    made.flush()
    file.write(b"\n]}\n")
    return written


class _ChromeFile:
    """Events, see `TimelineFile`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: list[str] = []
        self._tracks = 0
        self._is_first = True
        self._counters: dict[Track, str] = {}
        self._open: dict[Track, list[str]] = defaultdict(list)
        """What slices that have not ended are called, and their categories."""

    def flush(self) -> None:
        """Write what was collected."""
        if self._lines:
            before = "" if self._is_first else ",\n"
            self._file.write((before + ",\n".join(self._lines)).encode())
            self._lines, self._is_first = [], False

    def hart(self, hart: int, name: str) -> None:
        """See `TimelineFile`."""
        self._add(json_line({"ph": "M", "pid": hart, "name": "process_name", "args": {"name": name}}))

    def track(self, hart: int, name: str, unit: str = "") -> Track:
        """See `TimelineFile`."""
        self._tracks += 1
        track = Track(hart, self._tracks)
        if unit:
            self._counters[track] = json.dumps(name)[1:-1]
        else:
            self._event("M", track, f'"name": "thread_name", "args": {json_line({"name": name})}')
        return track

    def begin(self, at: int, track: Track, name: str, category: str, values: EventValues) -> None:
        """See `TimelineFile`."""
        named = _named(name, category)
        self._open[track].append(named)
        self._event("B", track, f'"ts": {_time(at)}, {named}{_values(values)}')

    def end(self, at: int, track: Track, values: EventValues) -> None:
        """See `TimelineFile`."""
        self._event("E", track, f'"ts": {_time(at)}, {self._open[track].pop()}{_values(values)}')

    def instant(self, at: int, track: Track, name: str, category: str, values: EventValues) -> None:
        """See `TimelineFile`."""
        self._event("i", track, f'"ts": {_time(at)}, "s": "t", {_named(name, category)}{_values(values)}')

    def counter_value(self, at: int, track: Track, value: "int | float") -> None:
        """See `TimelineFile`."""
        self._event("C", track, f'"ts": {_time(at)}, "name": "{self._counters[track]}", "args": {{"value": {value!r}}}')

    def _event(self, phase: str, track: Track, rest: str) -> None:
        self._add(f'{{"ph": "{phase}", "pid": {track.hart}, "tid": {track.number}, {rest}}}')

    def _add(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) >= _AT_ONCE:
            self.flush()


def _time(at: int) -> str:
    return f"{at // 1000}.{at % 1000:03}"


def _named(name: str, category: str) -> str:
    return json_line({"name": name, "cat": category})[1:-1]


def _values(values: EventValues) -> str:
    return f', "args": {json_line(values)}' if values else ""
