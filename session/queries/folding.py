"""Pages of a list in which what repeats itself is shown once: a trap loop makes thousands of rows that are the same.

A fold is a group of up to `_GROUP` rows that comes three times or more in direct succession, alike in all but number,
position, time and byte of the trace.
"""

from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from rvtrace_gdb.gdbext.rows import Fold, FoundRow, FunctionRow
from rvtrace_gdb.session.queries.rows import Selection

Fetch = Callable[[int, int], Sequence[Any]]
_GROUP = 4
_LEAST = 3  # repetitions
_CHUNK = 512
_MOST = 1 << 18
"""Rows that one page looks at: a longer repetition goes on in the next page."""


class Folding:
    """The pages of a list of *length* rows, of which *fetch* returns those numbered begin to end - 1.

    *folds*, *numbers*: those of the page that was made last: the folds in it, and the rows that are shown.
    """

    def __init__(self, fetch: Fetch, length: int) -> None:
        self._fetch, self._length = fetch, length
        self._codes: dict[Any, int] = {}
        self._known: dict[int, tuple[array[int], array[int]]] = {}  # by chunk: what each row shows, and its position
        self.folds: list[Fold] = []
        self.numbers: list[tuple[int, int]] = []

    def page(self, place: int, size: int, *, forward: bool) -> Selection:
        """Return the page of *size* lines from row *place* on, or of those before it."""
        step = 1 if forward else -1
        at, lines = place if forward else place - 1, 0
        self._known.clear()
        self.folds, self.numbers = [], []
        while 1 <= at <= self._length and lines < size and abs(at - place) < _MOST:
            group, times = self._repetition(at, step)
            first = at if forward else at - group * times + 1
            if times > 1:
                self.folds.append(self._fold(first, group, times))
            self.numbers.append((first, first + group))
            at += step * group * times
            lines += group
        begin, end = (place, at) if forward else (at + 1, place)
        self.folds.sort()
        self.numbers.sort()
        return Selection(begin, end)

    def _repetition(self, at: int, step: int) -> tuple[int, int]:
        """Return the length of the group at a row, and how many times it comes in succession: 1, 1 for a single row."""
        for group in range(1, _GROUP + 1):
            same = 0
            while same < _MOST and self._code(at + step * same) == self._code(at + step * (same + group)):
                same += 1
            times = same // group + 1
            if times >= _LEAST and self._folds_well(at, step, group):
                return group, times
        return 1, 1

    def _folds_well(self, at: int, step: int, group: int) -> bool:
        """Return whether a repetition is worth folding: of functions, only one with a trap is no ordinary loop."""
        rows = [self._row(at + step * number) for number in range(group)]
        return any(not isinstance(row, FunctionRow) or (row.what and row.pc is not None) for row in rows)

    def _fold(self, first: int, group: int, times: int) -> Fold:
        begins = [self._position(first + group * number) for number in range(times)]
        ways = [after - before for before, after in pairwise(begins)]
        return Fold(first, group, times, begins[0], begins[-1], min(ways), max(ways))

    def _code(self, number: int) -> int:
        """Return what stands for all that a row shows; of a number without a row, its negative."""
        if not 1 <= number <= self._length:
            return -1 - abs(number)
        return self._chunk(number)[0][(number - 1) % _CHUNK]

    def _position(self, number: int) -> int:
        return self._chunk(number)[1][(number - 1) % _CHUNK]

    def _chunk(self, number: int) -> "tuple[array[int], array[int]]":
        chunk = (number - 1) // _CHUNK
        known = self._known.get(chunk)
        if known is None:
            rows = self._fetch(chunk * _CHUNK + 1, min((chunk + 1) * _CHUNK, self._length) + 1)
            codes = array("q", (self._codes.setdefault(_shown(row), len(self._codes)) for row in rows))
            known = self._known[chunk] = codes, array("q", map(_begin, rows))
        return known

    def _row(self, number: int) -> Any:
        return self._fetch(number, number + 1)[0]


def _shown(row: FoundRow | FunctionRow) -> tuple[Any, ...]:
    if isinstance(row, FunctionRow):
        return row.pc, row.level, row.what, row.name
    return _fixed(row.here), row.kind, row.text, _fixed(row.source), _fixed(row.target), _fixed(row.expected)


def _fixed(place: Any) -> Any:
    return tuple(place) if isinstance(place, list) else place


def _begin(row: FoundRow | FunctionRow) -> int:
    return row.begin if isinstance(row, FunctionRow) else row.position
