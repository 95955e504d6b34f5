"""The builders with which decoders make histories.

`HistoryBuilder` collects a whole history. `IncrementalBuilder` collects one that is taken away in pieces while a
decoder runs, for a trace that need not end. Positions, texts and events of the pieces are those of the whole history.
What it keeps between two pieces is what later messages may still change or refer to: events that wait for the address
at which decoding resumes, the last entry, the last context, the last time.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from copy import copy
from itertools import accumulate, islice
from operator import attrgetter, is_, itemgetter
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar, overload

from rvtrace_gdb.decode.history.events import GAP_KINDS, Accounting, EventKind, Fact, Loss, Start, Stop, Trap
from rvtrace_gdb.decode.history.history import (
    GAP,
    GAP_PATH,
    INDEX_STRIDE,
    AnyPath,
    Event,
    History,
    Path,
    RepeatPath,
    Times,
)
from rvtrace_gdb.decode.program.csrs import ProgramContext

if TYPE_CHECKING:
    from rvtrace_gdb.decode.history.checkpoints import Checkpoint
    from rvtrace_gdb.decode.kernel._kernel import Kernel

_REPEATED = re.compile(rb"\x01{7,}")  # 8 equal entries in a row; fewer are cheaper as they are


_COUNT = attrgetter("count")
_EVENTS_KEPT = 64  # of a checkpoint, at most

_H = TypeVar("_H", bound=History)


class HistoryBuilder:
    """A builder that collects a history while a decoder runs. `append` is the hot path."""

    keeps_accesses = True
    """Whether the history is to contain the accesses of the trace."""

    def __init__(self) -> None:
        self._collect_here()
        self._entries: list[AnyPath] = []
        self._repetitions: dict[tuple[AnyPath, int], RepeatPath] = {}
        self._index = array("Q")
        self._length = 0
        self._gap_positions: list[int] = []
        self._events: list[Event] = []
        self._open_gap: int | None = None  # events from here on wait for their next_pc
        self._contexts: list[tuple[int, ProgramContext]] = []
        self._times = Times(array("Q"), array("Q"))
        self._kernel: Kernel | None = None
        self.code_varies = False
        """Whether paths have code of their own."""

    def _collect_here(self) -> None:
        """Have our own lists collect what ran, and the times."""
        self._pending: list[AnyPath] = []
        self.append: Callable[[AnyPath], None] = self._pending.append
        """append(path): record that these instructions ran next. O(1)."""
        self._marks: list[int] = []  # how many paths were pending at each of
        self._stamps: list[int] = []  # the times not stored yet
        self.in_place = self._pending, self._marks.append, self._stamps.append
        """(pending, mark, stamp), for a loop that cannot afford to call `time(now)`: mark(len(pending)), stamp(now)."""

    def collect_in(self, kernel: "Kernel") -> None:
        """Have *kernel* collect what ran, and the times: its loop appends without us. Nothing may be pending."""
        self._kernel = kernel
        self.append = kernel.append

    def duplicate(self) -> Self:
        """Return a builder with everything collected so far; the two go on apart. Nothing of what they share changes.

        Where a kernel collects, both use it, so that each must be flushed before the other appends.
        """
        self.flush()
        other = copy(self)
        if self._kernel is None:
            other._collect_here()
        other._entries, other._events = self._entries[:], self._events[:]
        other._index, other._times = self._index[:], self._times[:]
        other._gap_positions, other._contexts = self._gap_positions[:], self._contexts[:]
        return other

    def checkpoint(self) -> "Checkpoint":
        """Return what another builder needs to go on from here, as `go_on_from` does. Raises NoCheckpoint."""
        from rvtrace_gdb.decode.history.checkpoints import NoCheckpoint, packed  # few traces are so long

        self.flush()
        last = self._entries[-1] if self._entries else None
        first = bisect_left(self._events, self._length - 1, key=attrgetter("position"))
        first = min(first, len(self._events) - 1, *([] if self._open_gap is None else [self._open_gap]))
        events = self._events[max(first, 0) :]
        if len(events) > _EVENTS_KEPT or self.code_varies:
            raise NoCheckpoint("builder")
        context = max(bisect_right(self._contexts, self._length - 1, key=itemgetter(0)) - 1, 0)
        time = max(bisect_left(self._times.arrays[0], self._length - 1) - 1, 0)
        return {
            "length": self._length,
            "last": None if last is None else last.last,
            "events": [packed(event) for event in events],
            "open": None if self._open_gap is None else self._open_gap - max(first, 0),
            "gap": self._gap_positions[-1:],
            "contexts": packed(self._contexts[context:]),
            "times": [list(column[time:]) for column in self._times.arrays],
        }

    def go_on_from(self, checkpoint: "Checkpoint") -> None:
        """Go on from a checkpoint, before anything is collected: with the same numbers, and nothing before them but
        the last instruction.
        """
        from rvtrace_gdb.decode.history.checkpoints import unpacked

        self._length = checkpoint["length"]
        last = checkpoint["last"]
        if last is not None:
            self._entries.append(GAP_PATH if last == GAP else Path(((last,),)))
            self._index.append(self._length - 1)
        self._events += unpacked(checkpoint["events"])
        self._open_gap = checkpoint["open"]
        self._gap_positions += checkpoint["gap"]
        self._contexts += unpacked(checkpoint["contexts"])
        self._times.extend(*checkpoint["times"])

    @property
    def settled(self) -> int:
        """The position from which on events can still change, or come."""
        self.flush()
        last, gap = self._length - 1, self._open_gap
        return last if gap is None or gap >= len(self._events) else min(last, self._events[gap].position)

    @property
    def last_time(self) -> int | None:
        """The last time so far, None without one."""
        self.flush()
        return self._times[-1][1] if self._times else None

    def view(self) -> History:
        """Return the history of what was flushed so far, which stays true while the builder goes on; its accounting is
        not known yet. Nothing is copied.
        """
        history = History(
            self._entries, self._index, self._length, self._gap_positions, self._events, _NOTHING, self._contexts,
            self._times,
        )  # fmt: skip
        history.code_varies = self.code_varies
        return history

    @property
    def position(self) -> int:
        """The position that the next instruction will get."""
        self.flush()
        return self._length

    @property
    def resumed_at(self) -> int:
        """The position after the last gap so far, 0 without any."""
        return self._gap_positions[-1] + 1 if self._gap_positions else 0

    @property
    def last_pc(self) -> int | None:
        """The address of the last instruction so far, None at the start and after a gap."""
        self.flush()
        if not self._entries or self._entries[-1] is GAP_PATH:
            return None
        return self._entries[-1].last

    def event(
        self,
        kind: EventKind,
        offset: int,
        fact: Fact,
        *,
        last_pc: int | None = None,
        next_pc: int | None = None,
        time: int | None = None,
    ) -> None:
        """Record an event before the next instruction. *offset* is a byte offset in the trace; *time* its own time.

        A TRACE_OFF event may turn out to be the cause of a gap, and gets its addresses like one.
        """
        if kind is EventKind.TRACE_OFF:
            last_pc = self.last_pc
            self._await_resumption(offset)
        self._events.append(Event(self.position, kind, offset, fact=fact, last_pc=last_pc, next_pc=next_pc, time=time))

    def missing(self, offset: int, end: int, fact: Loss) -> None:
        """Record, without a gap, that something is missing at an unknown place before this one, in bytes *offset* to
        *end*.
        """
        self._events.append(Event(self.position, EventKind.LOSS, offset, fact, end=end))

    def time(self, now: int) -> None:
        """Record the time at this moment, in ticks. O(1)."""
        if self._kernel is not None:
            return self._kernel.time(now)
        self._marks.append(len(self._pending))
        self._stamps.append(now)
        return None

    def context(self, context: ProgramContext, after: int = 0) -> None:
        """Record the context of what runs from here on, or from *after* instructions later."""
        position = self.position + after
        if self._contexts and self._contexts[-1][0] == position:
            self._contexts.pop()
        self._contexts.append((position, context))

    def gap(self, kind: EventKind, offset: int, fact: Fact) -> None:
        """Record a loss. It takes a position of its own if instructions precede it; consecutive gaps are one."""
        last_pc = self.last_pc
        at_gap = bool(self._entries) and self._entries[-1] is GAP_PATH
        position = self._length - 1 if at_gap else self._length
        if self._events:
            position = max(position, self._events[-1].position)  # a note may have come after the gap
        self._await_resumption(offset)
        self._events.append(Event(position, kind, offset, fact, last_pc))
        self.add_gap()

    def add_gap(self, resumption: Start | Trap | None = None) -> None:
        """Add a gap position, unless nothing ran since the last one; an event already recorded here is its cause.

        *resumption* says how tracing resumed; if the cause is a stop, it becomes part of it.
        """
        self.flush()
        last = self._events[-1] if self._events else None
        if resumption is not None and last is not None and isinstance(last.fact, Stop):
            self._events[-1] = last._replace(fact=last.fact._replace(then=resumption))
        if self._entries and self._entries[-1] is not GAP_PATH:
            self._gap_positions.append(self._length)
            self._append_entries([GAP_PATH])

    def resume(self, pc: int, offset: int) -> None:
        """Record that decoding resumes at *pc*, at byte *offset* of the trace; this completes the events of the open
        gap.
        """
        if self._open_gap is not None:
            self._end_cause(offset)
            for i in range(self._open_gap, len(self._events)):
                if self._events[i].kind in GAP_KINDS:
                    self._events[i] = self._events[i]._replace(next_pc=pc)
            self._open_gap = None

    def flush(self) -> None:
        """Move what was appended to the compact store. This is cheap; a decoder does it once per batch."""
        if self._kernel is not None:
            return self._flush_kernel(self._kernel)
        pending = self._pending
        if self._marks:
            self._store_times()
        same_as_next = bytes(map(is_, pending, islice(pending, 1, None)))
        stored = 0
        for run in _REPEATED.finditer(same_as_next):
            self._append_entries(pending[stored : run.start()])
            self._append_entries([self._repeated(pending[run.start()], run.end() - run.start() + 1)])
            stored = run.end() + 1
        self._append_entries(pending[stored:])
        pending.clear()
        return None

    def _flush_kernel(self, kernel: "Kernel") -> None:
        self._length, index, positions, times = kernel.flush(self._entries, self._length, self._repeated)
        self._index.frombytes(index)
        if positions:
            self._times.extend_arrays(array("Q", positions), array("Q", times))

    @overload
    def finish(self, accounting: Accounting) -> History: ...
    @overload
    def finish(self, accounting: Accounting, kind: type[_H]) -> _H: ...
    def finish(self, accounting: Accounting, kind: type[History] = History) -> History:
        """Return the history of everything collected; *kind* is its class."""
        self.flush()
        history = kind(
            self._entries,
            self._index,
            self._length,
            self._gap_positions,
            self._events,
            accounting,
            self._contexts,
            self._times,
        )
        history.code_varies = self.code_varies
        return history

    def _repeated(self, path: AnyPath, times: int) -> RepeatPath:
        """Return one shared object for equal repetitions: a query that visits each different entry once then has fewer
        to visit.
        """
        known = self._repetitions.get((path, times))
        if known is None:
            known = self._repetitions[path, times] = RepeatPath(path, times)
        return known

    def _store_times(self) -> None:
        """Store the pending times; of several at one position, the last one stays."""
        positions = list(accumulate(map(_COUNT, self._pending), initial=self._length))
        self._times.extend([positions[mark] for mark in self._marks], self._stamps)
        self._marks.clear()
        self._stamps.clear()

    def _await_resumption(self, offset: int) -> None:
        """Note a cause of a gap, found at byte *offset*; its events wait for the address at which decoding resumes."""
        if self._open_gap is None:
            self._open_gap = len(self._events)
        else:
            self._end_cause(offset)

    def _end_cause(self, offset: int) -> None:
        """End the last cause of the open gap at byte *offset*."""
        for i in range(len(self._events) - 1, (self._open_gap or 0) - 1, -1):
            if self._events[i].kind in GAP_KINDS:
                self._events[i] = self._events[i]._replace(end=max(offset, self._events[i].offset))
                break

    def _append_entries(self, entries: list[AnyPath]) -> None:
        positions = list(accumulate(map(_COUNT, entries), initial=self._length))
        self._length = positions.pop()
        self._index.extend(positions[-len(self._entries) % INDEX_STRIDE :: INDEX_STRIDE])
        self._entries += entries


WAITING_LIMIT = 1 << 14
"""How many events may wait for the address at which decoding resumes; in endless noise, older ones stop waiting."""

_REPETITIONS = 1 << 14  # different ones that are shared


class HistoryPiece(NamedTuple):
    """The positions *begin* to *end* - 1 of a history, which numbers them so and has no earlier ones.

    events   that nothing can change any more; their positions may be earlier ones
    fresh    those that were found since the last piece, whatever may still be added to them
    """

    history: History
    begin: int
    end: int
    events: Sequence[Event]
    fresh: Sequence[Event] = ()

    @property
    def gaps(self) -> int:
        """The number of gaps among the positions."""
        return self.history.gaps  # it knows no earlier ones

    @property
    def instructions(self) -> int:
        """The number of instructions among the positions."""
        return self.end - self.begin - self.gaps


class IncrementalBuilder(HistoryBuilder):
    """A builder whose history is taken in pieces; its memory is bounded as long as they are taken."""

    keeps_accesses = False

    def __init__(self) -> None:
        super().__init__()
        self._taken = 0
        self._reported = 0  # events that were looked at by `fresh`, of those that are there
        self._delivered = 0  # events that were in a piece as fresh, of those that are there
        self.started = False
        """Whether there was a place where decoding could start."""

    def fresh(self) -> list[Event]:
        """Return the events since the last call, as far as they are known: their `next_pc` may still be missing."""
        found = self._events[self._reported :]
        self._reported = len(self._events)
        return found

    def take(self, *, last: bool = False) -> HistoryPiece:
        """Return what came since the last piece. *last*: the trace has ended, so no event can change any more."""
        self.flush()
        self.started = self.started or self._length > 0 or any(map(_shows_a_hart, self._events))
        settled = len(self._events) if last else self._settled()
        events = self._events[:settled]
        history = self.view()
        piece = HistoryPiece(history, self._taken, self._length, events, self._events[self._delivered :])
        self._taken, self._delivered = self._length, len(self._events)
        self._drop_piece(settled)
        return piece

    def _settled(self) -> int:
        """Return how many events are final: an instruction came after them, and where decoding resumed is known. What
        an encoder says besides the flow is final at once.
        """
        settled = bisect_left(self._events, self._length, key=lambda event: event.position)
        while settled < len(self._events) and self._events[settled].kind is EventKind.HART_EVENT:
            settled += 1
        if self._open_gap is not None:
            settled = min(settled, self._open_gap)
        return max(settled, len(self._events) - WAITING_LIMIT)

    def _drop_piece(self, settled: int) -> None:
        """Drop what a piece has taken. Its lists must not change, so the builder gets new ones."""
        if self._entries:
            self._entries = [self._entries[-1]]
            self._index = array("Q", [self._length - self._entries[0].count])
        self._events = self._events[settled:]
        self._reported = max(self._reported - settled, 0)
        self._delivered = max(self._delivered - settled, 0)
        if self._open_gap is not None:
            self._open_gap = max(self._open_gap - settled, 0)
        self._gap_positions = []
        floor = min([event.position for event in self._events[:1]] + [self._length])
        self._contexts = self._contexts[max(bisect_right(self._contexts, floor, key=itemgetter(0)) - 1, 0) :]
        self._times = self._times[max(bisect_right(self._times.arrays[0], floor) - 1, 0) :]
        if len(self._repetitions) > _REPETITIONS:
            self._repetitions.clear()


def _shows_a_hart(event: Event) -> bool:
    """Return whether a hart is known to be there."""
    return event.next_pc is not None or event.kind is EventKind.HART_EVENT


_NOTHING = Accounting(0, 0, 0, 0)


BuilderFactory = Callable[[int], HistoryBuilder]
"""Creates the builder for the history of a source."""


def complete_history(source: int) -> HistoryBuilder:
    """Return a builder for a history that is read when it is complete."""
    return HistoryBuilder()


class SourceHistories(NamedTuple):
    """One history for each source found (0 where messages do not name theirs), and what became of all bytes."""

    histories: dict[int, History]
    accounting: Accounting
