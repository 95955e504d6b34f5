"""The traps of a history, by cause, and how long their handlers took.

A handler ends with the return from traps (`mret`, `sret`) that belongs to its trap: on one hart these nest. It may go
on in another task; its turn on the hart has ended all the same. How long a handler took is not known where the history
has a gap in it, or ends before; and in ticks only where the time is known at the trap and right after the return.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.edges import CallEdge
from rvtrace_gdb.decode.calls.frame import StackOperationKind
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.calls.summaries import Summaries
from rvtrace_gdb.decode.history.events import EventKind, Trap
from rvtrace_gdb.decode.history.history import GAP, PathPart, RepeatPath
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.reports.profile.model import Durations, Profile, TrapCause, TrapTally
from rvtrace_gdb.support.errors import Progress

_OPEN_AT_MOST = 1 << 10
"""Handlers in handlers; of more, the oldest are not measured."""
_RETURN, _GAP = -1, 0


class _TrapMark(NamedTuple):
    """Right before the instruction at *offset* there are so many traps; or a handler ends (_RETURN); or there is a gap
    (_GAP).
    """

    offset: int
    traps: int


class _OpenHandler(NamedTuple):
    """A handler that has not ended: of which cause, None if the trace does not report its trap, and since when."""

    cause: TrapCause | None
    begin: int


def add_traps(profile: Profile, calls: CallHistory, positions: range, progress: Progress) -> None:
    """Put the traps at some *positions* of a history into a profile. Raises what *progress* raises."""
    end = positions.stop + (positions.stop == len(calls.history))  # what came after the last instruction is in it
    causes = [
        _cause(event.fact)
        for event in calls.history.events_between(positions.start, end)
        if event.kind is EventKind.TRAP and isinstance(event.fact, Trap)
    ]
    for cause in causes:
        profile.traps[cause] = profile.traps.get(cause, TrapTally()).plus(TrapTally(1))
    if causes and len(positions):
        _HandlerMeasure(profile, calls, positions).measure(progress)


def _cause(trap: Trap) -> TrapCause:
    return TrapCause(trap.kind.value, trap.cause)


class _HandlerMeasure:
    """Measures the handlers that begin and end at some *positions* of a history."""

    def __init__(self, profile: Profile, calls: CallHistory, positions: range) -> None:
        self._traps, self._calls, self._positions = profile.traps, calls, positions
        self._marks: dict[int, tuple[_TrapMark, ...]] = {}  # by the number of a step
        self._parts = _PartMarks(calls)
        self._open: list[_OpenHandler] = []

    def measure(self, progress: Progress) -> None:
        """Follow the traps and the returns. Raises what *progress* raises."""
        calls, positions, known = self._calls, self._positions, self._marks
        last = calls.block_at(positions.stop - 1)
        for block in range(calls.block_at(positions.start), last + 1):
            progress("measuring traps (parts)", block, last + 1)
            position, steps = calls.taken_in(block)
            for step in steps:
                marks = known.get(step.number)
                if marks is None:
                    marks = known[step.number] = tuple(self._parts.of_step(step))
                for mark in marks:
                    if positions.start <= position + mark.offset <= positions.stop:
                        self._follow(position + mark.offset, mark.traps)
                position += step.unit.part.count

    def _follow(self, position: int, traps: int) -> None:
        if traps == _GAP:
            self._open.clear()
        elif traps == _RETURN:
            if self._open:
                self._end(*self._open.pop(), position)
        else:
            events = self._calls.traps_at(position)
            reported = [_cause(event.fact) for event in events if isinstance(event.fact, Trap)]
            unknown = [None] * (traps - len(reported))
            self._open += [_OpenHandler(cause, position) for cause in (*unknown, *reported)]
            del self._open[:-_OPEN_AT_MOST]

    def _end(self, cause: TrapCause | None, begin: int, end: int) -> None:
        if cause is None or cause not in self._traps:
            return
        since, until = self._time_at(begin), self._time_at(end)
        ticks = Durations()
        if since is not None and until is not None and until >= since:
            ticks = ticks.with_one(until - since)
        took = TrapTally(0, Durations().with_one(end - begin), ticks)
        self._traps[cause] = self._traps[cause].plus(took)

    def _time_at(self, position: int) -> int | None:
        """Return the time at a position, None unless it is known there."""
        known_at, known = self._calls.history.times.arrays
        i = bisect_left(known_at, position)
        return known[i] if i < len(known_at) and known_at[i] == position else None


class _PartMarks:
    """Where the parts of a history have traps, and returns from traps."""

    def __init__(self, calls: CallHistory) -> None:
        self._calls = calls
        self._known: dict[tuple[int, int], list[_TrapMark]] = {}  # by the ids of summaries and of a part
        self._returns: dict[tuple[int, int], bool] = {}  # by the id of an image, and address

    def of_step(self, step: CallStep) -> Iterator[_TrapMark]:
        """Yield the marks in the entry that a step leads to, and on the way to it."""
        unit = step.unit
        if unit.last == GAP:
            yield _TrapMark(0, _GAP)
            return
        yield from _traps_of(unit.edge, 0)
        yield from self._of_part(unit.part, unit.summaries, self._calls.images[step.state.program])

    def _of_part(self, part: PathPart, summaries: Summaries, image: Image) -> list[_TrapMark]:
        key = (id(summaries), id(part))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = list(self._find(part, summaries, image))
        return known

    def _find(self, part: PathPart, summaries: Summaries, image: Image) -> Iterator[_TrapMark]:
        if isinstance(part, tuple):
            for offset, (pc, to) in enumerate(pairwise((*part, GAP)), 1):
                if self._returns_from_trap(image, pc):
                    yield _TrapMark(offset, _RETURN)
                if to != GAP:
                    yield from _traps_of(summaries.edges.step(pc, to), offset)
            return
        if isinstance(part, RepeatPath):
            yield from self._in_rounds(part, summaries, image)
            return
        offset, before = 0, None
        for child in (child for child in part.parts if child):
            summary = summaries.summary_of(child)
            if before is not None:
                yield from _traps_of(summaries.between(before, summary), offset)
            yield from (_TrapMark(offset + at, traps) for at, traps in self._of_part(child, summaries, image))
            before, offset = summary, offset + len(child)

    def _in_rounds(self, part: RepeatPath, summaries: Summaries, image: Image) -> Iterator[_TrapMark]:
        summary, size = summaries.summary_of(part.path), part.path.count
        first = self._of_part(part.path, summaries, image)
        again = [*_traps_of(summaries.between(summary, summary), 0), *first]
        yield from first
        for number in range(1, part.times) if again else ():
            yield from (_TrapMark(number * size + at, traps) for at, traps in again)

    def _returns_from_trap(self, image: Image, pc: int) -> bool:
        key = (id(image), pc)
        known = self._returns.get(key)
        if known is None:
            try:
                known = image.instruction(pc).itype is IType.TRAP_RETURN
            except (CodeMissing, UndecodableInstruction):
                known = False
            self._returns[key] = known
        return known


def _traps_of(edge: CallEdge, offset: int) -> Iterator[_TrapMark]:
    traps = sum(operation.kind is StackOperationKind.TRAP for operation in edge.operations)
    if traps:
        yield _TrapMark(offset, traps)
