"""Where in a history certain instructions ran.

A history has many entries and few different ones (`decode/history.py`), so each different one is searched once; what is
left is adding up, at about 50 ns for an entry, which is some seventy instructions.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate, chain, islice, pairwise
from typing import NamedTuple

from decode.history import EventKind, History, Path, RepeatPath
from decode.wanted import LoopOrTrapReturn, Wanted
from support.progress import Progress, silent

_BLOCK = 4096  # entries between two known totals
_TAIL_THEN_HEAD = re.compile(rb"[\x02\x03](?=[\x01\x03])")  # see `Search._code`
_FLAGS = 3

_Part = tuple[int, ...] | Path | RepeatPath


class _Count(NamedTuple):
    """Of a part: *inner* that count, the first instruction aside; which counts if *head*, and nothing speaks against
    it before it. *tail*: the last instruction speaks against one behind it.
    """

    head: bool
    inner: int
    tail: bool

    def after(self, tail: bool) -> int:
        """How many count behind an instruction that does, or does not, speak against it."""
        return self.inner + (self.head and not tail)


_TAIL = _Count(False, 0, False), _Count(False, 0, True)
"""Of parts in which nothing counts, by what the last instruction does."""


class _Remembered(dict[Path | RepeatPath, int]):
    """What *find* says of an entry, asked once for each."""

    def __init__(self, find: Callable[[Path | RepeatPath], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, entry: Path | RepeatPath) -> int:
        found = self[entry] = self._find(entry)
        return found


class Search:
    """The positions of what is *wanted* in a history, by number from 0 on, oldest first. *progress* may raise."""

    def __init__(self, history: History, wanted: Wanted, progress: Progress = silent) -> None:
        self._history, self._wanted = history, wanted
        self._some: dict[int, int] = {}  # by id: the history keeps all parts
        self._counts: dict[int, _Count] = {}
        self._of_entry = _Remembered(self._of if wanted.not_after else self._all)
        self._not_first: set[int] = set()  # entries whose first instruction would count but for the one before it
        self._totals = [0]  # up to each block of entries
        self._near: tuple[int, list[int]] = (-1, [])  # the block that was looked at last, and `_ends` of it
        if wanted.not_after:
            self._add_up_and_look_before(progress)
        else:
            self._add_up(progress)

    def __len__(self) -> int:
        return self._totals[-1]

    def position(self, number: int) -> int:
        """Where in the history the one with this number is. Raises IndexError."""
        if not 0 <= number < len(self):
            raise IndexError(f"{number} of {len(self)}")
        block = bisect_right(self._totals, number) - 1
        if block != self._near[0]:
            self._near = block, self._ends(block)
        ends = self._near[1]
        left = number - self._totals[block]
        k = bisect_right(ends, left)
        i = block * _BLOCK + k
        place = self._place(self._history.entries[i], left - (ends[k - 1] if k else 0), i in self._not_first)
        return self._history.position_of(i) + place

    def _ends(self, block: int) -> list[int]:
        """How many there are in a block of entries up to the end of each."""
        first = block * _BLOCK
        counts = list(map(self._of_entry.__getitem__, self._history.entries[first : first + _BLOCK]))
        for i in self._not_first.intersection(range(first, first + _BLOCK)):
            counts[i - first] -= 1
        return list(accumulate(counts))

    def _add_up(self, progress: Progress) -> None:
        entries, of_entry = self._history.entries, self._of_entry.__getitem__
        for start in range(0, len(entries), _BLOCK):
            progress("searching the history", start, len(entries))
            self._totals.append(self._totals[-1] + sum(map(of_entry, entries[start : start + _BLOCK])))

    def _add_up_and_look_before(self, progress: Progress) -> None:
        """Finds also the entries that begin with what would count, if it were not for the end of the entry before."""
        entries, codes = self._history.entries, _Remembered(self._code).__getitem__
        flags = b"\0"
        for start in range(0, len(entries), _BLOCK):
            progress("searching the history", start, len(entries))
            block = list(map(codes, entries[start : start + _BLOCK]))
            flags = flags[-1:] + bytes(map(_FLAGS.__and__, block))
            self._not_first.update(start + found.start() for found in _TAIL_THEN_HEAD.finditer(flags))
            self._totals.append(self._totals[-1] + (sum(block) - sum(flags[1:]) >> 2))
        if self._not_first and self._wanted.entered is not None:
            self._not_first -= self._entered_by_traps(self._wanted.entered)
        not_first = sorted(self._not_first)
        for block_number in range(1, len(self._totals)):
            self._totals[block_number] -= bisect_left(not_first, block_number * _BLOCK)

    def _entered_by_traps(self, function: int) -> set[int]:
        """Of those entries the ones that enter the function all the same.

        It is the handler of a trap; or it was called, and a trap came before its first instruction ran, which the
        return from that trap leads to.
        """
        history = self._history
        places = [(history.position_of(i), i) for i in sorted(self._not_first)]
        by_position = dict(places)
        found = set()
        for event in history.events:
            if event.kind is EventKind.TRAP and event.next_pc == function and event.position in by_position:
                found.add(by_position[event.position])
            if event.kind is EventKind.TRAP and event.last_pc == function and self._entering(event.position):
                found.update(self._resumed(places, event.position))
        return found

    def _entering(self, position: int) -> bool:
        """Whether the instruction before a position does not speak against an entry."""
        return position == 0 or self._history.pc(position - 1) not in self._wanted.not_after

    def _resumed(self, places: list[tuple[int, int]], position: int) -> Iterator[int]:
        """The first of some entries after a position that a return from a trap leads to."""
        before = self._wanted.not_after
        assert isinstance(before, LoopOrTrapReturn)
        for place, entry in islice(places, bisect_right(places, (position, -1)), None):
            if before.returns_from_trap(self._history.pc(place - 1)):
                yield entry
                return

    def _code(self, entry: Path | RepeatPath) -> int:
        """1: its first instruction would count, 2: its last one speaks against one behind it; 4 times how many count,
        if nothing speaks against the first.
        """
        count = self._count(entry)
        return count.head | count.tail << 1 | count.after(tail=False) << 2

    def _of(self, entry: Path | RepeatPath) -> int:
        """How many count in an entry, if nothing speaks against its first instruction."""
        return self._count(entry).after(tail=False)

    def _all(self, part: _Part) -> int:
        """How many instructions of a part are wanted, whatever is before them."""
        if isinstance(part, RepeatPath):
            return part.times * self._all(part.path)
        known = self._some.get(id(part))
        if known is None:
            known = self._some[id(part)] = self._new_all(part)
        return known

    def _new_all(self, part: tuple[int, ...] | Path) -> int:
        if isinstance(part, tuple):
            return sum(map(self._wanted.addresses.__contains__, part))
        try:  # most paths consist of parts that other paths have, too
            return sum(map(self._some.__getitem__, map(id, part.parts)))
        except KeyError:
            return sum(map(self._all, part.parts))

    def _count(self, part: _Part) -> _Count:
        if isinstance(part, RepeatPath):
            unit = self._count(part.path)
            return _Count(unit.head, unit.inner + (part.times - 1) * unit.after(unit.tail), unit.tail)
        known = self._counts.get(id(part))
        if known is None:
            known = self._counts[id(part)] = self._new_count(part)
        return known

    def _new_count(self, part: tuple[int, ...] | Path) -> _Count:
        if not self._all(part):
            return _TAIL[self._ends_against(part)]
        if isinstance(part, tuple):
            return self._in_tuple(part)
        counts = [self._count(piece) for piece in part.parts if len(piece)]
        inner = counts[0].inner + sum(following.after(before.tail) for before, following in pairwise(counts))
        return _Count(counts[0].head, inner, counts[-1].tail)

    def _ends_against(self, part: tuple[int, ...] | Path) -> bool:
        """Whether the last instruction speaks against one behind it."""
        if isinstance(part, Path):
            return self._count(part.parts[-1]).tail if part.parts else False
        return bool(part) and part[-1] in self._wanted.not_after

    def _in_tuple(self, pcs: tuple[int, ...]) -> _Count:
        addresses, not_after = self._wanted.addresses, self._wanted.not_after
        head, *flags = map(addresses.__contains__, pcs)
        count = sum(flags)
        if count and not_after:
            count -= sum(flag and before in not_after for flag, before in zip(flags, pcs, strict=False))
        return _Count(head, count, pcs[-1] in not_after)

    def _place(self, part: _Part, number: int, tail: bool) -> int:
        """Where in a part the one with this number is. *tail*: what is before the part speaks against its first."""
        if isinstance(part, RepeatPath):
            return self._in_repetition(part, number, tail)
        if isinstance(part, tuple):
            return next(islice(self._places(part, tail), number, None))
        place = 0
        for piece in part.parts:
            count = self._count(piece)
            if number < count.after(tail):
                return place + self._place(piece, number, tail)
            number -= count.after(tail)
            place += len(piece)
            tail = count.tail
        raise AssertionError("the counts are wrong")

    def _in_repetition(self, part: RepeatPath, number: int, tail: bool) -> int:
        unit = self._count(part.path)
        if number < unit.after(tail):
            return self._place(part.path, number, tail)
        times, number = divmod(number - unit.after(tail), unit.after(unit.tail))
        return (times + 1) * part.path.count + self._place(part.path, number, unit.tail)

    def _places(self, pcs: tuple[int, ...], tail: bool) -> Iterator[int]:
        addresses, not_after = self._wanted.addresses, self._wanted.not_after
        before = chain([tail], (pc in not_after for pc in pcs))
        for k, (pc, against) in enumerate(zip(pcs, before, strict=False)):
            if pc in addresses and not against:
                yield k
