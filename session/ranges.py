"""Which part of the history a listing shows: the arguments of gdb's `record instruction-history`.

Same arguments, same errors, same wording, so that whoever knows gdb's command knows ours. Checked against a transcript
of gdb 13.1 (tests/data/gdb-transcripts), with two deliberate differences: numbers are not cut to 32 bits, and the
number after the last one is out of bounds (in gdb it is the current instruction, for which gdb prints nothing at all).

Numbers count the positions of a `History` from 1, gaps included. Ranges are half-open: *end* is the number after the
last.
"""

import re
from typing import NamedTuple

from rvtrace_gdb.support.errors import RvtraceError

_RECORD, _LISTING = "branch trace record", "instruction-history"
_NUMBERS = "numbers go from 1 to {}"
ROWS = "rows of this list go from 1 to {} (behind @ is the number in the history)"
"""Of a list that has numbers of its own, and shows those of another."""

_NUMBER = re.compile(r"\s*([0-9]+)")


class RangeError(RvtraceError):
    """The argument of a history listing makes no sense, in gdb's words."""


class Selection(NamedTuple):
    """The positions numbered *begin* to *end* - 1 are to be shown; *notice* is said instead when there are none."""

    begin: int
    end: int
    notice: str | None = None


class Cursor:
    """What the last listing showed, from which the next one goes on. One per history: gdb and the console share it.

    The first listing is around the *home*: where the user is in the past, or the end. It becomes the first again when
    the home changes (gdb's record-btrace.c, record_btrace_target::insn_history and record_btrace_clear_histories).

    *record*: what gdb calls what is listed; *listing*: the command of gdb whose size it goes by, without "record";
    *numbers*: what the numbers count, and that they go to {}.
    """

    def __init__(self, record: str = _RECORD, listing: str = _LISTING, numbers: str = _NUMBERS) -> None:
        self._record, self._listing, self._numbers = record, listing, numbers
        self._shown: Selection | None = None
        self._home: int | None = None

    def reset(self) -> None:
        """Forget what was shown: the history has changed and the next listing starts at its end again."""
        self._shown = None

    def select(self, args: str, size: int | None, length: int, home: int | None = None) -> Selection:
        """What `record instruction-history ARGS` shows of *length* positions and move there; modifiers (/r) are not
        part of *args*.

        *size* is gdb's `record instruction-history-size`, None or 0 for unlimited. *home*: the number where the user
        is in the past, *length* + 1 where all has run; None: in the present. Raises `RangeError`, which leaves the
        cursor.
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
        else:
            selection = _within(*_explicit(args, size, self._listing), length, self._numbers)
        self._shown = selection
        return selection

    def _forward(self, size: int, length: int) -> Selection:
        if self._shown is None:
            return self._from_home(0, size, length)
        begin = self._shown.end
        end = min(begin + size, length + 1)
        return Selection(begin, end, f"At the end of the {self._record}." if begin == end else None)

    def _backward(self, size: int, length: int) -> Selection:
        if self._shown is None:
            return self._from_home(1 - size, size, length)
        end = self._shown.begin
        begin = max(end - size, 1)
        return Selection(begin, end, f"At the start of the {self._record}." if begin == end else None)

    def _from_home(self, first: int, size: int, length: int) -> Selection:
        """From *first* behind the home on, filled up from the other side where the history ends."""
        begin = max(min((self._home or length + 1) + first, length + 1 - size), 1)
        return Selection(begin, min(begin + size, length + 1))


def _explicit(args: str, size: int, listing: str) -> tuple[int, int]:
    """`A`, `A,B`, `A,+N` and `A,-N`: the first number, and the one behind the last."""
    first, rest = _number(args)
    if not rest.startswith(","):
        _nothing_follows(rest)
        return first, first + size
    rest = rest[1:].lstrip()
    if rest[:1] not in ("+", "-"):
        last, rest = _number(rest)
        _nothing_follows(rest)
        return first, last + 1
    forward = rest[0] == "+"
    count, rest = _number(rest[1:])
    _nothing_follows(rest)
    if count == 0:
        raise RangeError(f"Bad record {listing}-size.")
    if forward:
        return first, first + count
    # More than there are before A is an error in gdb, exactly as many is not.
    return first - count + 1 if first >= count else 0, first + 1


def _within(begin: int, end: int, length: int, numbers: str) -> Selection:
    """The end is cut silently, the beginning never."""
    if end <= begin:
        raise RangeError("Bad range.")
    if not 1 <= begin <= length:
        raise RangeError(f"Range out of bounds: {numbers.format(length)}.")
    return Selection(begin, min(end, length + 1))


def _number(text: str) -> tuple[int, str]:
    match = _NUMBER.match(text)
    if match is None:
        raise RangeError(f"Expected positive number, got: {text.lstrip()}.")
    # 40 digits are beyond any history, and Python refuses to convert thousands.
    return int(match[1].lstrip("0")[:40] or "0"), text[match.end() :]


def _nothing_follows(text: str) -> None:
    if text:
        raise RangeError(f"Junk after argument: {text}.")
