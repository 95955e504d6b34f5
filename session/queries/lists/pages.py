"""Pages of a list: the rows that a RANGE means, and pages in which what repeats itself is shown once.

The arguments of a list are those of gdb's `record instruction-history`, with the same errors in the same words, so
that users of gdb's command know this one. They are checked against a transcript of gdb 13.1
(tests/data/gdb-transcripts), with deliberate differences: numbers are not cut to 32 bits, the number after the last
one is out of bounds (in gdb it is the current instruction, for which gdb prints nothing at all), `A,-N` begins with
the first row where fewer than N end with A (gdb: out of bounds), and errors say more. Rows are numbered from 1; ranges
are half-open: *end* is the number after the last.

A trap loop makes thousands of rows that are the same. A fold is a group of up to `_GROUP` rows that comes three times
or more in direct succession, alike in all columns but those of `MAY_DIFFER`. It begins with the first row that repeats
itself, which shows how the program came there, whichever way the pages are turned: what is left over of the last round
is shown behind it. The level may rise by the same number in each round, as where a trap handler traps itself.

Of functions, ordinary loops are not folded: only those with a trap in them, and one that has many rounds and in which
the list ends, where the program hangs.
"""

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise, takewhile
from operator import attrgetter
from typing import Any, NamedTuple

from rvtrace_gdb.rows.list_rows import Fold, FoundRow, FunctionRow
from rvtrace_gdb.support.errors import RvtraceError

_RECORD, _LISTING = "branch trace record", "instruction-history"
_NUMBERS = "numbers go from 1 to {}"
LIST_NUMBERS = "rows of this list go from 1 to {} (the number after @ is that in the history)"
"""The listing mode for lists with numbers of their own that show rows of another list."""

_NUMBER = re.compile(r"\s*([0-9]+)")
_NEWEST = re.compile(r"-0*([1-9][0-9]*)")
"""`-N`, the newest N, as at the shell: gdb has `-` alone, the page before."""


class RangeError(RvtraceError):
    """The range of a list is invalid; the message is gdb's."""


class PageSelection(NamedTuple):
    """The positions numbered *begin* to *end* - 1 are to be shown; *notice* is printed instead if there are none."""

    begin: int
    end: int
    notice: str | None = None


class Cursor:
    """The page that was shown last, after which the next one begins. One per history: gdb and the console share it.

    The first page is around the *home*: the position in the past, or the end. After the home has changed, the next page
    is a first page again (gdb's record-btrace.c, record_btrace_target::insn_history and record_btrace_clear_histories).

    *record*: gdb's name of what is listed; *listing*: the gdb command whose size applies, without "record"; *numbers*:
    a text that says what the numbers count, and that they go to {}.
    """

    def __init__(self, record: str = _RECORD, listing: str = _LISTING, numbers: str = _NUMBERS) -> None:
        self._record, self._listing, self._numbers = record, listing, numbers
        self._shown: PageSelection | None = None
        self._home: int | None = None

    def reset(self, begin: int | None = None) -> None:
        """Forget the last page: the history has changed and the next page starts at its end again, or at *begin*."""
        self._shown = None if begin is None else PageSelection(begin, begin)

    def select(self, args: str, size: int | None, length: int, home: int | None = None) -> PageSelection:
        """Return what `record instruction-history ARGS` shows of *length* positions, and move there. Modifiers (/r) are
        not part of *args*.

        *size* is gdb's `record instruction-history-size`, None or 0 for unlimited. *home*: the number of the position
        in the past, *length* + 1 after the last instruction; None: in the present. Raises `RangeError`, which does not
        move the cursor.
        """
        if length == 0:
            raise RangeError("No trace.")
        if home != self._home:
            self._shown, self._home = None, home
        args = args.strip()
        size = size or length
        if args in ("", "+"):
            selection = self._forward(size, length)
        elif args == "-":
            selection = self._backward(size, length)
        elif (newest := _NEWEST.fullmatch(args)) is not None:
            selection = PageSelection(max(length + 1 - int(newest[1][:40]), 1), length + 1)
        else:
            selection = _within(*_explicit(args, size, self._listing), length, self._numbers)
        self._shown = selection
        return selection

    def turn(self, args: str, length: int, page: Callable[[int, bool], PageSelection]) -> PageSelection:
        """Return the page for `""`, `+` or `-`, and move there. *page*: returns that from a number on (True), or the
        one before it.
        """
        shown = self._shown
        if shown is None:
            selection = page(length + 1, False)
        elif args == "-":
            at_start = PageSelection(1, 1, f"At the start of the {self._record}.")
            selection = page(shown.begin, False) if shown.begin > 1 else at_start
        else:
            at_end = PageSelection(length + 1, length + 1, f"At the end of the {self._record}.")
            selection = page(shown.end, True) if shown.end <= length else at_end
        self._shown = selection
        return selection

    def _forward(self, size: int, length: int) -> PageSelection:
        if self._shown is None:
            return self._from_home(0, size, length)
        begin = self._shown.end
        end = min(begin + size, length + 1)
        return PageSelection(begin, end, f"At the end of the {self._record}." if begin == end else None)

    def _backward(self, size: int, length: int) -> PageSelection:
        if self._shown is None:
            return self._from_home(1 - size, size, length)
        end = self._shown.begin
        begin = max(end - size, 1)
        return PageSelection(begin, end, f"At the start of the {self._record}." if begin == end else None)

    def _from_home(self, first: int, size: int, length: int) -> PageSelection:
        """Return a page from *first* after the home on, extended to the other side where the history ends."""
        begin = max(min((self._home or length + 1) + first, length + 1 - size), 1)
        return PageSelection(begin, min(begin + size, length + 1))


