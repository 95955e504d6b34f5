"""A call of a function: from where to where it ran, what it called, and which of its instructions ran."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.rows.answers import FrameRow
from rvtrace_gdb.rows.list_rows import FunctionRow
from rvtrace_gdb.session.queries.lists.functions import FunctionList
from rvtrace_gdb.session.selected_history import SelectedHistory, functions_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress

_MOST = 4000
"""Rows of functions that are looked at: a longer call is not told to its end."""
_AT_ONCE = 200


class Invocation(NamedTuple):
    """*begin*, *end*: its first and its last instruction; None: not known, of the end with a reason.

    *children*: the number, the address and the trap, if it is one, of each function that it called. *addresses*: of the
    instructions that ran in itself.
    """

    begin: int | None
    end: int | None
    why: str
    children: list[tuple[int, int, str]]
    addresses: list[int]

    @classmethod
    def of_frame(
        cls,
        session: Session,
        selected: SelectedHistory,
        frame: FrameRow,
        call: int | None,
        number: int,
        progress: Progress,
    ) -> "Invocation":
        """Return the invocation of a frame at an instruction. *call*: the instruction that called it, if known."""
        functions = functions_of(session, selected, progress)
        begin = None if call is None else call + 1
        first = _number_of_row(functions, number if begin is None else begin)
        rows = _function_rows(functions, first)
        entry = next(rows)
        if entry.level is None or entry.pc in (None, GAP):
            return cls(begin, None, f"trace is lost at {entry.begin}", [], [])
        if begin is None and frame.number is not None:
            return cls(None, None, "its beginning is not known", [], list(entry.addresses))
        return _followed_call(entry, entry.level, rows, begin, progress)


def _followed_call(
    entry: FunctionRow, level: int, rows: Iterator[FunctionRow], begin: int | None, progress: Progress
) -> Invocation:
    children: list[tuple[int, int, str]] = []
    addresses, last = set(entry.addresses), entry
    for count, row in enumerate(rows):
        progress("following the call (functions)", count)
        found = children, sorted(addresses)
        if row.level is None or row.pc is None:
            return Invocation(begin, None, f"trace is lost at {row.begin}", *found)
        if row.level < level:
            return Invocation(begin, row.begin - 1, "", *found)
        if count >= _MOST:
            return Invocation(begin, None, f"it is still under way at {row.begin}, and not followed further", *found)
        if row.level == level:
            addresses.update(row.addresses)
        elif row.level == level + 1 and last.level == level:
            children.append((row.begin, row.pc, row.what))
        last = row
    return Invocation(begin, None, "it is still under way where the trace ends", children, sorted(addresses))


def _number_of_row(functions: FunctionList, number: int) -> int:
    """Return the number of the row that contains an instruction."""
    rows = range(1, len(functions) + 1)
    return max(bisect_right(rows, number, key=lambda row: functions.rows(row, row + 1)[0].begin), 1)


def _function_rows(functions: FunctionList, first: int) -> Iterator[FunctionRow]:
    for begin in range(first, len(functions) + 1, _AT_ONCE):
        yield from functions.rows(begin, min(begin + _AT_ONCE, len(functions) + 1), lines=True)
