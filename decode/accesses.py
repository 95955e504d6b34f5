"""Accesses to their places in a history.

Data packets carry no address of an instruction: only their order and the code tell whose they are. Between two
synchronizations the loads and stores of the code that ran, its atomics and its CSR instructions, are laid beside the
accesses of the trace; kind, size and operation must agree one by one, and so must the number of them. Where they do
not, none of that stretch gets a place, and the next synchronization begins anew. (E-Trace 2.0 gives no finer order than
that: an encoder may tell an access a little before or after the packets about its instruction.)
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from decode.access_match import Laid, Slots, distance, lay
from decode.history import History
from decode.memory_access import LOST_AFTER, NO_REQUEST, Access
from decode.streams import Program

SLACK = 4
"""How many accesses may be told on the other side of a synchronizing packet than their instructions."""

NOT_IN_SYNC = "its place is not known: it came when the trace was not in sync"
BEYOND = "its place is not known: its instruction is not in the history"
AMBIGUOUS = "its place is not known: more than one instruction may have made it"
DISAGREE = "its place is not known: loads and stores of the trace and of the program do not agree here"


def attach(history: History, program: Program, accesses: Sequence[Access]) -> list[Access]:
    """*accesses*, in the order of the trace, with their positions in the history, or a note why there is none.

    Kinds of access that are not in the trace at all are taken for kinds the encoder does not trace.
    """
    if not accesses:
        return []
    attaching = _Attaching(history, program, accesses)
    in_sync = [access for access in accesses if access.sync >= 0]
    groups = [(sync, list(group)) for sync, group in groupby(in_sync, attrgetter("sync"))]
    followed_by = [sync for sync, _ in groups[1:]] + [-1]
    found: list[Access] = []
    for (sync, group), following in zip(groups, followed_by, strict=False):
        found += attaching.stretch(group, sync, following)
    placed = iter(found)
    return [next(placed) if access.sync >= 0 else _out_of_sync(access) for access in accesses]


class _Attaching:
    """One pass over all stretches; a stretch is what follows one synchronization."""

    def __init__(self, history: History, program: Program, accesses: Sequence[Access]) -> None:
        self._length = len(history)
        self._slots = Slots.of(history, program, {access.kind for access in accesses})
        self._next: int | None = None  # the slot of the next access, if those before it have theirs

    def stretch(self, group: list[Access], sync: int, following: int) -> list[Access]:
        """The accesses after the synchronization at *sync*, before the one at *following* (-1: there is none)."""
        came_to, self._next = self._next, None
        gap = self._slots.gap_after(sync)
        end = self._length if gap is None else gap
        is_followed = sync < following <= end and LOST_AFTER not in group[-1].note
        if is_followed:
            end = following
        laid = self._fitting(group, sync, end, is_followed, came_to)
        if not laid:
            return [_noted(access, DISAGREE) for access in group]
        places = _merged([way.places(self._ends(way, group, end), self._slots.positions) for way in laid])
        if len(laid) == 1 and is_followed and len(laid[0].ends) == 1:
            self._next = laid[0].ends[0]
        beyond = [_noted(access, BEYOND) for access in group[len(places) :]]
        return [*map(_placed, group, places), *beyond]

    def _fitting(self, group: list[Access], sync: int, end: int, is_followed: bool, came_to: int | None) -> list[Laid]:
        """The ways to lay a group: from the synchronization on, or from where the accesses before it came to."""
        first = self._slots.at(sync)
        starts = [first]
        if came_to is not None and came_to != first and abs(distance(self._slots.reaches, came_to, first)) <= SLACK:
            starts.append(came_to)
        ways = [way for start in starts if (way := self._lay(group, start, end, is_followed))]
        if ways or came_to is not None:
            return ways
        nearby = (self._lay(group, start, end, is_followed) for start in self._nearby(first, sync, end))
        ways = [way for way in nearby if way]
        return ways if len(ways) == 1 else []

    def _nearby(self, first: int, sync: int, end: int) -> list[int]:
        """Slots a little before and after the first one of a stretch."""
        positions = self._slots.positions
        before = range(max(first - SLACK, 0), first)
        known = [slot for slot in before if not self._slots.has_gap(positions[slot], sync)]
        return known + [slot for slot in range(first + 1, first + SLACK + 1) if slot < self._slots.at(end)]

    def _lay(self, group: list[Access], start: int, end: int, is_followed: bool) -> Laid | None:
        """*group* from slot *start* on, if it ends where it should."""
        slots = self._slots
        stop = slots.at(end)
        if is_followed:
            gap = slots.gap_after(end)
            stop = min(stop + SLACK, slots.at(self._length if gap is None else gap))
        laid = lay(slots.reaches, group, start, stop)
        if laid is None or (is_followed and len(laid.steps) < len(group)):
            return None
        return laid if self._ends(laid, group, end) else None

    def _ends(self, laid: Laid, group: list[Access], end: int) -> list[int]:
        """The ends of *laid* that are near enough to that of the stretch: any, where accesses are missing."""
        if LOST_AFTER in group[-1].note:
            return laid.ends
        last = self._slots.at(end)
        return [slot for slot in laid.ends if abs(distance(self._slots.reaches, slot, last)) <= SLACK]


def _merged(ways: list[list[int | None]]) -> list[int | None]:
    """What all ways agree on."""
    return [each[0] if len(set(each)) == 1 else None for each in zip(*ways, strict=False)]


def _placed(access: Access, position: int | None) -> Access:
    return _noted(access, AMBIGUOUS) if position is None else access._replace(position=position)


def _out_of_sync(access: Access) -> Access:
    return access if NO_REQUEST in access.note else _noted(access, NOT_IN_SYNC)


def _noted(access: Access, note: str) -> Access:
    return access._replace(note="; ".join(filter(None, (access.note, note))))
