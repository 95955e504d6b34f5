"""The rows of a history as lines of the window: as `trace history` words them, in columns."""

from __future__ import annotations

import re
from typing import Any

import gdb

from rvtrace_gdb.gdbext import listing
from rvtrace_gdb.gdbext.tracer import tracer
from rvtrace_gdb.gdbext.window_state import State
from rvtrace_gdb.gdbext.window_view import NORMAL, Line, cut, highlighted, plain, printable

GAP, EVENT, NUMBER, NOTE = "1;31", "36", "2", "1;33"  # colours, as terminals number them
_ROW = re.compile(r"(?P<number>\d*)\t(?:=> |   )?(?P<place>.*?)(?::\t(?P<instruction>.*))?$", re.S)
_ZEROS = re.compile(r"0x0+(?=[0-9a-f])")
PLACE_AT_MOST = 40  # columns: longer names of functions push the instruction to the right


class Lines:
    """Lines by number. What gdb knows of an address is asked once, until `forget`."""

    def __init__(self) -> None:
        self._lister: listing.Lister | None = None
        self._coloured: object = None

    def forget(self) -> None:
        """Another program, or other code in memory."""
        self._lister = None

    def fetch(self, state: State, first: int, last: int) -> list[Line]:
        """Those numbered *first* to *last*, and what happened before and between them. Raises gdb.GdbError."""
        begin, end = max(1, first), min(last, state.length) + 1
        if begin >= end:
            return []
        rows = tracer().request("rows", begin=begin, end=end, hart=state.hart)
        between = tracer().request("between", begin=begin, end=end, hart=state.hart, times=True)
        coloured = gdb.parameter("style enabled")
        if self._lister is None or self._coloured != coloured:
            self._lister, self._coloured = listing.Lister(listing.Format(omit_pc=True)), coloured
        with listing.readable_code():
            texts = list(self._lister.lines(rows, between))
        return _aligned(_lines(rows, texts, state))

    @staticmethod
    def draw(line: Line, digits: int, begin: int, width: int, *, here: bool) -> str:
        """A line of the screen: *width* columns from column *begin* on. *here*: gdb's selected frame is there."""
        number = "" if line.number is None else str(line.number)
        if here:
            return highlighted(cut(f"{number:>{digits}} {line.mark} {plain(line.text)}", begin, width), width)
        return cut(f"{coloured(f'{number:>{digits}}', NUMBER)} {line.mark} {line.text}", begin, width)

    @staticmethod
    def width(text: str) -> int:
        """Columns of a line, colours not counted."""
        return len(plain(text))


def coloured(text: str, colour: str) -> str:
    """A text in a colour, where the user has not switched colours off."""
    return f"\x1b[{colour}m{text}{NORMAL}" if gdb.parameter("style enabled") else text


def _lines(rows: list[list[Any]], texts: list[str], state: State) -> list[tuple[Line, str]]:
    """(line without the instruction, instruction)."""
    pcs = {number: pc for number, pc, *_ in rows}
    lines = []
    for text in texts:
        match = _ROW.match(printable_row(text))
        assert match is not None  # it matches anything
        number = int(match["number"]) if match["number"] else None
        place = _ZEROS.sub("0x", match["place"].strip())
        lines.append(_line(number, pcs.get(number or 0), place, match["instruction"], state))
    return lines


def printable_row(text: str) -> str:
    """Only the tabs that part the columns stay."""
    return "\t".join(printable(part) for part in text.split("\t"))


def _line(number: int | None, pc: int | None, place: str, instruction: str | None, state: State) -> tuple[Line, str]:
    if number is None:
        return Line(coloured(place, EVENT)), ""
    if pc is None:
        return Line(coloured(place, GAP), number, coloured("!!", GAP)), ""
    return Line(place, number, _mark(number, pc, state), pc), (instruction or "").replace("\t", " ")


def _mark(number: int, pc: int, state: State) -> str:
    """Where the selected frame is, and less clearly where the program is."""
    if number == (state.selected or state.number) or pc == state.pc:
        return "=>"
    return " >" if number == state.number else "  "


def _aligned(lines: list[tuple[Line, str]]) -> list[Line]:
    """With the instructions under each other."""
    widths = [len(plain(line.text)) for line, instruction in lines if instruction]
    column = min(max(widths, default=0), PLACE_AT_MOST)
    found = []
    for line, instruction in lines:
        gap = max(column - len(plain(line.text)), 0) + 2
        found.append(line._replace(text=f"{line.text}{' ' * gap}{instruction}") if instruction else line)
    return found
