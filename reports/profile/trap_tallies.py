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
from rvtrace_gdb.decode.calls.pieces.summaries import Summaries
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.calls.states import CallStep
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


class OpenHandler(NamedTuple):
    """A handler that has not ended: of which cause, None if the trace does not report its trap, and since when: at
    which position, and at which time, if that is known.
    """

    cause: TrapCause | None
    begin: int
    time: int | None


class HandlerEnd(NamedTuple):
    """The end of a handler that had begun before a piece of a history. *nested*: how many more there were at most since
    the end before.
    """

    position: int
    time: int | None
    nested: int


class PieceHandlers(NamedTuple):
    """The handlers that are not in one piece of a history alone: those that end in it, up to a gap (*forgets*), and
    those that are open at its end.
    """

    ends: tuple[HandlerEnd, ...] = ()
    forgets: bool = False
    open: tuple[OpenHandler, ...] = ()
    nested: int = 0


class HandlersAcross:
    """Measures the handlers that begin in one piece of a history and end in a later one."""

    def __init__(self) -> None:
        self._open: list[OpenHandler] = []

    def add(self, profile: Profile, piece: PieceHandlers) -> None:
        """Go on with the next piece. *profile*: of all pieces so far."""
        for end in piece.ends:
            self._make_room(end.nested)
            if self._open:
                _measured(profile, self._open.pop(), end.position, end.time)
        self._make_room(piece.nested)
        if piece.forgets:
            self._open.clear()
        self._open += piece.open
        del self._open[:-_OPEN_AT_MOST]

    def _make_room(self, nested: int) -> None:
        del self._open[: max(len(self._open) + nested - _OPEN_AT_MOST, 0)]


def add_traps(
    profile: Profile,
    calls: CallHistory,
    positions: range,
    progress: Progress,
    *,
    piece: bool = False,
    last: bool = True,
) -> PieceHandlers:
    """Put the traps at some *positions* of a history into a profile. *piece*: they are those of a piece of a history,
    and *last*: nothing comes after it. Raises what *progress* raises.
    """
    end = positions.stop + (positions.stop == len(calls.history) and last)  # what comes after the last instruction
    causes = [
        _cause(event.fact)
        for event in calls.history.events_between(positions.start, end)
        if event.kind is EventKind.TRAP and isinstance(event.fact, Trap)
    ]
    for cause in causes:
        profile.traps[cause] = profile.traps.get(cause, TrapTally()).plus(TrapTally(1))
    measure = _HandlerMeasure(profile, calls, positions)
    if len(positions) and (causes or (piece and measure.has_marks())):
        measure.measure(progress)
    return measure.across()


def _cause(trap: Trap) -> TrapCause:
    return TrapCause(trap.kind.value, trap.cause)


class _HandlerMeasure:
    """Measures the handlers that begin and end at some *positions* of a history."""

    def __init__(self, profile: Profile, calls: CallHistory, positions: range) -> None:
        self._profile, self._calls, self._positions = profile, calls, positions
        self._marks: dict[int, tuple[_TrapMark, ...]] = {}  # by the number of a step
        self._parts = _PartMarks(calls)
        self._open: list[OpenHandler] = []
        self._ends: list[HandlerEnd] = []
        self._forgets, self._nested = False, 0

    def across(self) -> PieceHandlers:
        """Return the handlers that begin or end elsewhere."""
        return PieceHandlers(tuple(self._ends), self._forgets, tuple(self._open), self._nested)

    def has_marks(self) -> bool:
        """Whether there is anything to follow in the whole history."""
        return any(next(self._parts.of_step(step), None) for step in self._calls.different_steps)

    def measure(self, progress: Progress) -> None:
        """Follow the traps and the returns. Raises what *progress* raises."""
        calls, positions, known = self._calls, self._positions, self._marks
        last = calls.block_at(positions.stop - 1)
        for block in range(calls.block_at(positions.start), last + 1):
            progress("measuring traps (parts)", block, last + 1)
            position, steps = calls.taken_in(block)
            for step in steps:
                if position >= positions.stop:
                    break
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
            self._forgets = True
        elif traps == _RETURN:
            if self._open:
                _measured(self._profile, self._open.pop(), position, self._time_at(position))
            elif not self._forgets:
                self._ends.append(HandlerEnd(position, self._time_at(position), self._nested))
                self._nested = 0
        else:
            events = self._calls.traps_at(position)
            reported = [_cause(event.fact) for event in events if isinstance(event.fact, Trap)]
            unknown = [None] * (traps - len(reported))
            now = self._time_at(position)
            self._open += [OpenHandler(cause, position, now) for cause in (*unknown, *reported)]
            if not self._forgets:
                self._nested = max(self._nested, len(self._open))
            del self._open[:-_OPEN_AT_MOST]

    def _time_at(self, position: int) -> int | None:
        """Return the time at a position, None unless it is known there."""
        known_at, known = self._calls.history.times.arrays
        i = bisect_left(known_at, position)
        return known[i] if i < len(known_at) and known_at[i] == position else None


def _measured(profile: Profile, handler: OpenHandler, end: int, until: int | None) -> None:
    """Count a handler that has ended."""
    cause, begin, since = handler
    if cause is None or cause not in profile.traps:
        return
    ticks = Durations()
    if since is not None and until is not None and until >= since:
        ticks = ticks.with_one(until - since)
    took = TrapTally(0, Durations().with_one(end - begin), ticks)
    profile.traps[cause] = profile.traps[cause].plus(took)


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
