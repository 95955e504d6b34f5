"""What ran: one history for every trace format, stored per run and not per instruction.

Decoders append *paths*, which are immutable and shared: a message seen a million times appends the same object a
million times, and a run of equal ones becomes one entry. Between the instructions are *events*, and *gaps*, which take
one position each so that a listing numbers them the way gdb's record history does. For programs, the fact of an event
has named fields (`event_fields`): JSON rows and MI results have the same (docs/json.md).

A history knows the time at some of its positions (`Times`). By these times the histories of several harts can be read
as one (`hart_order.py`): what lies between two known times is taken to run at the earlier one, so the pieces are as
fine as the timestamps of the trace. Times of different harts can be compared when their encoders share a clock, as the
standard suggests (N-Trace 1.0, "Timestamp Reporting").
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from itertools import accumulate, chain
from operator import attrgetter, itemgetter, lt
from typing import NamedTuple, Self, overload

from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import (
    GAP_KINDS,
    Accounting,
    EventKind,
    Fact,
    Loss,
    Note,
    NoteCause,
)
from rvtrace_gdb.decode.history.hart_events import HartEvent
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import MemoryAccess

_TIME_MASK = (1 << 64) - 1


class Times(Sequence[tuple[int, int]]):
    """(position, time) of each known time, in rising order of positions; a time is that before the instruction at its
    position.
    """

    def __init__(self, positions: "array[int]", times: "array[int]") -> None:
        self._positions = positions
        self._times = times

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, i: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, i: slice) -> "Times": ...
    def __getitem__(self, i: int | slice) -> "tuple[int, int] | Times":
        if isinstance(i, slice):
            return Times(self._positions[i], self._times[i])
        return self._positions[i], self._times[i]

    @property
    def arrays(self) -> "tuple[array[int], array[int]]":
        """Return the positions, and the times at them. Callers must not change the arrays."""
        return self._positions, self._times

    def extend(self, positions: Sequence[int], times: Sequence[int]) -> None:
        """Append times (modulo 2**64); of several at one position, the last one stays."""
        before = self._positions[-1] if self._positions else -1
        if not all(map(lt, chain([before], positions), positions)):
            last = dict(zip(positions, times, strict=True))
            if before in last:
                self._times[-1] = last.pop(before) & _TIME_MASK
            positions, times = list(last), list(last.values())
        self._positions.extend(positions)
        try:
            self._times.extend(array("Q", times))
        except OverflowError:
            self._times.extend(time & _TIME_MASK for time in times)

    def extend_arrays(self, positions: "array[int]", times: "array[int]") -> None:
        """Append times at rising positions, of which the first one may be the last one so far: its time is replaced."""
        if positions and self._positions and self._positions[-1] == positions[0]:
            self._positions.pop()
            self._times.pop()
        self._positions.extend(positions)
        self._times.extend(times)

    def time_at(self, position: int) -> int | None:
        """Return the last time known at or before *position*, None without one."""
        i = bisect_right(self._positions, position) - 1
        return self._times[i] if i >= 0 else None


GAP = -1
"""The pc of a gap position."""

INDEX_STRIDE = 16  # entries per indexed position: a position is found by bisection, then at most this many steps


_PIECE = 1024  # addresses; repetitions are read in pieces of about this size


NO_CODE: Mapping[int, bytes] = {}


class Path:
    """Consecutive instructions: *parts* are tuples of addresses, or paths. Immutable, meant to be shared.

    code  the instructions, by address, that are not known to be the program's: the trace has others there
    """

    __slots__ = ("_ends", "code", "count", "parts")

    def __init__(self, parts: Sequence["PathPart"]) -> None:
        self.parts = tuple(parts)
        self.count = sum(map(len, self.parts))
        self._ends: tuple[int, ...] | None = None
        self.code: Mapping[int, bytes] = NO_CODE

    def __len__(self) -> int:
        return self.count

    def pc(self, k: int) -> int:
        """Return the address of instruction *k*, counted from 0."""
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
        """Yield the addresses of instructions *start* to *stop* - 1, in pieces."""
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
    """The same path, repeated *times* times."""

    __slots__ = ("count", "path", "times")

    def __init__(self, path: "AnyPath", times: int) -> None:
        self.path = path
        self.times = times
        self.count: int = path.count * times

    @property
    def code(self) -> Mapping[int, bytes]:
        """Return the instructions of the path that are not the program's, see `Path`."""
        return self.path.code

    def __len__(self) -> int:
        return self.count

    def pc(self, k: int) -> int:
        """Return the address of instruction *k*, counted from 0."""
        return self.path.pc(k % self.path.count)

    @property
    def last(self) -> int:
        """The address of the last instruction."""
        return self.path.last

    def chunks(self, start: int, stop: int) -> Iterator[tuple[int, ...]]:
        """Yield the addresses of instructions *start* to *stop* - 1, in pieces."""
        unit = self.path
        if unit.count < _PIECE:  # one-instruction loops would come in one-instruction pieces
            unit = Path([tuple(chain.from_iterable(unit.chunks(0, unit.count))) * (_PIECE // unit.count)])
        while start < stop:
            first = start % unit.count
            last = min(unit.count, first + stop - start)
            yield from unit.chunks(first, last)
            start += last - first


AnyPath = Path | RepeatPath
"""An entry of a history."""
PathPart = tuple[int, ...] | AnyPath
"""A part of a path: the addresses of consecutive instructions, or a path."""

GAP_PATH = Path(((GAP,),))


_PROBLEMS = (EventKind.MISMATCH, EventKind.LOSS)
_DOUBTS = (NoteCause.TIME_BACK, NoteCause.LARGE_COUNT, NoteCause.FIELD_TOO_MANY)


class Event(NamedTuple):
    """Something that happened between instruction *position* - 1 and *position*.

    *offset* is the byte of the trace it comes from, NO_OFFSET if none reports it. *last_pc* is the last instruction
    before it, *next_pc* the first after it; None where unknown.

    *end*, for an event that can be the cause of a gap, is the byte at which decoding resumed, or at which the next such
    cause was found: from *offset* to there, the trace does not show what ran. None: up to the end of the trace.

    *time*, of a HART_EVENT, is the time the encoder gives it, None without one: many of them are at one position.
    """

    position: int
    kind: EventKind
    offset: int
    fact: Fact
    last_pc: int | None = None
    next_pc: int | None = None
    end: int | None = None
    time: int | None = None

    @property
    def kind_name(self) -> str:
        """The name of the kind for programs; of a HART_EVENT, that of its own kind."""
        return self.fact.kind.value if isinstance(self.fact, HartEvent) else self.kind.value.replace(" ", "-")

    @property
    def text(self) -> str:
        """The text of the event."""
        return fact_text(self.fact)

    @property
    def is_loss(self) -> bool:
        """Whether the event means that instructions or bytes of the trace are missing."""
        return self.kind in GAP_KINDS and self.kind is not EventKind.TRACE_OFF

    @property
    def is_problem(self) -> bool:
        """Whether the event says that something may be wrong with the trace, its program or its options."""
        fact = self.fact
        return self.kind in _PROBLEMS or (isinstance(fact, Note) and fact.cause in _DOUBTS)

    @property
    def as_gap(self) -> str:
        """Return the text that a listing shows in place of what ran: why that is unknown, and the bytes of the trace
        that say so.
        """
        return f"{self.text}; trace byte {self.offset:#x}"


class History:
    """Everything that ran, oldest first. Positions 0 to len - 1 are instructions and gaps.

    events      what happened between them, in order; *gap_positions*: where the gaps are, in order
    contexts    (first position, context), in order; the context before the first one is unknown
    times       the known times; empty without timestamps in the trace
    accounting  what became of the bytes
    accesses    to memory and CSRs, in order, if the trace has them
    """

    is_complete = True
    """Whether all of it was decoded; else that happens when something asks for more than a part."""
    has_code = False
    """Whether the trace has the instructions themselves, so that the program's, or the target's, need not be theirs."""
    has_all_accesses = False
    """Whether the trace always has all accesses to memory and CSRs."""

    def __init__(
        self,
        entries: "list[AnyPath]",
        index: "array[int]",
        length: int,
        gap_positions: Collection[int],
        events: Sequence[Event],
        accounting: Accounting,
        contexts: Sequence[tuple[int, ProgramContext]] = (),
        times: Times | None = None,
    ) -> None:
        self._entries = entries
        self._index = index  # position of every entry of INDEX_STRIDE
        self._length = length
        self.events = events
        self.accounting = accounting
        self.contexts = contexts
        self.times = times or Times(array("Q"), array("Q"))
        self.accesses: Sequence[MemoryAccess] = ()
        self.code_varies = False
        """Whether `code` may return anything."""
        self.gap_positions: Sequence[int] = sorted(gap_positions)

    @property
    def doubtful_events(self) -> Sequence[Event]:
        """The events that say that something may be wrong with the trace, its program or its options."""
        return [event for event in self.events if event.is_problem]

    @property
    def kind_counts(self) -> Mapping[EventKind, int]:
        """The number of events of each kind."""
        return Counter(event.kind for event in self.events)

    def window(self, start: int, stop: int) -> "History":
        """Return a history that has the rows of positions *start* to *stop* - 1, and what happened there: with the same
        numbers, and perhaps nothing else.
        """
        return self

    def with_events(self, events: Sequence[Event]) -> Self:
        """Return this history with more events, each at its place behind those that are there."""
        found = copy(self)
        found.events = sorted([*self.events, *events], key=attrgetter("position"))
        return found

    def __len__(self) -> int:
        return self._length

    @property
    def gaps(self) -> int:
        """The number of gaps."""
        return len(self.gap_positions)

    @property
    def instructions(self) -> int:
        """The number of instructions."""
        return self._length - self.gaps

    @property
    def entries(self) -> "Sequence[AnyPath]":
        """The entries in which the history is stored, in order: few objects, most of which occur many times."""
        return self._entries

    def position_of(self, entry: int) -> int:
        """Return the position of the first instruction of the entry with this index; for the index after the last, the
        end.
        """
        if entry >= len(self._entries):
            return self._length
        block = entry // INDEX_STRIDE
        return self._index[block] + sum(map(len, self._entries[block * INDEX_STRIDE : entry]))

    def pc(self, i: int) -> int:
        """Return the address at position *i*, GAP for a gap. Raises IndexError."""
        if not 0 <= i < self._length:
            raise IndexError(f"position {i} of a history of {self._length}")
        entry, position = self.entry_at(i)
        return self._entries[entry].pc(i - position)

    def pcs(self, start: int = 0, stop: int | None = None) -> Iterator[int]:
        """Yield the addresses at positions *start* to *stop* - 1, GAP for gaps."""
        stop = self._length if stop is None else min(stop, self._length)
        return chain.from_iterable(self._chunks(max(start, 0), stop))

    def code(self, start: int, stop: int) -> dict[int, bytes]:
        """Return, by position, the instructions at positions *start* to *stop* - 1 that need not be the program's."""
        found: dict[int, bytes] = {}
        if not self.code_varies or start >= stop:
            return found
        entry, begin = self.entry_at(start)
        while begin < stop:
            path = self._entries[entry]
            if path.code:
                for position in range(max(start, begin), min(stop, begin + path.count)):
                    code = path.code.get(path.pc(position - begin))
                    if code is not None:
                        found[position] = code
            begin += path.count
            entry += 1
        return found

    def pieces(self, start: int, stop: int) -> "Iterator[tuple[AnyPath, int, int]]":
        """Yield what positions *start* to *stop* - 1 consist of: (entry, first, last + 1), counted from the entry's
        start.

        Each different entry between the first and the last one comes once, in any order.
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
        """Return the events with start <= position < stop."""
        first = bisect_left(self.events, start, key=lambda event: event.position)
        last = bisect_left(self.events, stop, key=lambda event: event.position)
        return self.events[first:last]

    @property
    def program_contexts(self) -> list[ProgramContext]:
        """The contexts in which instructions ran, each once: before the first that the trace reports, one of which
        nothing is known.
        """
        before = [] if self.contexts and self.contexts[0][0] <= 0 else [ProgramContext()]
        return list(dict.fromkeys([*before, *(context for _, context in self.contexts)]))

    def context_at(self, i: int) -> ProgramContext:
        """Return the program and the privilege mode at position *i*, as far as the trace reported them."""
        found = bisect_right(self.contexts, i, key=itemgetter(0)) - 1
        return self.contexts[found][1] if found >= 0 else ProgramContext()

    def time_at(self, i: int) -> int | None:
        """Return the last time reported at or before position *i*, in ticks of the timestamp unit; None without one."""
        return self.times.time_at(i)

    def time_of(self, event: Event) -> int | None:
        """Return the time of an event, in ticks: its own, or the last one at or before its position; None without
        one.
        """
        return event.time if event.kind is EventKind.HART_EVENT else self.time_at(event.position)

    def positions_of_times(self, first: int, last: int) -> tuple[int, int]:
        """Return what ran from time *first* to time *last*: the first position, and the one after the last. What lies
        between two known times ran at the earlier one. Raises LookupError if no time is known.
        """
        positions, times = self.times.arrays
        if not times:
            raise LookupError("no time is known")
        at = next((i for i, time in enumerate(times) if time > first), len(times))
        end = next((i for i in range(at, len(times)) if times[i] > last), len(times))
        return positions[at - 1] if at else 0, positions[end] if end < len(times) else self._length

    def gap_at(self, i: int) -> Event:
        """Return the cause of the gap at position *i*. Raises LookupError if there is no gap."""
        if 0 <= i < self._length and self.pc(i) == GAP:
            for event in self.events_between(i, i + 1):
                if event.kind in GAP_KINDS and not (isinstance(event.fact, Loss) and not event.fact.has_place):
                    return event
        raise LookupError(f"no gap at position {i}")

    def entry_at(self, i: int) -> tuple[int, int]:
        """Return the index of the entry that holds position *i*, and the position at which the entry begins."""
        block = bisect_right(self._index, i) - 1
        entry, position = block * INDEX_STRIDE, self._index[block]
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
