"""Where a history is cut: the positions at which something happens besides the instructions, and what.

At the end of a history nothing is forgotten: what is known there is what the last instruction left.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import (
    MAYBE_HALTS,
    ONLY_SAY_WHERE,
    ContextChange,
    EventKind,
    Loss,
    Start,
    StartReason,
    Stop,
    Trap,
)
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.program.image import CodeMissing, Program
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, KnownValue

_GOES_ON = ONLY_SAY_WHERE | {StartReason.BEGINNING}
"""Reasons to report a place where nothing happened to the hart."""


class Happening(NamedTuple):
    """*events*: those that matter. *halts*: what a debugger wrote."""

    events: Sequence[Event]
    halts: Sequence[HaltWrites]


NOTHING = Happening((), ())


class Cuts:
    """The cuts of *history*. *begin*: the position from which on they are asked for."""

    def __init__(self, history: History, begin: int, halts: Sequence[HaltWrites] = ()) -> None:
        self._at = _happenings(history, begin, halts)
        contexts = (position for position, _ in history.contexts)
        self._positions = sorted({*self._at, *contexts})
        self._all = frozenset(self._positions)
        self._lost = [(max(first, begin), last) for first, last in lost_stretches(history, begin, len(history))]

    def __contains__(self, position: int) -> bool:
        return position in self._all

    def happening_at(self, position: int) -> Happening:
        """Return what happens before the instruction at a position."""
        return self._at.get(position, NOTHING)

    def lost_until(self, position: int) -> int | None:
        """Return the end of the stretch in which something is missing, and nobody knows where; None: a position is in
        none.
        """
        return max((end for begin, end in self._lost if begin <= position < end), default=None)

    def after(self, position: int) -> int | None:
        """Return the next cut behind a position."""
        at = bisect_right(self._positions, position)
        return self._positions[at] if at < len(self._positions) else None


def is_lost(event: Event, halts: Sequence[HaltWrites]) -> bool:
    """Return whether nobody knows what happened to the hart at an event. *halts*: what a debugger wrote there."""
    fact = event.fact
    if isinstance(fact, Start):
        if fact.reason.resumes:
            return not halts
        return not fact.reason.marks and fact.reason not in _GOES_ON
    if isinstance(fact, Stop):
        return fact.reason not in MAYBE_HALTS or not halts
    if isinstance(fact, Trap):
        return fact.from_hidden or fact.into_hidden
    return isinstance(fact, Loss)


def _happenings(history: History, begin: int, halts: Sequence[HaltWrites]) -> Mapping[int, Happening]:
    events: dict[int, list[Event]] = {}
    last_sync = 0
    for event in history.events:
        fact = event.fact
        if event.kind is EventKind.SYNC:
            last_sync = event.position
        if isinstance(fact, Loss) and not fact.has_place:
            events.setdefault(max(last_sync, begin), []).append(event)
        if isinstance(fact, Trap | ContextChange) or (_matters(event, begin) and event.position < len(history)):
            events.setdefault(event.position, []).append(event)
    written: dict[int, list[HaltWrites]] = {}
    for halt in halts:
        if begin <= halt.position < len(history):
            written.setdefault(halt.position, []).append(halt)
    return {at: Happening(events.get(at, ()), written.get(at, ())) for at in {*events, *written}}


def lost_stretches(history: History, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of the stretches in which something is missing, and nobody knows where."""
    events = history.events
    at = bisect_right(events, first, key=lambda event: event.position)
    while at > 0 and events[at - 1].kind is not EventKind.SYNC:
        at -= 1
    synchronized = events[at - 1].position if at else 0
    for event in events[at:]:
        if event.kind is EventKind.SYNC:
            synchronized = event.position
            if synchronized > last:
                return
        elif isinstance(event.fact, Loss) and not event.fact.has_place:
            yield synchronized, event.position


def _matters(event: Event, begin: int) -> bool:
    if isinstance(event.fact, Start | Stop):  # at the beginning it is what leads there
        return event.position > begin and is_lost(event, ())
    return is_lost(event, ())


def sequential_pc(history: History, program: Program, position: int) -> KnownValue:
    """Return the address behind the instruction at a position, None if it may go elsewhere."""
    pc = history.pc(position) if position >= 0 else GAP
    if pc == GAP:
        return None
    try:
        instruction = program.image_of(history.context_at(position)).instruction(pc)
    except (CodeMissing, UndecodableInstruction):
        return None
    if instruction.itype is not IType.NONE:
        return pc + instruction.offset if instruction.is_inferable_jump and instruction.offset is not None else None
    return pc + instruction.length
