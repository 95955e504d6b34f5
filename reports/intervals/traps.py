"""The time in traps: from each exception or interrupt to the return from it.

A return from a trap ends the newest one that has not ended: that is what the hart does, whichever task goes on after
it. Where the returns are is found in the parts of a history, so nothing visits its instructions one by one.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.events import EventKind, Trap, TrapKind
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.decode.search import AddressQuery, ExecutionSearch
from rvtrace_gdb.reports.intervals.intervals import HistoryInterval, HistoryIntervals, PositionRanges, collected
from rvtrace_gdb.support.errors import Progress, silent

TrapFilter = Callable[[Trap], bool]
"""Whether a trap is one of those that are asked for."""

_RETURN, _GAP, _TRAP = range(3)  # the order at one position: a return leads to a gap, or to where the next trap hits
_POSITION = itemgetter(0, 1)


_Kind = TypeVar("_Kind", bound=Hashable)


class _OpenTrap(NamedTuple):
    """A trap that has not ended. *kind*: None: it is not asked for; *depth*: in how many of its kind it came."""

    position: int
    kind: Hashable
    depth: int


class _KindTraps:
    """The traps of a kind: *found*, and the positions of those that are *cut*, and that have not ended."""

    def __init__(self) -> None:
        self.found: list[HistoryInterval] = []
        self.cut: list[int] = []
        self.unended: list[int] = []


def trap_intervals(
    calls: CallHistory, chosen: TrapFilter, progress: Progress = silent, part: range | PositionRanges | None = None
) -> HistoryIntervals:
    """Return the intervals from the first instruction of the handler of each *chosen* trap to the return from it, that
    instruction included. *part*: of those that begin in it alone. Raises what *progress* raises.

    A trap of which the handler is not seen to begin, or that a gap comes before the end of, is cut.
    """
    found = trap_intervals_by_kind(calls, lambda trap: chosen(trap) or None, progress, part)
    return found.get(True, HistoryIntervals())


def trap_intervals_by_kind(
    calls: CallHistory,
    kind_of: Callable[[Trap], _Kind | None],
    progress: Progress = silent,
    part: range | PositionRanges | None = None,
) -> dict[_Kind, HistoryIntervals]:
    """Return the intervals of the traps of each kind, as `trap_intervals` does. *kind_of*: None: it is not asked for.
    Raises what *progress* raises.
    """
    history, waiting = calls.history, list[_OpenTrap]()
    kinds: defaultdict[Any, _KindTraps] = defaultdict(_KindTraps)
    for position, what, trap in merge(*_happenings(calls, progress), key=_POSITION):
        if what == _TRAP:
            kind = kind_of(trap.fact) if isinstance(trap.fact, Trap) else None
            if position >= len(history):
                kinds[kind].unended.append(position)
            elif not _handler_ran(history, trap):
                kinds[kind].cut.append(position)
            else:
                waiting.append(_OpenTrap(position, kind, sum(one.kind == kind for one in waiting)))
        elif what == _GAP:
            for one in waiting:
                kinds[one.kind].cut.append(one.position)
            waiting.clear()
        elif waiting:
            ended = waiting.pop()
            kinds[ended.kind].found.append(HistoryInterval(ended.position, position, ended.depth))
        # else it returns from a trap that the history does not show, if there was one: programs begin tasks that way
    for one in waiting:
        kinds[one.kind].unended.append(one.position)
    return {
        kind: collected(history, it.found, cut=it.cut, began=(), unended=it.unended, part=part)
        for kind, it in kinds.items()
        if kind is not None
    }


def returns_from_traps(calls: CallHistory, progress: Progress = silent) -> Sequence[int]:
    """Return the positions after each return from a trap. Raises what *progress* raises."""
    refused = {
        event.position
        for event in calls.history.events
        if _was_raised_by_the_last_instruction(calls.history, event)
    }
    search = ExecutionSearch(calls, AddressQuery(_TrapReturns(calls.images)), progress)
    return [at + 1 for at in search.positions(progress) if at + 1 not in refused]


def trap_positions(history: History, chosen: TrapFilter) -> Sequence[int]:
    """Return the positions of the traps that are asked for."""
    return [event.position for event in history.events if isinstance(event.fact, Trap) and chosen(event.fact)]


class _TrapReturns:
    """A container of the addresses of all instructions that return from traps in some programs."""

    def __init__(self, images: Sequence[Image]) -> None:
        self._images = images
        self._answers: dict[int, bool] = {}

    def __contains__(self, pc: object) -> bool:
        assert isinstance(pc, int)
        if pc not in self._answers:
            self._answers[pc] = any(_returns_from_trap(image, pc) for image in self._images)
        return self._answers[pc]


def _returns_from_trap(image: Image, pc: int) -> bool:
    try:
        return image.instruction(pc).itype is IType.TRAP_RETURN
    except (CodeMissing, UndecodableInstruction):
        return False


def _happenings(calls: CallHistory, progress: Progress) -> Iterator[list[tuple[int, int, Event]]]:
    """Yield what happened, as (position, what, the trap if it is one), in lists that are in order."""
    history = calls.history
    nothing = Event(0, EventKind.NOTE, 0, Trap(TrapKind.UNKNOWN))
    yield [(position, _RETURN, nothing) for position in returns_from_traps(calls, progress)]
    yield [(position, _GAP, nothing) for position in history.gap_positions]
    yield [(event.position, _TRAP, event) for event in history.events if isinstance(event.fact, Trap)]


def _handler_ran(history: History, trap: Event) -> bool:
    """Return whether the handler is what ran next, or another trap came before its first instruction."""
    if trap.next_pc is None:
        return False
    if history.pc(trap.position) == trap.next_pc:
        return True
    return any(
        isinstance(other.fact, Trap) and other.last_pc == trap.next_pc and other is not trap
        for other in history.events_between(trap.position, trap.position + 1)
    )


def _was_raised_by_the_last_instruction(history: History, event: Event) -> bool:
    """Return whether an event is an exception of the instruction before it, which has not done its work then."""
    fact = event.fact
    if not isinstance(fact, Trap) or fact.kind is not TrapKind.EXCEPTION or not 0 < event.position <= len(history):
        return False
    return event.last_pc is not None and history.pc(event.position - 1) == event.last_pc
