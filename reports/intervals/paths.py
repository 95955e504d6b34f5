"""The ways that intervals took: those that ran the same instructions in the same order took the same way.

Ways are compared by a hash of their addresses and by their length. The hash of a sequence follows from those of its
pieces, so each shared part of the history is hashed once; then one look-up for each entry gives the hash of all that
ran up to any position, and the difference of two of these is that of an interval. Two ways are taken for one with a
probability of 1 : 10**18 for each pair.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History, PathPart, RepeatPath
from rvtrace_gdb.reports.intervals.intervals import HistoryIntervals
from rvtrace_gdb.support.errors import Progress, silent

_PRIME = (1 << 61) - 1
_BASE = 0x1B0C_D3A9_6E51_7F27 % _PRIME
_EVERY = 1 << 14  # entries between two calls of the progress


class Variation(NamedTuple):
    """Intervals that took the same way. *length*: of each, in instructions; *numbers*: which, in order."""

    length: int
    numbers: "array[int]"



def variations(history: History, intervals: HistoryIntervals, progress: Progress = silent) -> list[Variation]:
    """Return the different ways of intervals, those that were taken most often first. Raises what *progress* raises."""
    hashes = _hashes_up_to(history, {*intervals.begins, *intervals.ends}, progress)
    ways: defaultdict[tuple[int, int], array[int]] = defaultdict(lambda: array("Q"))
    for number, (begin, end) in enumerate(zip(intervals.begins, intervals.ends, strict=True)):
        length = end - begin
        way = (hashes[end] - hashes[begin] * pow(_BASE, length, _PRIME)) % _PRIME
        ways[length, way].append(number)
    found = [Variation(length, numbers) for (length, _), numbers in ways.items()]
    return sorted(found, key=lambda one: (-len(one.numbers), one.length, one.numbers[0]))


def _hashes_up_to(history: History, positions: set[int], progress: Progress) -> dict[int, int]:
    """Return the hash of everything before each of some positions."""
    hashes, parts, entries = dict[int, int](), _PartHashes(), history.entries
    wanted, now, position, number = sorted(positions), 0, 0, 0
    if wanted and wanted[0] < len(history):  # what ran before the first interval does not matter
        number, position = history.entry_at(wanted[0])
    for place in wanted:
        while number < len(entries) and position + entries[number].count <= place:
            if number % _EVERY == 0:
                progress("comparing ways (parts)", number, len(entries))
            power, value = parts.of_part(entries[number])
            now = (now * power + value) % _PRIME
            position += entries[number].count
            number += 1
        power, value = parts.of_beginning(entries[number], place - position) if place > position else (1, 0)
        hashes[place] = (now * power + value) % _PRIME
    return hashes


_Hash = tuple[int, int]
"""The power of the base for the length of a sequence, and the hash of the sequence."""


class _PartHashes:
    """The hashes of the parts of a history, and of their beginnings."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], _Hash] = {}  # by the id of the part, which the history keeps, and the length

    def of_part(self, part: PathPart) -> _Hash:
        """Return the hash of a part."""
        return self.of_beginning(part, len(part))

    def of_beginning(self, part: PathPart, length: int) -> _Hash:
        """Return the hash of the first instructions of a part."""
        known = self._known.get((id(part), length))
        if known is None:
            known = self._known[id(part), length] = self._new(part, length)
        return known

    def _new(self, part: PathPart, length: int) -> _Hash:
        power, value = 1, 0
        for more, other in self._hashes(part, length):
            power, value = power * more % _PRIME, (value * more + other) % _PRIME
        return power, value

    def _hashes(self, part: PathPart, length: int) -> Iterator[_Hash]:
        if isinstance(part, tuple):
            for pc in part[:length]:
                yield _BASE, (pc + 1) % _PRIME
        elif isinstance(part, RepeatPath):
            rounds, rest = divmod(length, part.path.count)
            yield _repeated(self.of_part(part.path), rounds)
            if rest:
                yield self.of_beginning(part.path, rest)
        else:
            yield from self._hashes_in_path(part.parts, length)

    def _hashes_in_path(self, parts: Sequence[PathPart], length: int) -> Iterator[_Hash]:
        for part in parts:
            if not length:
                return
            taken = min(length, len(part))
            if taken:
                yield self.of_beginning(part, taken)
            length -= taken


def _repeated(unit: _Hash, times: int) -> _Hash:
    """Return the hash of a sequence, so many times."""
    power, value, result = 1, 0, unit
    while times:
        if times & 1:
            power, value = power * result[0] % _PRIME, (value * result[0] + result[1]) % _PRIME
        result = (result[0] * result[0] % _PRIME, (result[1] * result[0] + result[1]) % _PRIME)
        times >>= 1
    return power, value
