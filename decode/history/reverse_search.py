"""Find the nearest instruction before or after a position that is at one of some addresses: for breakpoints in the
past.

Entries are visited from the position outward. A history has many entries but few different ones, so the search
remembers for each different entry whether it has one of the addresses. What remains is to look that up, which takes
about 25 ns for an entry.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.history.history import GAP, AnyPath, Event, History, Path, PathPart, RepeatPath
from rvtrace_gdb.support.errors import Progress, silent

_FIRST_BLOCK, _BLOCK = 16, 1 << 13  # entries looked at together: few at first, what is near is found soonest
_SETS = 16  # of addresses whose parts are remembered
_PARTS_AT_MOST = 1 << 20  # remembered for a set


class OutsideRange(NamedTuple):
    """Every address except those from *start* to *stop* - 1; gaps are outside as well."""

    start: int
    stop: int

    def __contains__(self, pc: object) -> bool:
        return isinstance(pc, int) and not self.start <= pc < self.stop

    def isdisjoint(self, pcs: Sequence[int]) -> bool:
        """Return whether none of some addresses is outside."""
        return not pcs or (self.start <= min(pcs) and max(pcs) < self.stop)


class SearchedAddresses(Hashable, Protocol):
    """Addresses that are searched for: a frozenset, or any object that compares equal to another one with the same."""

    def __contains__(self, pc: object, /) -> bool: ...

    def isdisjoint(self, pcs: Sequence[int], /) -> bool:
        """Return whether none of some addresses is one of these."""


class _PartsWithAddresses:
    """The parts of a history that contain one of *addresses*."""

    def __init__(self, addresses: SearchedAddresses) -> None:
        self.addresses = addresses - {GAP} if isinstance(addresses, frozenset) else addresses
        self._answers: dict[int, bool] = {}  # by id: the history keeps all parts
        self._without: set[AnyPath] = set()  # entries, which are compared by identity

    def nearest(self, entries: Sequence[AnyPath], direction: int) -> int | None:
        """Return the index of the first of some entries, or with -1 of the last, that contains one of the addresses."""
        if self._without.issuperset(entries):
            return None
        if len(self._answers) > _PARTS_AT_MOST:
            self._answers.clear()
            self._without.clear()
        new = set(entries) - self._without
        found = {entry for entry in new if self.are_in(entry)}
        self._without |= new - found
        if not found:
            return None
        order = range(len(entries)) if direction > 0 else range(len(entries) - 1, -1, -1)
        return next(i for i in order if entries[i] in found)

    def are_in(self, part: PathPart) -> bool:
        """Return whether a part contains one of the addresses."""
        if isinstance(part, RepeatPath):
            return self.are_in(part.path)
        known = self._answers.get(id(part))
        if known is None:
            if isinstance(part, tuple):
                known = not self.addresses.isdisjoint(part)
            else:
                known = any(map(self.are_in, part.parts))
            self._answers[id(part)] = known
        return known

    def place(self, part: PathPart, first: int, last: int, direction: int) -> int | None:
        """Return the index of the first match, or with -1 of the last, among instructions *first* to *last* - 1 of a
        part.
        """
        if first >= last or not self.are_in(part):
            return None
        if isinstance(part, RepeatPath):
            return self._in_rounds(part, first, last, direction)
        if isinstance(part, Path):
            return self._in_path(part, first, last, direction)
        order = range(first, last) if direction > 0 else range(last - 1, first - 1, -1)
        return next((k for k in order if part[k] in self.addresses), None)

    def _in_path(self, part: Path, first: int, last: int, direction: int) -> int | None:
        for begin, inner in _within(part, first, last, direction):
            found = self.place(inner, max(first - begin, 0), min(last - begin, len(inner)), direction)
            if found is not None:
                return begin + found
        return None

    def _in_rounds(self, part: RepeatPath, first: int, last: int, direction: int) -> int | None:
        """Return the match in the round where the search begins, or in the next round, which is a whole or the last
        one.
        """
        unit = part.path.count
        times = first // unit if direction > 0 else (last - 1) // unit
        for begin in (times * unit, (times + direction) * unit):
            inside = max(first - begin, 0), min(last - begin, unit)
            found = self.place(part.path, *inside, direction)
            if found is not None:
                return begin + found
        return None


def _within(part: Path, first: int, last: int, direction: int) -> Iterator[tuple[int, PathPart]]:
    """Yield the pieces of a path that have some of the instructions *first* to *last* - 1, and where each begins."""
    if direction > 0:
        begin = 0
        for inner in part.parts:
            if begin >= last:
                return
            if begin + len(inner) > first:
                yield begin, inner
            begin += len(inner)
    else:
        end = part.count
        for inner in reversed(part.parts):
            if end <= first:
                return
            end -= len(inner)
            if end < last:
                yield end, inner


class AddressSearch:
    """A search for instructions in *history*."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._sets: OrderedDict[SearchedAddresses, _PartsWithAddresses] = OrderedDict()

    def find(
        self,
        position: int,
        direction: int,
        addresses: SearchedAddresses,
        progress: Progress = silent,
        *,
        farthest: int | None = None,
    ) -> int | None:
        """Return the first position after *position* (*direction* 1), or the last before it (-1), that has one of
        *addresses*.

        Returns None if there is none. *farthest* is a position at which the search may end. Raises what *progress*
        raises.
        """
        history = self._history
        if addresses == frozenset():
            return None
        position = max(-1, min(position, len(history)))
        parts = self._parts(addresses)
        beside = position + direction
        if not 0 <= beside < len(history):
            return None
        entry, begin = history.entry_at(beside)
        part = history.entries[entry]
        inside = (beside - begin, part.count) if direction > 0 else (0, beside - begin + 1)
        place = parts.place(part, *inside, direction)
        if place is not None:
            return begin + place
        last = len(history) - 1 if direction > 0 else 0
        farthest = last if farthest is None else max(0, min(farthest, len(history) - 1))
        found = self._entry(entry, history.entry_at(farthest)[0], parts, direction, progress)
        if found is None:
            return None
        part = history.entries[found]
        place = parts.place(part, 0, part.count, direction)
        assert place is not None
        return history.position_of(found) + place

    def _parts(self, addresses: SearchedAddresses) -> _PartsWithAddresses:
        parts = self._sets.get(addresses)
        if parts is None:
            parts = self._sets[addresses] = _PartsWithAddresses(addresses)
            if len(self._sets) > _SETS:
                self._sets.popitem(last=False)
        self._sets.move_to_end(addresses)
        return parts

    def _entry(
        self, entry: int, last: int, parts: _PartsWithAddresses, direction: int, progress: Progress
    ) -> int | None:
        """Return the nearest entry next to one, up to the *last* one, that contains one of the addresses."""
        entries, size, at = self._history.entries, _FIRST_BLOCK, entry + (direction > 0)
        while at > last if direction < 0 else at <= last:
            begin, end = (max(at - size, last), at) if direction < 0 else (at, min(at + size, last + 1))
            found = parts.nearest(entries[begin:end], direction)
            if found is not None:
                return begin + found
            at = begin if direction < 0 else end
            size = min(2 * size, _BLOCK)
            if size == _BLOCK:
                progress("searching the history backward (parts)", abs(at - entry), len(entries))
        return None


class GapsBetween(NamedTuple):
    """The gaps between two positions: how many there are, and the cause of the first on the way."""

    passed: int
    first: Event | None


def gaps_between(history: History, start: int, end: int) -> GapsBetween:
    """Return the gaps on the way from *start* to *end*; gaps at either are not passed."""
    low, high = min(start, end), max(start, end)
    gaps = history.gap_positions
    first, last = bisect_right(gaps, low), bisect_left(gaps, high)
    if first >= last:
        return GapsBetween(0, None)
    return GapsBetween(last - first, history.gap_at(gaps[first if start < end else last - 1]))
