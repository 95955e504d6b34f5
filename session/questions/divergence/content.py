"""The content of paths, in a form in which two histories can be compared without going through their instructions.

What is compared are symbols: numbers that stand for instructions, in each of two programs for the same ones. An
instruction may have none, and is not compared then. A sequence of symbols has a polynomial hash, so that the hash of
what is put together, repeated or cut follows from the hashes of its parts. So it does not matter how a decoder has cut
a history into paths: the same run has the same hashes, whatever the format of its trace.

The modulus is a prime of 61 bits: two sequences of a billion symbols that differ have the same hash about once in 2**31
cases, and places that are shown are compared symbol by symbol besides.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from rvtrace_gdb.decode.history.history import Path, PathPart, RepeatPath

MODULUS = (1 << 61) - 1
_BASE = 0x1B873593_CC9E2D51 % MODULUS
_SMALL = [1]
for _ in range(1 << 12):
    _SMALL.append(_SMALL[-1] * _BASE % MODULUS)

_FLAT_AT_MOST = 512
"""So many symbols of a sequence are kept in one list when they are asked for."""

SymbolOfPc = Callable[[int], int | None]
"""Returns the symbol of the instruction at an address, None: it has none."""


def power(count: int) -> int:
    """Return by what a hash is multiplied when so many symbols are put behind it."""
    return _SMALL[count] if count <= 1 << 12 else pow(_BASE, count, MODULUS)


def joined_hash(head: int, tail: int, tail_count: int) -> int:
    """Return the hash of two sequences, one behind the other."""
    return (head * power(tail_count) + tail) % MODULUS


def tail_hash(hashed: int, head: int, tail_count: int) -> int:
    """Return the hash of the last *tail_count* symbols of a sequence, of which the whole has the hash *hashed*.
    *head*: the hash of those before them."""
    return (hashed - head * power(tail_count)) % MODULUS


class PathContent(ABC):
    """What is in a part of a history: *count* symbols with a *hash*, in *length* instructions."""

    __slots__ = ("count", "hash", "length", "power")

    def __init__(self, count: int, hashed: int, length: int) -> None:
        self.count, self.hash, self.length = count, hashed, length
        self.power = power(count)

    @abstractmethod
    def prefix(self, count: int) -> int:
        """Return the hash of the first *count* symbols."""

    @abstractmethod
    def place(self, symbol: int) -> int:
        """Return the index of the instruction that has the symbol with this index."""

    @abstractmethod
    def before(self, place: int) -> int:
        """Return how many symbols the first *place* instructions have."""

    @abstractmethod
    def take(self, into: list[int], first: int, last: int) -> None:
        """Append the symbols with the indices *first* to *last* - 1."""


class _InstructionContent(PathContent):
    """Consecutive instructions. *places*: which of them have symbols, None: all."""

    __slots__ = ("_hashes", "_places", "_symbols")

    def __init__(self, symbols: Sequence[int], places: Sequence[int] | None, length: int) -> None:
        hashed = 0
        for symbol in symbols:
            hashed = (hashed * _BASE + symbol) % MODULUS
        super().__init__(len(symbols), hashed, length)
        self._symbols, self._places = symbols, places
        self._hashes: list[int] | None = None

    def prefix(self, count: int) -> int:
        if self._hashes is None:
            self._hashes = list(
                accumulate(self._symbols, lambda hashed, symbol: (hashed * _BASE + symbol) % MODULUS, initial=0)
            )
        return self._hashes[count]

    def place(self, symbol: int) -> int:
        return symbol if self._places is None else self._places[symbol]

    def before(self, place: int) -> int:
        return place if self._places is None else bisect_right(self._places, place - 1)

    def take(self, into: list[int], first: int, last: int) -> None:
        into.extend(self._symbols[first:last])


class _JoinedContent(PathContent):
    """Contents, one behind the other."""

    __slots__ = ("_counts", "_flat", "_hashes", "_lengths", "_parts")

    def __init__(self, parts: Sequence[PathContent]) -> None:
        self._parts = parts
        self._counts = list(accumulate((part.count for part in parts), initial=0))
        self._lengths = list(accumulate((part.length for part in parts), initial=0))
        hashes = [0]
        for part in parts:
            hashes.append((hashes[-1] * part.power + part.hash) % MODULUS)
        self._hashes = hashes
        self._flat: list[int] | None = None
        super().__init__(self._counts[-1], hashes[-1], self._lengths[-1])

    def prefix(self, count: int) -> int:
        i = min(bisect_right(self._counts, count), len(self._parts)) - 1
        inside = count - self._counts[i]
        return self._hashes[i] if not inside else joined_hash(self._hashes[i], self._parts[i].prefix(inside), inside)

    def place(self, symbol: int) -> int:
        i = bisect_right(self._counts, symbol) - 1
        return self._lengths[i] + self._parts[i].place(symbol - self._counts[i])

    def before(self, place: int) -> int:
        if place >= self.length:
            return self.count
        i = bisect_right(self._lengths, place) - 1
        return self._counts[i] + self._parts[i].before(place - self._lengths[i])

    def take(self, into: list[int], first: int, last: int) -> None:
        if self.count <= _FLAT_AT_MOST:
            if self._flat is None:
                self._flat = []
                self._take_parts(self._flat, 0, self.count)
            into.extend(self._flat[first:last])
        else:
            self._take_parts(into, first, last)

    def _take_parts(self, into: list[int], first: int, last: int) -> None:
        i = bisect_right(self._counts, first) - 1
        while i < len(self._parts) and (begin := self._counts[i]) < last:
            part = self._parts[i]
            part.take(into, max(first - begin, 0), min(last - begin, part.count))
            i += 1


class _RepeatedContent(PathContent):
    """The same content, so many times."""

    __slots__ = ("_unit",)

    def __init__(self, unit: PathContent, times: int) -> None:
        self._unit = unit
        super().__init__(unit.count * times, _of_rounds(unit, times), unit.length * times)

    def prefix(self, count: int) -> int:
        if not self._unit.count:
            return 0
        times, inside = divmod(count, self._unit.count)
        return joined_hash(_of_rounds(self._unit, times), self._unit.prefix(inside), inside)

    def place(self, symbol: int) -> int:
        times, inside = divmod(symbol, self._unit.count)
        return times * self._unit.length + self._unit.place(inside)

    def before(self, place: int) -> int:
        times, inside = divmod(place, self._unit.length)
        return times * self._unit.count + self._unit.before(inside)

    def take(self, into: list[int], first: int, last: int) -> None:
        size = self._unit.count
        while first < last:
            times, inside = divmod(first, size)
            if not inside and last - first >= 2 * size:
                whole: list[int] = []
                self._unit.take(whole, 0, size)
                into.extend(whole * ((last - first) // size))
                first += (last - first) // size * size
                continue
            end = min(size, inside + last - first)
            self._unit.take(into, inside, end)
            first = times * size + end


def _of_rounds(unit: PathContent, times: int) -> int:
    """Return the hash of a content that comes *times* times: a geometric series, by doubling."""
    hashed, doubled, factor = 0, unit.hash, unit.power
    while times:
        if times & 1:
            hashed = (hashed * factor + doubled) % MODULUS
        doubled = (doubled * factor + doubled) % MODULUS
        factor = factor * factor % MODULUS
        times >>= 1
    return hashed


class PathContents:
    """The contents of the parts of a history, each made once. *symbol_of*: None: addresses are the symbols."""

    def __init__(self, symbol_of: SymbolOfPc | None = None) -> None:
        self._symbol_of = symbol_of
        self._known: dict[int, PathContent] = {}  # by id: the history keeps all parts

    def content(self, part: PathPart) -> PathContent:
        """Return the content of a part."""
        found = self._known.get(id(part))
        if found is None:
            found = self._known[id(part)] = self._new_content(part)
        return found

    def _new_content(self, part: PathPart) -> PathContent:
        if isinstance(part, RepeatPath):
            return _RepeatedContent(self.content(part.path), part.times)
        if isinstance(part, Path):
            parts = [self.content(inner) for inner in part.parts if len(inner)]
            return parts[0] if len(parts) == 1 else _JoinedContent(parts)
        if self._symbol_of is None:
            return _InstructionContent(part, None, len(part))
        symbols = list(map(self._symbol_of, part))
        places = [place for place, symbol in enumerate(symbols) if symbol is not None]
        return _InstructionContent([symbol for symbol in symbols if symbol is not None], places, len(part))
