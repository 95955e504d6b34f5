"""A list of a trace at the shell: its lines, or JSON objects, with the symbols of the program."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

from rvtrace_gdb.console.output import PAGE, CommandOutput
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows.harts_text import MANY, harts_text
from rvtrace_gdb.rows.list_rows import ROWS_AT_ONCE, Place
from rvtrace_gdb.rows.list_text import HEADINGS, RowFields, computed_words, options_of, row_fields, row_line
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.rpc.lists import pages
from rvtrace_gdb.session.rpc.lists.list_selection import Range
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.text import Line, json_line, printable
from rvtrace_gdb.views import json_rows
from rvtrace_gdb.views.addresses import address_text


class ShownTrace(NamedTuple):
    """A trace that is shown: *hart*, of which, and whether its rows name the hart.

    *modifiers*: the words of those of its list that are given. *written*: how many rows of its list are written, with
    what is before them. *rtos*: the system whose tasks are known, see `Context`.
    """

    session: Session
    decoded: Decoded
    output: CommandOutput
    hart: int
    is_one_of_several: bool
    modifiers: frozenset[str] = frozenset()
    written: int = 0
    rtos: str = "auto"

    def params(self, **given: Any) -> Params:
        return Params({"context": {"hart": self.hart, "rtos": self.rtos}, **given}, "rvtrace")

    def lines(self, what: str, **parameters: Any) -> Iterator[str]:
        """Yield the lines of a list."""
        yield from self.heading(what)
        given = self.modifiers if not self.output.json else {it.word for it in options_of(what)}
        columns = {word: True for word in computed_words(what) if word in given}
        params = self.params(what=what, size=PAGE.get(), **columns, **parameters)
        found = pages.LISTS[what](self.session, params, Range.from_params(params), self.output.progress)
        begin, end, notice = found.selection
        if not self.output.json:
            self.output.say(found.lines)
            if notice and begin >= end and not self.written:  # it is the answer
                yield Line(f"hart {self.hart}\t{notice}" if self.is_one_of_several else notice, no_rows=notice)
            elif notice:
                self.output.say([notice])
        begin += self.written
        self.output.total = end - begin
        for first in range(begin, end, ROWS_AT_ONCE):
            yield from self.row_lines(found.rows(first, min(first + ROWS_AT_ONCE, end)))

    def heading(self, what: str) -> Iterator[str]:
        """Yield what is before the rows of a list, if anything is."""
        if what in HEADINGS and not self.output.json and not self.written:
            yield self.output.paint("heading", HEADINGS[what])

    def row_lines(self, rows: Iterable[object]) -> Iterator[str]:
        """Yield the line of each row."""
        for row in rows:
            yield self.line(row, row_fields, lambda row, symbols: row_line(row, symbols, self.modifiers))

    def line(self, row: Any, fields: Callable[[Any, Any], RowFields], line: Callable[[Any, Any], str]) -> str:
        """Return one row, as *fields* or as *line* makes it."""
        if self.output.json:
            return json_line({"hart": self.hart, **fields(row, self)})
        return f"hart {self.hart}\t{line(row, self)}" if self.is_one_of_several else line(row, self)

    @property
    def image(self) -> Image:
        return self.decoded.program.all_programs

    def _symbol(self, place: Place) -> tuple[str, int] | None:
        """Return the function of a place and the offset in it: the one the session named, else the program's."""
        return self.image.symbol(place[0]) if len(place) == 1 else (place[1], place[2])

    # The symbols of lines and of fields, see `rows.list_text`.

    def paint(self, what: str, text: str) -> str:
        return self.output.paint(what, text)

    def address_text(self, place: Place) -> str:
        return address_text(place[0], self.image.xlen, self._symbol(place), self.output.paint, short=self.output.narrow)

    def place(self, place: Place) -> RowFields:
        found = json_rows.place(place[0], self._symbol(place), self.image.xlen)
        return {name: value for name, value in found.items() if value is not None}

    def function_text(self, pc: int, name: str | None) -> str:
        symbol = self.image.symbol(pc) if name is None else (name, 0)
        return "??" if symbol is None else self.output.paint("function", printable(symbol[0]))

    def source_lines(self, pc: int, name: str | None, addresses: Sequence[int]) -> str:
        return ""  # gdb alone reads line tables

    def function(self, pc: int, name: str | None) -> RowFields:
        fields = self.place((pc,) if name is None else (pc, name, 0))
        fields.pop("offset", None)
        return fields


def print_harts(
    output: CommandOutput, harts: Iterable[ShownTrace], lines: Callable[[ShownTrace], Iterator[str]]
) -> None:
    """Print the list of each hart, which *lines* returns. Three or more harts in a row that have no rows for the same
    reason are one line: "harts 0 to 15<TAB>No gaps: the history is complete.".
    """
    empty: list[tuple[int, Line]] = []
    for hart in harts:
        rows = lines(hart)
        first = next(rows, None)
        if isinstance(first, Line) and "no_rows" in first.facts:
            empty.append((hart.hart, first))
        elif first is not None:
            output.rows(_lines_of_empty(empty))
            empty.clear()
            output.rows(chain([first], rows))
    output.rows(_lines_of_empty(empty))


def _lines_of_empty(answers: Iterable[tuple[int, Line]]) -> list[str]:
    lines: list[str] = []
    for notice, group in groupby(answers, lambda answer: answer[1].facts["no_rows"]):
        harts, texts = zip(*group, strict=True)
        lines += [f"{harts_text(harts)}\t{notice}"] if len(harts) >= MANY else texts
    return lines
