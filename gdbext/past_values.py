"""Values of the past that gdb evaluates itself, one place after the other, without a stop at each.

gdb must be in the past. The session is told to show it another place (`show_place`), gdb forgets its registers and
memory, and evaluates. At the end it sees the place where it was again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.harts import selected_hart
from rvtrace_gdb.gdbext.paged_list import PagedList, page_size, print_row_line
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.text import columns
from rvtrace_gdb.gdbext.tracer import GdbProgressLine, tracer
from rvtrace_gdb.rows.list_rows import ROWS_AT_ONCE, LoggedRow

UNAVAILABLE = "<unavailable>"
_RANGE = re.compile(r"([0-9]+)(?:\s*,\s*([-+]?)([0-9]+))?")
_NOT_KNOWN = re.compile(r"not available|<unavailable>|optimized out|Cannot access memory")


def show_log(
    command: gdb.Command, parameters: dict[str, Any], numbers: str, why: str, since: dict[str, int]
) -> None:
    """Print a log with values of gdb's own. *why*: the session does not evaluate it. Raises gdb.GdbError."""
    command.dont_repeat()
    if position.number() is None:
        raise gdb.GdbError(f"{why.rstrip('.')}. In the past, gdb itself may understand it: `trace goto end` first.")
    _check_harmless([*parameters["expressions"], parameters["condition"]], why)
    places = PagedList("log", **{**parameters, "expressions": [], "condition": "", "letter": ""}, **since)
    first = places.page(args="1", size=1)
    if not first.length:
        print_row_line(first.notice or "")
        return
    if selected_hart() not in (None, first.hart):
        raise gdb.GdbError(why)
    rows = _numbered_rows(places, first.length, first.hart)
    if not parameters["condition"]:
        begin, end = _range_ends(numbers, first.length)
        for row in _evaluated(rows, parameters, range(begin, end)):
            print_row_line(_row_text(row))
        return
    kept = list(_evaluated(rows, parameters, range(1, first.length + 1)))
    begin, end = _range_ends(numbers, len(kept))
    for number, row in enumerate(kept[begin - 1 : end - 1], begin):
        print_row_line(_row_text(row._replace(number=number)))


_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)+'|"(?:[^"\\]|\\.)*\"""")
_CHANGES = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|<<=|>>=|(?<![$\w])(?!sizeof\b)[A-Za-z_]\w*\s*\(|[\])]\s*\(")


def _check_harmless(expressions: list[str], why: str) -> None:
    """Raise gdb.GdbError for what may change the program, or run it: gdb would try that in the past."""
    if any(_CHANGES.search(_QUOTED.sub("", it)) for it in expressions):
        raise gdb.GdbError(why)


def _numbered_rows(places: PagedList, length: int, hart: int | None) -> dict[int, LoggedRow]:
    """Return the rows of a list by their numbers, each piece requested when it is needed."""

    class Pieces(dict):  # type: ignore[type-arg] # Python 3.8
        def __missing__(self, number: int) -> LoggedRow:
            begin = number - (number - 1) % ROWS_AT_ONCE
            self.clear()
            for row in places.rows(begin, min(begin + ROWS_AT_ONCE, length + 1), hart).rows:
                self[row.number] = row
            found: LoggedRow = dict.__getitem__(self, number)
            return found

    return Pieces()


def _evaluated(rows: dict[int, LoggedRow], parameters: dict[str, Any], numbers: range) -> Iterator[LoggedRow]:
    progress = GdbProgressLine()
    progress.begin("evaluating")
    begun = False
    try:
        with _looking_around() as show:
            for number in numbers:
                row = rows[number]
                progress("evaluating in gdb (times)", number - numbers.start, len(numbers))
                if not isinstance(row.here, str):
                    show(row.position)
                    why = _condition(parameters["condition"])
                    if why is None:
                        continue
                    row = row._replace(text=_text(parameters, is_first=not begun), why=why)
                    begun = True
                yield row
    finally:
        progress.end()


@contextlib.contextmanager
def _looking_around() -> Iterator[Any]:
    hart, here = selected_hart(), position.number()

    def show(number: int) -> None:
        tracer().request("show_place", thread_hart=hart, number=number)
        neutral.printed("maint flush register-cache")
        neutral.printed("maint flush dcache")

    try:
        yield show
    finally:
        if here is not None:
            show(here)


def _condition(text: str) -> str | None:
    """Return "" where a condition holds, why that is not known, or None where it does not hold."""
    if not text:
        return ""
    try:
        value = neutral.evaluate(text)
        return "" if bool(value) else None
    except gdb.error:
        return f"{text} is not known"


def _text(parameters: dict[str, Any], *, is_first: bool) -> str:
    """Return what is printed. *is_first*: what is an error is one of the question then. Raises gdb.GdbError."""
    expressions: list[str] = parameters["expressions"]
    if expressions[0].startswith('"'):
        return _printed(f"printf {', '.join(expressions)}", is_first).rstrip("\n")
    form = f"/{parameters['letter']}" if parameters["letter"] else ""
    return ", ".join(f"{it} = {_printed(f'output{form} {it}', is_first)}" for it in expressions)


def _printed(command: str, is_first: bool) -> str:
    try:
        return "\n".join(map(columns, neutral.printed(command).split("\n")))
    except gdb.error as error:
        text = str(error)
        if is_first and not _NOT_KNOWN.search(text):
            raise gdb.GdbError(f"trace log: {text}") from None
        return UNAVAILABLE if _NOT_KNOWN.search(text) else f"<error: {text}>"


def _row_text(row: LoggedRow) -> str:
    from rvtrace_gdb.gdbext.listing import GdbSymbols
    from rvtrace_gdb.rows.list_text import row_line

    return row_line(row, GdbSymbols())


def _range_ends(numbers: str, length: int) -> tuple[int, int]:
    """Return the first row of a RANGE and the one behind its last. Raises gdb.GdbError."""
    size = page_size() or length
    given = _RANGE.fullmatch(numbers)
    if given is None:
        return max(length - size + 1, 1), length + 1
    begin, sign, count = int(given[1]), given[2], given[3]
    end = begin + size if count is None else int(count) + 1
    if sign == "+":
        end = begin + int(count)
    elif sign == "-":
        begin, end = max(begin - int(count) + 1, 1), begin + 1
    if not 1 <= begin <= length:
        raise gdb.GdbError(f"Range out of bounds: numbers go from 1 to {length}.")
    return begin, min(end, length + 1)
