"""A history of which only what is looked at is decoded, by the index of its trace (`trace_index`).

`IndexedHistory` knows how long it is and what may be wrong. The rows of a place come from a window: the trace is
decoded from the place of the index before it, with the numbers it has there, as far as needed. Everything else that is
asked of it has the whole trace decoded, once; from then on it is that history.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.history.checkpoints import BadCheckpoint
from rvtrace_gdb.decode.history.events import Accounting, EventKind, Note, NoteCause
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.session.formats.format import PlacedDecoder
from rvtrace_gdb.session.formats.long_traces.trace_index import IndexedPlace, SourceFacts, TraceIndex
from rvtrace_gdb.support.errors import Progress, silent

_PIECE = 1 << 16  # bytes decoded between two looks at what there is
_BACK = NoteCause.TIME_BACK
_WINDOWS = 4  # that are kept
_MARGIN = 2  # positions around a window: what happens at its edges depends on them


class IndexedTrace:
    """A trace with its index. *make*: returns a decoder at its beginning. *complete*: decodes it as a whole."""

    def __init__(
        self,
        data: bytes,
        index: TraceIndex,
        make: Callable[[], PlacedDecoder],
        complete: Callable[[Progress], SourceHistories],
    ) -> None:
        self.index = index
        self.progress: Progress = silent
        """Shows what is decoded later."""
        self._data, self._make, self._complete = data, make, complete
        self._windows: OrderedDict[tuple[int, int, int], History] = OrderedDict()

    def histories(self) -> SourceHistories:
        """Return the histories of all sources."""
        found = {source: IndexedHistory(self, source, facts) for source, facts in self.index.sources.items()}
        return SourceHistories(dict(found), self.index.accounting)

    def complete_history(self, source: int) -> History:
        """Decode everything. Raises what the progress raises."""
        self._windows.clear()
        return self._complete(self.progress).histories[source]

    def window(self, source: int, start: int, stop: int) -> History:
        """Return a history of a source that has the positions *start* to *stop* - 1. Raises BadCheckpoint, and what the
        progress raises.
        """
        for key, window in self._windows.items():
            if key[0] == source and key[1] <= start - _MARGIN and stop <= key[2]:
                self._windows.move_to_end(key)
                return window
        place = self._place_before(source, start - _MARGIN)
        begin = 0 if place is None else place.positions[source]
        found, end = self._decode(source, place, stop)
        self._windows[source, begin if place else -_MARGIN, end] = found
        if len(self._windows) > _WINDOWS:
            self._windows.popitem(last=False)
        return found

    def _place_before(self, source: int, position: int) -> IndexedPlace | None:
        """Return the last place that is not after a position, None for the beginning."""
        before = None
        for place in self.index.places:
            if place.positions.get(source, 0) > position:
                break
            before = place if source in place.positions else None
        return before

    def _decode(self, source: int, place: IndexedPlace | None, stop: int) -> tuple[History, int]:
        """Decode from a place on, at least to a position; return the history and up to where it is complete."""
        decoder = self._make()
        offset = 0
        if place is not None:
            try:
                decoder.go_on_from(self.index.checkpoint(place))
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise BadCheckpoint(str(error)) from None
            offset = place.offset
        for at in range(offset, len(self._data), _PIECE):
            self.progress("decoding", at, len(self._data))
            decoder.feed(self._data[at : at + _PIECE])
            builder = decoder.builder_of(source)
            if builder is not None and builder.settled > stop + _MARGIN:
                settled = builder.settled - _MARGIN
                return builder.finish(Accounting(0, 0, 0, 0)), settled
        found = decoder.finish().histories[source]
        return found, len(found) + 1


_WHEN_COMPLETE = frozenset({
    "_entries", "_index", "events", "contexts", "times", "gap_positions",
})  # fmt: skip


class IndexedHistory(History):
    """The history of a source of a trace with an index, see above."""

    def __init__(self, trace: IndexedTrace, source: int, facts: SourceFacts) -> None:
        self._trace: IndexedTrace | None = trace
        self._source, self._facts = source, facts
        self._length = facts.length
        self.accounting = facts.accounting
        self.accesses = ()  # a trace with accesses, or with code, has no index
        self.code_varies = False
        self.is_complete = False

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the complete history."""
        if name not in _WHEN_COMPLETE:
            raise AttributeError(name)
        return getattr(self._completed(), name)

    def _completed(self) -> Self:
        trace = self._trace
        if trace is not None:
            vars(self).update(vars(trace.complete_history(self._source)))
            self._trace, self.is_complete = None, True
        return self

    @property
    def gaps(self) -> int:
        return self._facts.gaps

    @property
    def doubtful_events(self) -> Sequence[Event]:
        return super().doubtful_events if self.is_complete else self._facts.problems

    @property
    def kind_counts(self) -> Mapping[EventKind, int]:
        return super().kind_counts if self.is_complete else self._facts.counts

    def window(self, start: int, stop: int) -> History:
        trace = self._trace
        if trace is None or not (0 <= start <= stop):
            return self
        try:
            return trace.window(self._source, start, stop)
        except BadCheckpoint:  # of a file that has changed since it was opened: all is decoded
            return self._completed()

    def with_events(self, events: Sequence[Event]) -> Self:
        self._completed()
        return super().with_events(events)

    def positions_of_times(self, first: int, last: int) -> tuple[int, int]:
        trace, notes = self._trace, [it.fact for it in self._facts.problems if isinstance(it.fact, Note)]
        if trace is None or any(note.cause is _BACK for note in notes):
            return super().positions_of_times(first, last)
        known = [it.times[self._source] for it in trace.index.places if self._source in it.times]
        if any(earlier > later for earlier, later in pairwise(known)):  # back, where tracing began anew
            return self._completed().positions_of_times(first, last)
        begin, end = (self._around_time(trace, time) for time in (first, last))
        if begin is None or end is None:
            return self._completed().positions_of_times(first, last)
        return begin.positions_of_times(first, last)[0], end.positions_of_times(first, last)[1]

    def _around_time(self, trace: IndexedTrace, time: int) -> History | None:
        """Return a window with the last time up to *time* and the first one after it; None if it cannot be known."""
        start, stop = 0, self._length
        for place in trace.index.places:
            now = place.times.get(self._source)
            if now is not None and now > time:
                stop = place.positions[self._source]
                break
            start = place.positions.get(self._source, 0)
        found = self.window(start, stop)
        return found if len(found.times) and not self.is_complete else None

    # What asks for one place

    def _around(self, i: int) -> History:
        return self.window(max(min(i, self._length) - 1, 0), max(min(i + 1, self._length), 0))

    def pc(self, i: int) -> int:
        if self.is_complete or not 0 <= i < self._length:
            return super().pc(i)
        return self._around(i).pc(i)

    def pcs(self, start: int = 0, stop: int | None = None) -> Iterator[int]:
        if self.is_complete or stop is None:
            return super().pcs(start, stop)
        return self.window(max(start, 0), min(stop, self._length)).pcs(start, stop)

    def events_between(self, start: int, stop: int) -> Sequence[Event]:
        if self.is_complete or not 0 <= start <= stop:
            return super().events_between(start, stop)
        return self.window(start, stop).events_between(start, stop)

    def context_at(self, i: int) -> ProgramContext:
        return super().context_at(i) if self.is_complete else self._around(i).context_at(i)

    def time_at(self, i: int) -> int | None:
        return super().time_at(i) if self.is_complete else self._around(i).time_at(i)
