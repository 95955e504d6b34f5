"""A history that is taken away piece by piece while a decoder makes it, of a trace that need not end.

Numbers, texts and events are those of the whole history. What is kept between two pieces is what later messages may
still change or refer to: events that wait for where decoding goes on, the last entry, the last context, the last time.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.history import GAP_KINDS, Accounting, Event, EventKind, History, HistoryBuilder

WAITING_LIMIT = 1 << 14
"""Events that wait for where decoding goes on; of noise without an end, the oldest ones are not kept waiting longer."""

_REPETITIONS = 1 << 14  # different ones that are shared


class Piece(NamedTuple):
    """The positions *begin* to *end* - 1 of a history, which knows them by these numbers, and no earlier ones.

    events   that nothing can change any more; their positions may be earlier ones
    """

    history: History
    begin: int
    end: int
    events: Sequence[Event]

    @property
    def gaps(self) -> int:
        """How many of the positions are gaps."""
        return self.history.gaps  # it knows no earlier ones

    @property
    def instructions(self) -> int:
        """How many of the positions are instructions."""
        return self.end - self.begin - self.gaps


class ArrivingBuilder(HistoryBuilder):
    """Collects a history that is taken in pieces, in bounded memory as long as they are taken."""

    keeps_accesses = False

    def __init__(self) -> None:
        super().__init__()
        self._taken = 0
        self._reported = 0  # events that were looked at by `fresh`, of those that are there
        self.started = False
        """Whether there was a place where decoding could start."""

    def fresh(self) -> list[Event]:
        """The events since this was asked last, as far as they are known: their `next_pc` may be missing yet."""
        found = self._events[self._reported :]
        self._reported = len(self._events)
        return found

    def take(self, *, last: bool = False) -> Piece:
        """What came since the last piece. *last*: nothing comes any more, so all events are as they will be."""
        self.flush()
        self.started = self.started or self._length > 0 or any(event.next_pc is not None for event in self._events)
        settled = len(self._events) if last else self._settled()
        events = self._events[:settled]
        history = History(
            self._entries, self._index, self._length, self._gap_positions, self._events, _NOTHING, self._contexts,
            self._times,
        )  # fmt: skip
        piece = Piece(history, self._taken, self._length, events)
        self._taken = self._length
        self._forget(settled)
        return piece

    def _settled(self) -> int:
        """How many events are as they will be: an instruction came after them, and it is known how it went on."""
        behind = bisect_left(self._events, self._length, key=lambda event: event.position)
        if self._open_gap is not None:
            behind = min(behind, self._open_gap)
        return max(behind, len(self._events) - WAITING_LIMIT)

    def _forget(self, settled: int) -> None:
        """What a piece has must not change: new lists, not shorter ones."""
        if self._entries:
            self._entries = [self._entries[-1]]
            self._index = array("Q", [self._length - self._entries[0].count])
        self._events = self._events[settled:]
        self._reported = max(self._reported - settled, 0)
        if self._open_gap is not None:
            self._open_gap = max(self._open_gap - settled, 0)
        self._gap_positions = []
        floor = min([event.position for event in self._events[:1]] + [self._length])
        self._contexts = self._contexts[max(bisect_right(self._contexts, floor, key=itemgetter(0)) - 1, 0) :]
        self._times = self._times[max(bisect_right(self._times.arrays[0], floor) - 1, 0) :]
        if len(self._repetitions) > _REPETITIONS:
            self._repetitions.clear()


def is_loss(event: Event) -> bool:
    """Whether something that ran is missing there, or bytes of the trace are."""
    return event.kind in GAP_KINDS and event.kind is not EventKind.TRACE_OFF


_NOTHING = Accounting(0, 0, 0, 0)
