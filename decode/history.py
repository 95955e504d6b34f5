"""What ran: one history for every trace format, stored per run and not per instruction.

Decoders append *paths*, which are immutable and shared: a message seen a million times appends the same object a
million times, and a run of equal ones becomes one entry. Between the instructions stand *events*, and *gaps*, which
take one position each so that a listing numbers them the way gdb's record history does.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, chain, islice
from operator import attrgetter, is_, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.decode.event_wording import words
from rvtrace_gdb.decode.events import GAP_KINDS, Context, EventKind, Fact, Loss, Start, Stop, Trap
from rvtrace_gdb.decode.memory_access import Access
from rvtrace_gdb.decode.times import Times

__all__ = [
    "GAP", "GAP_KINDS", "Accounting", "Context", "Event", "EventKind", "History", "HistoryBuilder", "Path", "RepeatPath"
]  # fmt: skip

if TYPE_CHECKING:
    from rvtrace_gdb.decode.tandem.decoder import Tandem

GAP = -1
"""The pc of a gap position."""

_STRIDE = 16  # entries per indexed position: a position is found by bisection, then at most this many steps
_REPEATED = re.compile(rb"\x01{7,}")  # 8 equal entries in a row; fewer are cheaper as they are
_PIECE = 1024  # addresses; repetitions are read in pieces of about this size
_COUNT = attrgetter("count")


class Path:
    """Consecutive instructions: *parts* are tuples of addresses, or paths. Immutable, meant to be shared."""

    __slots__ = ("_ends", "count", "parts")

    def __init__(self, parts: Sequence["tuple[int, ...] | Path | RepeatPath"]) -> None:
        self.parts = tuple(parts)
        self.count = sum(map(len, self.parts))
        self._ends: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return self.count

    def pc(self, k: int) -> int:
        """The address of instruction *k*, counted from 0."""
        i = bisect_right(self._index(), k)
        part = self.parts[i]
        k -= self._index()[i - 1] if i else 0
        return part[k] if isinstance(part, tuple) else part.pc(k)

    @property
    def last(self) -> int:
        """The address of the last instruction."""
        part = self.parts[-1]
        return part[-1] if isinstance(part, tuple) else part.last

    def chunks(self, start: int, stop: int) -> Iterator[tuple[int, ...]]:
        """The addresses of instructions *start* to *stop* - 1, in pieces."""
        if start == 0 and stop == self.count:
            for part in self.parts:
                if isinstance(part, tuple):
                    yield part
                else:
                    yield from part.chunks(0, part.count)
            return
        i = bisect_right(self._index(), start) if start else 0
        position = self._index()[i - 1] if i else 0
        for part in self.parts[i:]:
            if position >= stop:
                return
            first, last = max(start - position, 0), min(stop - position, len(part))
            if isinstance(part, tuple):
                yield part[first:last]
            else:
                yield from part.chunks(first, last)
            position += len(part)

    def _index(self) -> tuple[int, ...]:
        if self._ends is None:
            self._ends = tuple(accumulate(map(len, self.parts)))
        return self._ends


class RepeatPath:
    """The same path *times* times."""

    __slots__ = ("count", "path", "times")

    def __init__(self, path: "Path | RepeatPath", times: int) -> None:
        self.path = path
        self.times = times
        self.count: int = path.count * times

    def __len__(self) -> int:
        return self.count

    def pc(self, k: int) -> int:
        """The address of instruction *k*, counted from 0."""
        return self.path.pc(k % self.path.count)

    @property
    def last(self) -> int:
        """The address of the last instruction."""
        return self.path.last

    def chunks(self, start: int, stop: int) -> Iterator[tuple[int, ...]]:
        """The addresses of instructions *start* to *stop* - 1, in pieces."""
        unit = self.path
        if unit.count < _PIECE:  # one-instruction loops would come in one-instruction pieces
            unit = Path([tuple(chain.from_iterable(unit.chunks(0, unit.count))) * (_PIECE // unit.count)])
        while start < stop:
            first = start % unit.count
            last = min(unit.count, first + stop - start)
            yield from unit.chunks(first, last)
            start += last - first


_GAP_PATH = Path(((GAP,),))


class Event(NamedTuple):
    """Something between instruction *position* - 1 and *position*.

    *offset*: the byte of the trace it comes from. *last_pc*: the last instruction before it, *next_pc* the first
    after it; None where unknown.

    *end*: of what can be the cause of a gap, the byte at which decoding went on, or the next such cause was found: from
    *offset* to there the trace does not tell what ran. None: up to its end.
    """

    position: int
    kind: EventKind
    offset: int
    fact: Fact
    last_pc: int | None = None
    next_pc: int | None = None
    end: int | None = None

    @property
    def text(self) -> str:
        """What happened, in words."""
        return words(self.fact)

    @property
    def as_gap(self) -> str:
        """What a listing shows in place of what ran: why it is not known, and where in the trace that is said."""
        return f"{self.text}; trace byte {self.offset:#x}"


class Accounting(NamedTuple):
    """Bytes of the trace: decoded + idle + skipped == total, always."""

    total: int
    decoded: int
    idle: int
    skipped: int


class History:
    """Everything that ran, oldest first. Positions 0 to len - 1 are instructions and gaps.

    events      what happened between them, in order; *gap_positions*: where the gaps are, in order
    contexts    (position from which on, context), in order; nothing before the first is known
    times       see `Times`; empty without timestamps in the trace
    accounting  what became of the bytes
    accesses    to memory and CSRs, in order, where the trace has them
    shadow      registers and memory at every position, where the trace has them
    """

    def __init__(
        self,
        entries: "list[Path | RepeatPath]",
        index: "array[int]",
        length: int,
        gap_positions: Collection[int],
        events: Sequence[Event],
        accounting: Accounting,
        contexts: Sequence[tuple[int, Context]] = (),
        times: Times | None = None,
    ) -> None:
        self._entries = entries
        self._index = index  # position of every _STRIDE-th entry
        self._length = length
        self.events = events
        self.accounting = accounting
        self.contexts = contexts
        self.times = times or Times(array("Q"), array("Q"))
        self.accesses: Sequence[Access] = ()
        self.shadow: Tandem | None = None
        self.gap_positions: Sequence[int] = sorted(gap_positions)

    def __len__(self) -> int:
        return self._length

    @property
    def gaps(self) -> int:
        """How many positions are gaps."""
        return len(self.gap_positions)

    @property
    def instructions(self) -> int:
        """How many positions are instructions."""
        return self._length - self.gaps

    @property
    def entries(self) -> "Sequence[Path | RepeatPath]":
        """What the history is stored as, in order: few objects, most of them there many times."""
        return self._entries

    def position_of(self, entry: int) -> int:
        """The position of the first instruction of the entry with this index; of the end, behind the last one."""
        if entry >= len(self._entries):
            return self._length
        block = entry // _STRIDE
        return self._index[block] + sum(map(len, self._entries[block * _STRIDE : entry]))

    def pc(self, i: int) -> int:
        """The address at position *i*, GAP for a gap. Raises IndexError."""
        if not 0 <= i < self._length:
            raise IndexError(f"position {i} of a history of {self._length}")
        entry, position = self.entry_at(i)
        return self._entries[entry].pc(i - position)

    def pcs(self, start: int = 0, stop: int | None = None) -> Iterator[int]:
        """The addresses at positions *start* to *stop* - 1, GAP for gaps."""
        stop = self._length if stop is None else min(stop, self._length)
        return chain.from_iterable(self._chunks(max(start, 0), stop))

    def pieces(self, start: int, stop: int) -> "Iterator[tuple[Path | RepeatPath, int, int]]":
        """What positions *start* to *stop* - 1 consist of: (entry, first, last + 1), counted from the entry's start.

        Entries in the middle come once each, and in any order.
        """
        if start >= stop:
            return
        (first, position), (last, end) = self.entry_at(start), self.entry_at(stop - 1)
        if first == last:
            yield self._entries[first], start - position, stop - position
            return
        yield self._entries[first], start - position, self._entries[first].count
        middle = self._entries[first + 1 : last]
        for path in dict(zip(map(id, middle), middle, strict=True)).values():
            yield path, 0, path.count
        yield self._entries[last], 0, stop - end

    def events_between(self, start: int, stop: int) -> Sequence[Event]:
        """The events with start <= position < stop."""
        first = bisect_left(self.events, start, key=lambda event: event.position)
        last = bisect_left(self.events, stop, key=lambda event: event.position)
        return self.events[first:last]

    def context_at(self, i: int) -> Context:
        """Which program and privilege mode ran at position *i*, as far as it was reported."""
        found = bisect_right(self.contexts, i, key=itemgetter(0)) - 1
        return self.contexts[found][1] if found >= 0 else Context()

    def time_at(self, i: int) -> int | None:
        """The last time reported at or before position *i*, in ticks of the timestamp unit."""
        return self.times.at(i)

    def gap_at(self, i: int) -> Event:
        """The cause of the gap at position *i*. Raises LookupError where there is no gap."""
        if 0 <= i < self._length and self.pc(i) == GAP:
            for event in self.events_between(i, i + 1):
                if event.kind in GAP_KINDS and not (isinstance(event.fact, Loss) and not event.fact.has_place):
                    return event
        raise LookupError(f"no gap at position {i}")

    def entry_at(self, i: int) -> tuple[int, int]:
        """Which entry holds position *i*, of those there are, and the entry's own position."""
        block = bisect_right(self._index, i) - 1
        entry, position = block * _STRIDE, self._index[block]
        while position + self._entries[entry].count <= i:
            position += self._entries[entry].count
            entry += 1
        return entry, position

    def _chunks(self, start: int, stop: int) -> Iterator[tuple[int, ...]]:
        if start >= stop:
            return
        entry, position = self.entry_at(start)
        while position < stop:
            path = self._entries[entry]
            yield from path.chunks(max(start - position, 0), min(stop - position, path.count))
            position += path.count
            entry += 1


