"""Pages of a list in which what repeats itself is shown once: a trap loop makes thousands of rows that are the same.

A fold is a group of up to `_GROUP` rows that comes three times or more in direct succession, alike in all columns but
those of `MAY_DIFFER`. It begins with the first row that repeats itself, which shows how the program came there,
whichever way the pages are turned: what is left over of the last round is shown behind it. The level may rise by the
same number in each round, as where a trap handler traps itself.

Of functions, ordinary loops are not folded: only those with a trap in them, and one that has many rounds and in which
the list ends, where the program hangs.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise, takewhile
from operator import attrgetter
from typing import Any, NamedTuple

from rvtrace_gdb.rows.list_rows import Fold, FoundRow, FunctionRow
from rvtrace_gdb.session.queries.rows import Selection

Fetch = Callable[[int, int], Sequence[Any]]
MAY_DIFFER: dict[type[Any], frozenset[str]] = {
    FunctionRow: frozenset({"number", "begin", "end", "level"}),
    FoundRow: frozenset({"number", "position", "time", "offset", "facts"}),
}
"""The columns in which rows that are folded may differ. The text of a row has what is in its *facts* but for bytes of
the trace.
"""
_GROUP = 4
_LEAST = 3  # repetitions
_HANGS = 100
"""So many of a loop without a trap that the list ends in."""
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
        self._known: dict[int, _Chunk] = {}
        self.folds: list[Fold] = []
        self.numbers: list[tuple[int, int]] = []

    def page(self, place: int, size: int, *, forward: bool) -> Selection:
        """Return the page of *size* lines from row *place* on, or of those before it."""
        step = 1 if forward else -1
        at, lines = place if forward else place - 1, 0
        self._known.clear()
        self.folds, self.numbers = [], []
        while 1 <= at <= self._length and lines < size and abs(at - place) < _MOST:
            group, times, left_over = self._repetition(at, step)
            if not forward and left_over:
                rest = min(left_over, size - lines)
                self.numbers.append((at - rest + 1, at + 1))
                at, lines = at - rest, lines + rest
                continue
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

    def _repetition(self, at: int, step: int) -> tuple[int, int, int]:
        """Return the length of the group at a row, how many times it comes in succession, and how many rows of one more
        round there are: 1, 1, 0 for a single row.
        """
        for group in range(1, _GROUP + 1):
            if self._code(at) != self._code(at + step * group):
                continue
            is_ordinary = self._is_ordinary(at, step, group)
            if is_ordinary and step < 0 and self._length - at >= group:
                continue  # rows that are not counted for nothing: the list does not end in it
            same = self._same(at, step, group)
            times, left_over = same // group + 1, same % group
            hangs = times >= _HANGS and self._ends_in(at, step, group, same)
            if times >= _LEAST and (hangs or not is_ordinary):
                return group, times, left_over if same < _MOST else 0
        return 1, 1, 0

    def _same(self, at: int, step: int, group: int) -> int:
        """Return how many rows from one on are like those *group* rows further, all of them with one rise of levels."""
        rise = self._level(at + step * group) - self._level(at)
        if step * rise < 0:
            return 0
        ahead = islice(self._from(at, step), group, None)
        alike = (
            code == other and there - level == rise
            for (code, level), (other, there) in zip(self._from(at, step), ahead, strict=False)
        )
        return sum(1 for _ in takewhile(bool, islice(alike, _MOST)))

    def _from(self, at: int, step: int) -> Iterator[tuple[int, int]]:
        """Yield the codes and levels of the rows from one on, in a direction."""
        while 1 <= at <= self._length:
            number, place = divmod(at - 1, _CHUNK)
            chunk = self._chunk(at)
            part = slice(place, None) if step > 0 else slice(place, None, -1)
            yield from zip(chunk.codes[part], chunk.levels[part], strict=True)
            at = (number + 1) * _CHUNK + 1 if step > 0 else number * _CHUNK

    def _ends_in(self, at: int, step: int, group: int, same: int) -> bool:
        """Return whether the list ends in a repetition: of the last round some rows may be missing."""
        last = at + same + group - 1 if step > 0 else at
        most = last + group
        while last < most and self._code(last + 1) == self._code(last + 1 - group):
            last += 1
        return last == self._length

    def _is_ordinary(self, at: int, step: int, group: int) -> bool:
        """Return whether a group of rows is a round of an ordinary loop: of functions, without a trap."""
        rows = [self._row(at + step * number) for number in range(group)]
        return all(isinstance(row, FunctionRow) and not (row.what and row.pc is not None) for row in rows)

    def _fold(self, first: int, group: int, times: int) -> Fold:
        begins = [self._position(first + group * number) for number in range(times)]
        ways = [after - before for before, after in pairwise(begins)]
        deeper = self._level(first + group) - self._level(first)
        return Fold(first, group, times, begins[0], begins[-1], min(ways), max(ways), deeper)

    def _code(self, number: int) -> int:
        """Return what stands for all that a row shows; of a number without a row, its negative."""
        if not 1 <= number <= self._length:
            return -1 - abs(number)
        return self._chunk(number).codes[(number - 1) % _CHUNK]

    def _position(self, number: int) -> int:
        return self._chunk(number).positions[(number - 1) % _CHUNK]

    def _level(self, number: int) -> int:
        return self._chunk(number).levels[(number - 1) % _CHUNK] if 1 <= number <= self._length else 0

    def _chunk(self, number: int) -> "_Chunk":
        chunk = (number - 1) // _CHUNK
        known = self._known.get(chunk)
        if known is None:
            rows = self._fetch(chunk * _CHUNK + 1, min((chunk + 1) * _CHUNK, self._length) + 1)
            codes = array("q", (self._codes.setdefault(_compared(row), len(self._codes)) for row in rows))
            known = self._known[chunk] = _Chunk(codes, array("q", map(_begin, rows)), array("q", map(_level, rows)))
        return known

    def _row(self, number: int) -> Any:
        return self._fetch(number, number + 1)[0]


class _Chunk(NamedTuple):
    """Some rows: what each shows, as a number; its position in the history; and its level, 0 for a row without one."""

    codes: "array[int]"
    positions: "array[int]"
    levels: "array[int]"


def _compared(row: FoundRow | FunctionRow) -> tuple[Any, ...]:
    """Return the columns of a row in which those of a fold are alike."""
    return tuple(map(_fixed, _COMPARED[type(row)](row)))


_COMPARED: dict[type[Any], Callable[[Any], tuple[Any, ...]]] = {
    kind: attrgetter(*(name for name in kind._fields if name not in ignored)) for kind, ignored in MAY_DIFFER.items()
}


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _level(row: FoundRow | FunctionRow) -> int:
    return row.level if isinstance(row, FunctionRow) else 0


def _begin(row: FoundRow | FunctionRow) -> int:
    return row.begin if isinstance(row, FunctionRow) else row.position
