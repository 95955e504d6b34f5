"""What timelines draw of a hart: slices of calls, traps, what is missing, counters; each at its place on the axis."""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.calls.slices.axis import HistoryAxis
from rvtrace_gdb.decode.calls.slices.drawn import DrawnItem, SliceEnd, Slices, SliceTrack
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.decode.history.missing import missing_parts
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.exports.missing import cause
from rvtrace_gdb.session.exports.profiles.stacks import ProfileNames
from rvtrace_gdb.session.exports.timelines.axis import INSTRUCTIONS, TICKS, resolution_of
from rvtrace_gdb.session.queries.lists.thread_parts import thread_texts
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import printable

_INSTANTS = 100_000
"""So many instants of a kind are drawn at most; those nearer to each other than that are drawn as one."""
_SAMPLES = 5_000
"""So many values a counter has at most."""


class Instant(NamedTuple):
    """Something that happened *at* a place on the axis, so many *times* in a row."""

    at: int
    text: str
    times: int = 1


class MissingStretch(NamedTuple):
    """From *begin* to *end* of the axis the trace does not show what ran."""

    begin: int
    end: int
    text: str
    detail: str


class HartTimeline:
    """The timeline of a hart, of the part that is to be written. *unit*: of its axis, in files with nanoseconds.

    *resolution*: what is shorter is summed up. Raises what *progress* raises.
    """

    def __init__(self, trace: ExportedTrace, progress: Progress) -> None:
        self.trace, self.axis = trace, HistoryAxis(trace.history)
        self.unit = TICKS if self.axis.timed else INSTRUCTIONS
        calls = trace.calls(progress)
        self.resolution = resolution_of(trace, self.axis, calls)
        self.slices = Slices(calls, trace.part, self.resolution, trace.owners(progress))
        self.names = ProfileNames(trace, progress)
        self._threads = thread_texts(trace.session.capture())

    def drawn_items(self, progress: Progress) -> Iterator[DrawnItem]:
        """Yield the slices, with positions of the history. Raises what *progress* raises."""
        for item in self.slices.drawn_items(progress):
            if not isinstance(item, SliceEnd):
                self.resolution.draw()
            yield item

    @property
    def label(self) -> str:
        """The hart, the unit of the axis, and what is not drawn (at the beginning: see `Resolution`)."""
        least = self.resolution.least
        drawn = f", shorter than {least} summed up" if least > 1 else ""
        return f"hart {self.trace.hart} ({self.unit}{drawn})"

    def track_name(self, track: SliceTrack) -> str:
        """Return the name of a track: its task, and its context."""
        context = track.context
        if track.owner is not None:
            parts = [f"task {printable(track.owner)}"]
        else:
            parts = ["calls" if not track.task else f"calls, task {track.task}"]
        if context.scontext is not None:
            parts.append(self._threads.get(context.scontext) or f"context 0x{context.scontext:x}")
        if context.hcontext is not None:
            parts.append(f"guest 0x{context.hcontext:x}")
        return ", ".join([*parts, "virtual"] if context.virtual else parts)

    def missing(self) -> Iterator[MissingStretch]:
        """Yield the gaps, and the losses whose place is not known: those at the place where they were noticed."""
        for it in missing_parts(self.trace.history, self.trace.part):
            yield self._stretch(it.begin, it.end, it.event)

    def _stretch(self, begin: int, end: int, event: Event) -> MissingStretch:
        since = max(begin - 1, 0) if self.axis.timed else begin  # since the last instruction before it
        return MissingStretch(self.axis(since), self.axis(end), cause(event), event.as_gap)

    def traps(self) -> Iterator[Instant]:
        """Yield the traps; where there are too many, those that are near to each other as one."""
        return _spread(
            (Instant(self.axis(event.position), event.text) for event in self._events(EventKind.TRAP)), self._least()
        )

    def _events(self, kind: EventKind) -> Iterator[Event]:
        part = self.trace.part
        return (event for event in self.trace.history.events_between(part.start, part.stop) if event.kind is kind)

    def _least(self) -> int:
        """Return the least distance of two instants."""
        part = self.trace.part
        number = sum(1 for _ in self._events(EventKind.TRAP))
        length = self.axis(part.stop) - self.axis(part.start)
        return length // _INSTANTS if number > _INSTANTS else 0

    def trap_counts(self) -> Iterator[tuple[int, int]]:
        """Yield how many traps there were so far, at some places of the axis."""
        part = self.trace.part
        least, last = (self.axis(part.stop) - self.axis(part.start)) // _SAMPLES, None
        number = at = 0
        for number, event in enumerate(self._events(EventKind.TRAP), 1):
            at = self.axis(event.position)
            if last is None or at - last > least:
                yield at, number
                last = at
        if number and last != at:
            yield at, number

    def speeds(self) -> Iterator[tuple[int, float]]:
        """Yield how many instructions ran in a unit of time, from each place on; nothing without times."""
        positions, times = self.trace.history.times.arrays
        part = self.trace.part
        if not self.axis.timed:
            return
        begin, since = part.start, self.axis(part.start)
        least = max((self.axis(part.stop) - since) // _SAMPLES, 1)
        for position, time in zip(positions, times, strict=True):
            if position in part and time - since >= least:
                yield since, (position - begin) / (time - since)
                begin, since = position, time
        yield since, 0.0


def _spread(instants: Iterator[Instant], least: int) -> Iterator[Instant]:
    """Yield instants; those that are not farther from the first of them than *least* are drawn as one."""
    if not least:
        yield from instants
        return
    first, times = None, 0
    for instant in instants:
        if first is not None and instant.at - first.at <= least:
            times += 1
            continue
        if first is not None:
            yield Instant(first.at, first.text if times == 1 else f"{times} traps", times)
        first, times = instant, 1
    if first is not None:
        yield Instant(first.at, first.text if times == 1 else f"{times} traps", times)
