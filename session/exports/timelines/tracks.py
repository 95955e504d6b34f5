"""The tracks of a timeline, whatever the form of the file: which there are, and the events on them in order.

Slices may begin in the file behind what is in them and short, with the time at which they began: readers sort by time.
Of events at the same time on a track the first one comes first in the file.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.calls.slices.drawn import DrawnItem, ShortCalls, SliceBegin, SliceTrack
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.timelines.timeline import HartTimeline
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import printable

CALL, TRAP, MISSING, SHORT = "call", "trap", "missing", "short calls"
"""The categories of events."""
UNPLACED = "calls that are shorter than the resolution, and in no call that is drawn,"
BACK = "times, which go back, with instruction numbers in their place,"
EventValues = Mapping[str, "int | str"]
_NONE: EventValues = {}
_BEFORE: EventValues = {"entered before": 1}


class Track(NamedTuple):
    """A track of a file. *hart*: its hart; *number*: unlike that of any other track."""

    hart: int
    number: int


class TimelineFile(Protocol):
    """A file under construction. Times are in units of the axis."""

    def hart(self, hart: int, name: str) -> None:
        """Begin with a hart, whose tracks follow."""
        ...

    def track(self, hart: int, name: str, unit: str = "") -> Track:
        """Add a track. *unit*: of what a counter counts."""
        ...

    def begin(self, at: int, track: Track, name: str, category: str, values: EventValues) -> None:
        """Begin a slice."""
        ...

    def end(self, at: int, track: Track, values: EventValues) -> None:
        """End the newest slice of a track."""
        ...

    def instant(self, at: int, track: Track, name: str, category: str, values: EventValues) -> None:
        """Add something that has no length."""
        ...

    def counter_value(self, at: int, track: Track, value: "int | float") -> None:
        """Add the value that a counter has from here on."""
        ...


def write_harts(trace: ExportedTrace, file: TimelineFile, progress: Progress) -> Written:
    """Write the timelines of all harts. Raises what *progress* raises."""
    unplaced = back = 0
    for hart in trace.harts:
        timeline = HartTimeline(hart, progress)
        _HartTracks(file, timeline).write(progress)
        unplaced, back = unplaced + timeline.slices.unplaced, back + timeline.axis.goes_back
    return Written(None, {UNPLACED: unplaced, BACK: back})


class _HartTracks:
    """The tracks of a hart."""

    def __init__(self, file: TimelineFile, timeline: HartTimeline) -> None:
        self._file, self._timeline, self._hart = file, timeline, timeline.trace.hart
        self._axis = timeline.axis
        self._tracks: dict[SliceTrack, Track] = {}

    def write(self, progress: Progress) -> None:
        """Write all events of the hart."""
        self._file.hart(self._hart, self._timeline.label)
        for item in self._timeline.drawn_items(progress):
            self._draw(item)
        self._write_traps()
        self._write_missing()
        self._write_counters()

    def _track(self, track: SliceTrack) -> Track:
        known = self._tracks.get(track)
        if known is None:
            name = self._timeline.track_name(track)
            known = self._tracks[track] = self._file.track(self._hart, name)
        return known

    def _draw(self, item: DrawnItem) -> None:
        track, at = self._track(item.track), self._axis(item.position)
        if isinstance(item, SliceBegin):
            names = self._timeline.names
            name = names.name(names.frame_at(item.position, item.function, trap=item.trap))
            self._file.begin(at, track, name, CALL, _NONE if item.called else _BEFORE)
        elif isinstance(item, ShortCalls):
            self._file.begin(at, track, SHORT, SHORT, {"calls": item.calls})
            self._file.end(self._axis(item.end), track, _NONE)
        else:
            self._file.end(at, track, {"short calls in it": item.calls} if item.calls else _NONE)

    def _write_traps(self) -> None:
        track = None
        for it in self._timeline.traps():
            track = track or self._file.track(self._hart, "traps")
            self._file.instant(it.at, track, printable(it.text), TRAP, {"traps": it.times} if it.times > 1 else _NONE)

    def _write_missing(self) -> None:
        track = None
        for it in self._timeline.missing():
            track = track or self._file.track(self._hart, "missing")
            self._file.begin(it.begin, track, it.text, MISSING, {"why": printable(it.detail)})
            self._file.end(it.end, track, _NONE)

    def _write_counters(self) -> None:
        counters = (("traps so far", "traps", self._timeline.trap_counts()),
                    ("instructions per tick", "instructions", self._timeline.speeds()))  # fmt: skip
        for name, unit, values in counters:
            track = None
            for at, value in values:
                track = track or self._file.track(self._hart, name, unit)
                self._file.counter_value(at, track, value)