def _explicit(args: str, size: int, listing: str) -> tuple[int, int]:
    """Parse `A`, `A,B`, `A,+N` and `A,-N`: return the first number, and the one after the last."""
    first, rest = _leading_number(args)
    if not rest.startswith(","):
        _nothing_follows(rest)
        return first, first + size
    rest = rest[1:].lstrip()
    if rest[:1] not in ("+", "-"):
        last, rest = _leading_number(rest)
        _nothing_follows(rest)
        return first, last + 1
    forward = rest[0] == "+"
    count, rest = _leading_number(rest[1:])
    _nothing_follows(rest)
    if count == 0:
        raise RangeError(f"Bad record {listing}-size.")
    if forward:
        return first, first + count
    return min(max(first - count + 1, 1), first), first + 1


def _within(begin: int, end: int, length: int, numbers: str) -> PageSelection:
    """Return the selection; an end that is too high is cut silently, a beginning that is too high is not."""
    if end <= begin:
        raise RangeError(f"Bad range: its end, {end - 1}, is before its beginning, {begin}.")
    if not 1 <= begin <= length:
        raise RangeError(f"Range out of bounds: {numbers.format(length)}.")
    return PageSelection(begin, min(end, length + 1))


def _leading_number(text: str) -> tuple[int, str]:
    match = _NUMBER.match(text)
    if match is None:
        raise RangeError(f"Expected positive number, got: {text.lstrip()}.")
    # A number of 40 digits exceeds any history, and Python refuses to convert thousands.
    return int(match[1].lstrip("0")[:40] or "0"), text[match.end() :]


def _nothing_follows(text: str) -> None:
    if text:
        raise RangeError(f"Junk after argument: {text}.")


RowFetch = Callable[[int, int], Sequence[Any]]
"""Returns the rows from a number (inclusive) to another (exclusive)."""
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

    def __init__(self, fetch: RowFetch, length: int) -> None:
        self._fetch, self._length = fetch, length
        self._codes: dict[Any, int] = {}
        self._numbers: dict[int, _Chunk] = {}
        self.folds: list[Fold] = []
        self.numbers: list[tuple[int, int]] = []

    def page(self, place: int, size: int, *, forward: bool) -> PageSelection:
        """Return the page of *size* lines from row *place* on, or of those before it."""
        step = 1 if forward else -1
        at, lines = place if forward else place - 1, 0
        self._numbers.clear()
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
        return PageSelection(begin, end)

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
        return Fold(
            number=first,
            lines=group,
            times=times,
            begin=begins[0],
            end=begins[-1],
            shortest=min(ways),
            longest=max(ways),
            deeper=self._level(first + group) - self._level(first),
        )

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
        known = self._numbers.get(chunk)
        if known is None:
            rows = self._fetch(chunk * _CHUNK + 1, min((chunk + 1) * _CHUNK, self._length) + 1)
            codes = array("q", (self._codes.setdefault(_compared(row), len(self._codes)) for row in rows))
            known = self._numbers[chunk] = _Chunk(
                codes, array("q", map(_row_begin, rows)), array("q", map(_level, rows))
            )
        return known

    def _row(self, number: int) -> object:
        return self._fetch(number, number + 1)[0]


class _Chunk(NamedTuple):
    """Some rows: what each shows, as a number; its position in the history; and its level, 0 for a row without one."""

    codes: "array[int]"
    positions: "array[int]"
    levels: "array[int]"


def _compared(row: FoundRow | FunctionRow) -> tuple[object, ...]:
    """Return the columns of a row in which those of a fold are alike."""
    return tuple(map(_fixed, _COMPARED[type(row)](row)))


_COMPARED: dict[type[object], Callable[[object], tuple[object, ...]]] = {
    kind: attrgetter(*(name for name in kind._fields if name not in ignored)) for kind, ignored in MAY_DIFFER.items()
}


def _fixed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _level(row: FoundRow | FunctionRow) -> int:
    return (row.level or 0) if isinstance(row, FunctionRow) else 0


def _row_begin(row: FoundRow | FunctionRow) -> int:
    return row.begin if isinstance(row, FunctionRow) else row.position