class HistoryBuilder:
    """Collects a history while a decoder runs. `append` is the hot path."""

    keeps_accesses = True
    """Whether the history is to have the accesses of the trace."""

    def __init__(self) -> None:
        self._pending: list[Path | RepeatPath] = []
        self.append = self._pending.append
        """append(path): these instructions ran next. O(1)."""
        self._entries: list[Path | RepeatPath] = []
        self._repetitions: dict[tuple[Path | RepeatPath, int], RepeatPath] = {}
        self._index = array("Q")
        self._length = 0
        self._gap_positions: list[int] = []
        self._events: list[Event] = []
        self._open_gap: int | None = None  # events from here on wait for their next_pc
        self._contexts: list[tuple[int, Context]] = []
        self._marks: list[int] = []  # how many paths were pending at each of
        self._stamps: list[int] = []  # the times not stored yet
        self.in_place = self._pending, self._marks.append, self._stamps.append
        """(pending, mark, stamp), for a loop that cannot afford `time(now)`: mark(len(pending)), stamp(now)."""
        self._times = Times(array("Q"), array("Q"))

    @property
    def position(self) -> int:
        """The position the next instruction will get."""
        self.flush()
        return self._length

    @property
    def resumed_at(self) -> int:
        """The position behind the last gap so far, 0 without any."""
        return self._gap_positions[-1] + 1 if self._gap_positions else 0

    @property
    def last_pc(self) -> int | None:
        """The last instruction so far, None at the start and after a gap."""
        self.flush()
        if not self._entries or self._entries[-1] is _GAP_PATH:
            return None
        return self._entries[-1].last

    def event(
        self, kind: EventKind, offset: int, fact: Fact, *, last_pc: int | None = None, next_pc: int | None = None
    ) -> None:
        """Records an event before the next instruction. *offset*: byte of the trace.

        TRACE_OFF may turn out to be the cause of a gap: it gets its addresses like one.
        """
        if kind is EventKind.TRACE_OFF:
            last_pc = self.last_pc
            self._await_resumption(offset)
        self._events.append(Event(self.position, kind, offset, fact, last_pc, next_pc))

    def missing(self, offset: int, end: int, fact: Loss) -> None:
        """Something is missing before this place, of bytes *offset* to *end*, and nobody knows where: no gap."""
        self._events.append(Event(self.position, EventKind.LOSS, offset, fact, end=end))

    def time(self, now: int) -> None:
        """The time at this moment, in ticks. O(1)."""
        self._marks.append(len(self._pending))
        self._stamps.append(now)

    def context(self, context: Context, after: int = 0) -> None:
        """What runs next, but for so many instructions, runs in this context."""
        position = self.position + after
        if self._contexts and self._contexts[-1][0] == position:
            self._contexts.pop()
        self._contexts.append((position, context))

    def gap(self, kind: EventKind, offset: int, fact: Fact) -> None:
        """Records a loss. It takes a position of its own when instructions precede it; gaps in a row are one."""
        last_pc = self.last_pc
        at_gap = bool(self._entries) and self._entries[-1] is _GAP_PATH
        position = self._length - 1 if at_gap else self._length
        if self._events:
            position = max(position, self._events[-1].position)  # a note may have come after the gap
        self._await_resumption(offset)
        self._events.append(Event(position, kind, offset, fact, last_pc))
        self.add_gap()

    def add_gap(self, resumption: Start | Trap | None = None) -> None:
        """A gap position alone, unless nothing ran since the last one: its cause is an event already recorded here.

        *resumption*: how it went on, which becomes part of a cause that is a stop.
        """
        self.flush()
        last = self._events[-1] if self._events else None
        if resumption is not None and last is not None and isinstance(last.fact, Stop):
            self._events[-1] = last._replace(fact=last.fact._replace(then=resumption))
        if self._entries and self._entries[-1] is not _GAP_PATH:
            self._gap_positions.append(self._length)
            self._store([_GAP_PATH])

    def resume(self, pc: int, offset: int) -> None:
        """Decoding goes on at *pc*, and at byte *offset* of the trace: what the gap's events waited for."""
        if self._open_gap is not None:
            self._end_cause(offset)
            for i in range(self._open_gap, len(self._events)):
                if self._events[i].kind in GAP_KINDS:
                    self._events[i] = self._events[i]._replace(next_pc=pc)
            self._open_gap = None

    def flush(self) -> None:
        """Moves what was appended to the compact store. Cheap; a decoder calls it once per batch."""
        pending = self._pending
        if self._marks:
            self._store_times()
        same_as_next = bytes(map(is_, pending, islice(pending, 1, None)))
        stored = 0
        for run in _REPEATED.finditer(same_as_next):
            self._store(pending[stored : run.start()])
            self._store([self._repeated(pending[run.start()], run.end() - run.start() + 1)])
            stored = run.end() + 1
        self._store(pending[stored:])
        pending.clear()

    def finish(self, accounting: Accounting) -> History:
        """The history of everything collected."""
        self.flush()
        return History(
            self._entries,
            self._index,
            self._length,
            self._gap_positions,
            self._events,
            accounting,
            self._contexts,
            self._times,
        )

    def _repeated(self, path: Path | RepeatPath, times: int) -> RepeatPath:
        """The same object each time: who looks at each different entry once has fewer of them to look at."""
        known = self._repetitions.get((path, times))
        if known is None:
            known = self._repetitions[path, times] = RepeatPath(path, times)
        return known

    def _store_times(self) -> None:
        """Of several times at one place the last one stays."""
        positions = list(accumulate(map(_COUNT, self._pending), initial=self._length))
        self._times.extend([positions[mark] for mark in self._marks], self._stamps)
        self._marks.clear()
        self._stamps.clear()

    def _await_resumption(self, offset: int) -> None:
        """A cause of a gap was found at byte *offset*."""
        if self._open_gap is None:
            self._open_gap = len(self._events)
        else:
            self._end_cause(offset)

    def _end_cause(self, offset: int) -> None:
        """The last cause of the gap that is open reaches up to byte *offset*."""
        for i in range(len(self._events) - 1, (self._open_gap or 0) - 1, -1):
            if self._events[i].kind in GAP_KINDS:
                self._events[i] = self._events[i]._replace(end=max(offset, self._events[i].offset))
                break

    def _store(self, entries: list[Path | RepeatPath]) -> None:
        positions = list(accumulate(map(_COUNT, entries), initial=self._length))
        self._length = positions.pop()
        self._index.extend(positions[-len(self._entries) % _STRIDE :: _STRIDE])
        self._entries += entries
