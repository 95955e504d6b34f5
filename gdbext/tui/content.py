"""The content of the history window: the state of the history, the position of gdb in it, and its rows as lines.

The rows read as `trace history` prints them, but in columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import gdb

from rvtrace_gdb.gdbext import listing
from rvtrace_gdb.gdbext.paged_list import PagedList
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.tracer import tracer
from rvtrace_gdb.gdbext.tui.viewport import NORMAL, WindowLine, cut, highlighted, plain, printable
from rvtrace_gdb.rows.list_rows import HistoryRow

NO_LIMIT = 1 << 62


class WindowState(NamedTuple):
    """The state of the history and of gdb, from which the window's content follows, except for scrolling.

    length    the number of rows of the history, 0 without one; *gaps* of them are gaps
    current   whether nothing ran since the trace was read out
    unread    about how many bytes of trace are not read out, as far as known
    problem   an error because of which rows are missing
    number    the number at which the selected thread is in the past, None in the present
    selected  the number of the selected frame: that of the call it made
    pc        in the present, the pc of the selected frame
    """

    length: int = 0
    gaps: int = 0
    hart: int | None = None
    current: bool = False
    unread: int = 0
    problem: str | None = None
    running: bool = False
    number: int | None = None
    selected: int | None = None
    pc: int | None = None

    @property
    def home(self) -> int:
        """The number in the middle of the window: where gdb is, in the present the newest."""
        return self.selected or self.number or self.length

    def title(self) -> str:
        """Return the text in the window's border."""
        if not self.length:
            return "trace"
        place = f"{self.length} so far" if self.number is None else f"{self.number} of {self.length}"
        if self.number is not None and self.number > self.length:
            place = f"end of {self.length}"
        gaps = "no gaps" if not self.gaps else "1 GAP" if self.gaps == 1 else f"{self.gaps} GAPS"
        return f"trace: hart {self.hart}, {gaps}, {place}"  # in a narrow window gdb leaves out the beginning

    def note(self) -> str | None:
        """Return one line about what is wrong with or missing in the content; None if nothing is."""
        if self.problem is not None:
            return self.problem
        if self.running:
            return "The program is running: the history is shown when it stops."
        if self.current or (self.length and self.number is not None):
            return None
        if self.unread:
            return f"About {self.unread} bytes of newer trace are not read out yet: `trace history` reads them."
        return "What ran since is not read out yet: `trace history` reads it."


def look(most: int | None, *, anew: bool = False) -> WindowState:
    """Return the current state.

    *most*: the number of bytes that may be read out of the target for it; None: none, and nothing is decoded. *anew*:
    whether the program is another one. Raises gdb.GdbError, KeyboardInterrupt.
    """
    thread = gdb.selected_thread()
    running = thread is not None and thread.is_running()
    context = tracer().context()
    found = tracer().request("glance", context=context, most=None if running else most, anew=anew or None)
    mark = listing.current_mark(found["hart"])
    selected = None if mark.number is None else position.selected_number()
    return WindowState(**found, running=running, number=mark.number, selected=selected, pc=mark.pc)


GAP, EVENT, NUMBER, NOTE = "1;31", "36", "2", "1;33"  # colours, as parameters of SGR
_ROW = re.compile(r"(?P<number>\d*)\t(?:=> |   )?(?P<place>.*?)(?::\t(?P<instruction>.*))?$", re.S)
_ZEROS = re.compile(r"0x0+(?=[0-9a-f])")
PLACE_AT_MOST = 40  # columns: longer names of functions push the instruction to the right


class HistoryLines:
    """The lines of the history. gdb is asked about each address once, until `clear_cache`."""

    def __init__(self) -> None:
        self._lister: listing.Lister | None = None
        self._coloured: object = None

    def clear_cache(self) -> None:
        """Drop what gdb knew about addresses: the program or the code in memory has changed."""
        self._lister = None

    def fetch(self, state: WindowState, first: int, last: int) -> list[WindowLine]:
        """Return the lines numbered *first* to *last*, with the events before and between them. Raises gdb.GdbError."""
        begin, end = max(1, first), min(last, state.length) + 1
        if begin >= end:
            return []
        page = PagedList("history", events=True, times=True).rows(begin, end, state.hart)
        coloured = gdb.parameter("style enabled")
        if self._lister is None or self._coloured != coloured:
            self._lister, self._coloured = listing.Lister(listing.HistoryFormat(omit_pc=True)), coloured
        with listing.readable_code():
            texts = list(self._lister.lines(page.rows, page.events))
        return _aligned(_lines(page.rows, texts, state))

    @staticmethod
    def draw(line: WindowLine, digits: int, begin: int, width: int, *, here: bool) -> str:
        """Return a line of the screen: *width* columns from column *begin* on. *here*: the selected frame is there."""
        number = "" if line.number is None else str(line.number)
        if here:
            return highlighted(cut(f"{number:>{digits}} {line.mark} {plain(line.text)}", begin, width), width)
        return cut(f"{coloured(f'{number:>{digits}}', NUMBER)} {line.mark} {line.text}", begin, width)

    @staticmethod
    def width(text: str) -> int:
        """Return the number of columns of a line; colours do not count."""
        return len(plain(text))


def coloured(text: str, colour: str) -> str:
    """Return a text in a colour, unless the user has switched colours off."""
    return f"\x1b[{colour}m{text}{NORMAL}" if gdb.parameter("style enabled") else text


def _lines(rows: Sequence[HistoryRow], texts: list[str], state: WindowState) -> list[tuple[WindowLine, str]]:
    """Return (line without the instruction, instruction) for each text."""
    pcs = {row.number: row.pc for row in rows}
    lines = []
    for text in texts:
        match = _ROW.match(printable_row(text))
        assert match is not None  # it matches anything
        number = int(match["number"]) if match["number"] else None
        place = _ZEROS.sub("0x", match["place"].strip())
        lines.append(_window_line(number, pcs.get(number or 0), place, match["instruction"], state))
    return lines


def printable_row(text: str) -> str:
    """Return a row without unprintable characters, except the tabs between its columns."""
    return "\t".join(printable(part) for part in text.split("\t"))


def _window_line(
    number: int | None, pc: int | None, place: str, instruction: str | None, state: WindowState
) -> tuple[WindowLine, str]:
    if number is None:
        return WindowLine(coloured(place, EVENT)), ""
    if pc is None:
        return WindowLine(coloured(place, GAP), number, coloured("!!", GAP)), ""
    return WindowLine(place, number, _mark(number, pc, state), pc), (instruction or "").replace("\t", " ")


def _mark(number: int, pc: int, state: WindowState) -> str:
    """Return the mark of a line: "=>" for the selected frame, " >" for the thread's position."""
    if number == (state.selected or state.number) or pc == state.pc:
        return "=>"
    return " >" if number == state.number else "  "


def _aligned(lines: list[tuple[WindowLine, str]]) -> list[WindowLine]:
    """Return the lines with their instructions in one column."""
    widths = [len(plain(line.text)) for line, instruction in lines if instruction]
    column = min(max(widths, default=0), PLACE_AT_MOST)
    found = []
    for line, instruction in lines:
        gap = max(column - len(plain(line.text)), 0) + 2
        found.append(line._replace(text=f"{line.text}{' ' * gap}{instruction}") if instruction else line)
    return found
