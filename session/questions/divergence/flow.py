"""What is compared of a hart: its history without interrupts, cut where trace is lost."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.questions.divergence.content import MODULUS, PathContents, SymbolOfPc, joined_hash, tail_hash
from rvtrace_gdb.support.errors import Progress, silent

_BLOCK = 1 << 15  # entries between two calls of the progress
_DIRECT = 24  # symbols that are compared one by one before hashes are
_STEP = 64  # symbols that are compared by their hash first


class HistorySymbols:
    """The symbols of all instructions of a history, in order. Raises what *progress* raises."""

    def __init__(self, history: History, symbol_of: SymbolOfPc | None, progress: Progress = silent) -> None:
        self.history = history
        self._contents = PathContents(symbol_of)
        self._all = symbol_of is None
        self._positions, self._counts, self._hashes = array("Q"), array("Q"), array("Q")
        self._index(progress)

    def _index(self, progress: Progress) -> None:
        position = count = hashed = 0
        entries, of = self.history.entries, self._contents.content
        positions, counts, hashes = self._positions, self._counts, self._hashes
        for start in range(0, len(entries), _BLOCK):
            progress("reading what ran (parts)", start, len(entries))
            for entry in entries[start : start + _BLOCK]:
                positions.append(position)
                counts.append(count)
                hashes.append(hashed)
                content = of(entry)
                position += content.length
                count += content.count
                hashed = (hashed * content.power + content.hash) % MODULUS
        self._length = count
        self._hash = hashed

    def __len__(self) -> int:
        return self._length

    def before(self, position: int) -> int:
        """Return how many symbols the instructions before a position have."""
        if self._all:
            return position
        if position >= len(self.history):
            return self._length
        i = bisect_right(self._positions, position) - 1
        return self._counts[i] + self._contents.content(self.history.entries[i]).before(position - self._positions[i])

    def position(self, symbol: int) -> int:
        """Return the position of the instruction that has the symbol with this index; that after the last: the end."""
        if self._all:
            return symbol
        if symbol >= self._length:
            return len(self.history)
        i = bisect_right(self._counts, symbol) - 1
        return self._positions[i] + self._contents.content(self.history.entries[i]).place(symbol - self._counts[i])

    def prefix(self, count: int) -> int:
        """Return the hash of the first *count* symbols."""
        if count >= self._length:
            return self._hash
        i = bisect_right(self._counts, count) - 1
        inside = count - self._counts[i]
        if not inside:
            return self._hashes[i]
        return joined_hash(self._hashes[i], self._contents.content(self.history.entries[i]).prefix(inside), inside)

    def take(self, into: list[int], first: int, last: int) -> None:
        """Append the symbols with the indices *first* to *last* - 1."""
        last = min(last, self._length)
        if first >= last:
            return
        i = bisect_right(self._counts, first) - 1
        entries = self.history.entries
        while i < len(entries) and (begin := self._counts[i]) < last:
            content = self._contents.content(entries[i])
            content.take(into, max(first - begin, 0), min(last - begin, content.count))
            i += 1


class FlowCut(NamedTuple):
    """Positions *begin* to *end* - 1 of a history that are not compared. *lost*: because what ran there is missing."""

    begin: int
    end: int
    lost: bool


class Flow:
    """The symbols of a history but for what *cuts* leave out, with an index from 0 on.

    breaks  the indices in front of which something is lost
    """

    def __init__(self, symbols: HistorySymbols, cuts: Iterable[FlowCut]) -> None:
        self.symbols, self.history = symbols, symbols.history
        self._begins, self._ends = array("Q"), array("Q")  # the symbols of each piece
        self._starts, self._hashes = array("Q"), array("Q")  # the index at which it begins, and the hash of all before
        self._length = self._whole = 0
        lost: set[int] = set()
        at = 0
        for one in _united(cuts):
            self._add_piece(at, one.begin)
            if one.lost:
                lost.add(self._length)
            at = one.end
        self._add_piece(at, len(self.history))
        self.breaks: Sequence[int] = sorted(lost)

    def _add_piece(self, begin: int, end: int) -> None:
        """Add the symbols of some positions."""
        if begin >= end:
            return
        first, last = self.symbols.before(begin), self.symbols.before(end)
        if first == last:
            return
        self._begins.append(first)
        self._ends.append(last)
        self._starts.append(self._length)
        self._hashes.append(self._whole)
        self._whole = joined_hash(self._whole, self._piece_hash(first, last), last - first)
        self._length += last - first

    def _piece_hash(self, first: int, last: int) -> int:
        return tail_hash(self.symbols.prefix(last), self.symbols.prefix(first), last - first)

    @property
    def is_whole(self) -> bool:
        """Whether each instruction has a symbol."""
        return len(self.symbols) == len(self.history)

    def __len__(self) -> int:
        return self._length

    def prefix(self, count: int) -> int:
        """Return the hash of the first *count* symbols."""
        if count >= self._length:
            return self._whole
        k = bisect_right(self._starts, count) - 1
        inside = count - self._starts[k]
        if not inside:
            return self._hashes[k]
        return joined_hash(self._hashes[k], self._piece_hash(self._begins[k], self._begins[k] + inside), inside)

    def hash_of(self, first: int, count: int) -> int:
        """Return the hash of *count* symbols from an index on."""
        return tail_hash(self.prefix(first + count), self.prefix(first), count)

    def take(self, first: int, count: int) -> list[int]:
        """Return *count* symbols from an index on, or as many as there are."""
        found: list[int] = []
        last = min(first + count, self._length)
        k = bisect_right(self._starts, first) - 1
        while k < len(self._starts) and (start := self._starts[k]) < last:
            begin = self._begins[k]
            self.symbols.take(found, begin + max(first - start, 0), min(self._ends[k], begin + last - start))
            k += 1
        return found

    def position(self, index: int) -> int:
        """Return the position of the symbol with an index; of that after the last: the end of the history."""
        if index >= self._length:
            return len(self.history)
        k = bisect_right(self._starts, index) - 1
        return self.symbols.position(self._begins[k] + index - self._starts[k])

    def index(self, position: int) -> int | None:
        """Return the index of the symbol of the instruction at a position, None: it is not compared."""
        symbol = self.symbols.before(position)
        k = bisect_right(self._begins, symbol) - 1
        if k < 0 or symbol >= self._ends[k] or self.symbols.position(symbol) != position:
            return None
        return self._starts[k] + symbol - self._begins[k]

    def index_from(self, position: int) -> int:
        """Return the index of the first symbol that is compared at or after a position."""
        symbol = self.symbols.before(position)
        k = bisect_right(self._begins, symbol) - 1
        if k >= 0 and symbol < self._ends[k]:
            return self._starts[k] + symbol - self._begins[k]
        return self._starts[k + 1] if k + 1 < len(self._starts) else self._length

    def next_break(self, index: int) -> int:
        """Return the first index after this one in front of which something is lost, or the length."""
        i = bisect_right(self.breaks, index)
        return self.breaks[i] if i < len(self.breaks) else self._length

    def is_break(self, index: int) -> bool:
        """Return whether something is lost in front of an index."""
        i = bisect_left(self.breaks, index)
        return i < len(self.breaks) and self.breaks[i] == index


def _united(cuts: Iterable[FlowCut]) -> Iterator[FlowCut]:
    """Yield cuts in order; those that overlap or touch become one."""
    current: FlowCut | None = None
    for one in sorted(cuts):
        if current is None or one.begin > current.end:
            if current is not None:
                yield current
            current = one
        else:
            current = FlowCut(current.begin, max(current.end, one.end), current.lost or one.lost)
    if current is not None:
        yield current


def common(one: Flow, i: int, other: Flow, j: int, most: int) -> int:
    """Return how many symbols from these indices on are the same, at most *most*, and no more than both have."""
    most = min(most, len(one) - i, len(other) - j)
    direct = min(most, _DIRECT)
    found = _same(one.take(i, direct), other.take(j, direct))
    if found < direct or found >= most:
        return max(min(found, most), 0)
    step = _STEP
    while found < most:
        size = min(step, most - found)
        if one.hash_of(i + found, size) != other.hash_of(j + found, size):
            return found + _common_in(one, i + found, other, j + found, size)
        found += size
        step *= 4
    return found


def _common_in(one: Flow, i: int, other: Flow, j: int, size: int) -> int:
    """Return how many symbols are the same, where the first *size* are not."""
    found = 0
    while size > _DIRECT:
        half = size // 2
        if one.hash_of(i + found, half) == other.hash_of(j + found, half):
            found += half
            size -= half
        else:
            size = half
    return found + _same(one.take(i + found, size), other.take(j + found, size))


def common_before(one: Flow, i: int, other: Flow, j: int, most: int) -> int:
    """Return how many symbols in front of these indices are the same, at most *most*."""
    most = min(most, i, j)
    found, step = 0, 1
    while found < most:
        size = min(step, most - found)
        if one.hash_of(i - found - size, size) != other.hash_of(j - found - size, size):
            if size == 1:
                return found
            step = max(size // 2, 1)
            most = found + size - 1
            continue
        found += size
        step *= 2
    return found


def _same(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many numbers are the same from the beginning on."""
    if one == other:
        return len(one)
    return next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
