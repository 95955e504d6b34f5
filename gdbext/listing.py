r"""Lines in the shape of gdb's `record instruction-history`.

A line is `NUMBER \t [=> | 3 spaces] ADDRESS <function+offset>: \t instruction`. A gap has a number of its own and is
shown in brackets. Instruction text, symbols and source come from gdb, so that a line reads as gdb's own commands print
it. Events between the instructions have no number: `\t 5 spaces [text]`, as gdb 14 prints auxiliary information.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Callable, NamedTuple

import gdb

from rvtrace_gdb.gdbext import blocks, harts, neutral, screen, source_lines
from rvtrace_gdb.gdbext.disassembly import DisassemblyTexts, symbol_of
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.text import printable
from rvtrace_gdb.rows.happened_text import annotation_line, happened_line
from rvtrace_gdb.rows.list_rows import Annotation, Happened, HistoryRow, Place
from rvtrace_gdb.rows.list_text import TextPaint


def clear_cache() -> None:
    """Forget line tables and sources: the program was rebuilt or another was loaded."""
    source_lines.clear_cache()


class HistoryFormat(NamedTuple):
    """The modifiers of `trace history`, by the words that `rows.list_text.MODIFIERS` has for them."""

    source: bool = False
    raw: bool = False
    omit_function: bool = False
    omit_pc: bool = False
    omit_events: bool = False
    omit_times: bool = False

    @classmethod
    def from_modifiers(cls, modifiers: Collection[str]) -> HistoryFormat:
        """Return the format for the words of modifiers; others than these say nothing."""
        return cls(*(name in modifiers for name in cls._fields))


class Mark(NamedTuple):
    """The lines that get "=>": in the past the one with this number, in the present all of this address, as in gdb."""

    number: int | None = None
    pc: int | None = None

    def is_at(self, number: int, pc: int) -> bool:
        return number == self.number or pc == self.pc


def current_mark(hart: int | None = None) -> Mark:
    """Return the mark of the selected thread in the history of *hart* (None means its own hart).

    The mark matches no line if the selected thread is another hart.
    """
    if hart is not None and harts.selected_hart() not in (None, hart):
        return Mark()
    number = position.number()
    return Mark(pc=_selected_pc()) if number is None else Mark(number)


def event_line(events: Iterable[Happened], time: str = "") -> str:
    """Return the line for the events between two instructions, and their time."""
    return happened_line(events, _place_text, time)


def _place_text(place: Place) -> str:
    return address_text(*place)


@contextlib.contextmanager
def readable_code() -> Iterator[None]:
    """Let gdb read code from the ELF file while the program runs, when gdb cannot read memory; and name all addresses
    as by default.
    """
    with neutral.plain_symbols(), _code_of_file():
        yield


@contextlib.contextmanager
def _code_of_file() -> Iterator[None]:
    thread = gdb.selected_thread()
    if thread is None or not thread.is_running() or gdb.parameter("trust-readonly-sections"):
        yield
        return
    with _read_from_file():
        yield


@contextlib.contextmanager
def _read_from_file() -> Iterator[None]:
    gdb.execute("set trust-readonly-sections on", to_string=True)
    try:
        yield
    finally:
        gdb.execute("set trust-readonly-sections off", to_string=True)


def address_text(pc: int, name: str | None = None, offset: int = 0) -> str:
    """Return 0xADDRESS <function+offset>. *name*: that of the function, if gdb does not know it."""
    address = _styled(screen.address(pc, neutral.address_digits()), "address")
    if name is None:
        with neutral.plain_symbols():
            name, offset = symbol_of(pc)
    return address if name is None else f"{address} <{_styled(name, 'function')}+{offset}>"


def function_text(pc: int, name: str | None, symbol: gdb.Symbol | None) -> str:
    """Return the function that an instruction is in, `??` if there is none.

    *symbol*: the function's symbol; *name*: the function's name, if gdb does not know it.
    """
    if name is None:
        name = symbol.print_name if symbol is not None else symbol_of(pc)[0]
    return "??" if name is None else _styled(name, "function")


class GdbSymbols:
    """gdb's symbols and colours, for the lines of `rows.list_text`. *paint*: returns a text in its colour."""

    def __init__(self, paint: TextPaint | None = None) -> None:
        self._paint = paint

    def address_text(self, place: Place) -> str:
        return address_text(*place)

    def function_text(self, pc: int, name: str | None) -> str:
        return function_text(pc, name, function_symbol(pc) if name is None else None)

    def source_lines(self, pc: int, name: str | None, addresses: Sequence[int]) -> str:
        return source_lines.lines_of_function(function_symbol(pc) if name is None else None, addresses)

    def paint(self, what: str, text: str) -> str:
        return (self._paint or paint)(what, text)


class Lister:
    """Formats rows of a history. Each command creates one: gdb is asked about an address once per listing."""

    def __init__(self, style: HistoryFormat, marked: Mark | None = None) -> None:
        screen.measure()
        self._style = style
        self._digits = neutral.address_digits()
        self._texts = DisassemblyTexts(style.raw)
        self._mark = Mark() if style.omit_pc else current_mark() if marked is None else marked
        self._sources = source_lines.Sources()
        self.body = functools.lru_cache(maxsize=1 << 16)(self._body)

    def lines(
        self,
        rows: Iterable[HistoryRow],
        between: Iterable[Annotation] = (),
        numbering: Callable[[int | None], str] = lambda number: "" if number is None else str(number),
    ) -> Iterator[str]:
        """Return the lines for *rows*.

        *between*: the events before the row with the same number. *numbering*: returns the beginning of the line with
        a number; None stands for a line without one.
        """
        rows = list(rows)
        self._texts.add_codes((row.pc, bytes.fromhex(row.text)) for row in rows if row.pc is not None and row.text)
        events = {it.number: it for it in between}
        for number, pc, text, function, offset in rows:
            if number in events:
                yield f"{numbering(None)}\t{annotation_line(events.pop(number), _place_text)}"
            if pc is None:
                yield f"{numbering(number)}\t{paint('gap', f'[{text}]')}"
                continue
            if self._style.source:
                yield from self._sources.before(pc)
            marker = "=> " if self._mark.is_at(number, pc) else "   "
            body = self.body(pc, text, function, offset) if text else self.body(pc)
            yield f"{numbering(number)}\t{marker}{body}"
        for annotation in events.values():
            yield f"{numbering(None)}\t{annotation_line(annotation, _place_text)}"

    def _body(self, pc: int, code: str = "", name: str | None = None, offset: int = 0) -> str:
        address = _styled(screen.address(pc, self._digits), "address")
        symbol = self._symbol(*((name, offset) if name else symbol_of(pc)))
        instruction = self._texts.of_code(pc, bytes.fromhex(code)) if code else self._instruction_text(pc)
        return f"{address}{symbol}:\t{instruction}"

    def _symbol(self, name: str | None, offset: int) -> str:
        if name is None:
            return ""
        shown = "" if self._style.omit_function else _styled(name, "function")
        return f" <{shown}+{offset}>"

    def _instruction_text(self, pc: int) -> str:
        try:
            return self._texts.text_at(pc)
        except gdb.error as error:  # gdb.MemoryError included
            problem = str(error).partition("\n")[0]
        if gdb.parameter("trust-readonly-sections"):
            return problem
        with contextlib.suppress(gdb.error), _read_from_file():  # the target is gone
            return self._texts.text_at(pc)
        return problem


def _selected_pc() -> int | None:
    try:
        return int(gdb.selected_frame().pc())
    except gdb.error:
        return None


def _styled(text: str, style: str) -> str:
    """Return *text* in gdb's own style for addresses or functions, if styling is on and the output is a terminal."""
    text = printable(text)
    colours = {"address": "34", "function": "33"}
    if not _has_colours():
        return text
    name = str(gdb.parameter(f"style {style} foreground"))
    known = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
    code = str(30 + known.index(name)) if name in known else colours[style] if name != "none" else ""
    return f"\033[{code}m{text}\033[m" if code else text


def paint(what: str, text: str) -> str:
    """Return a gap or an event in its colour, as in the TUI window; the `TextPaint` of gdb."""
    text = printable(text)
    return f"\033[{_OURS[what]}m{text}\033[m" if what in _OURS and _has_colours() else text


_OURS = {"gap": "1;31", "event": "36"}
"""Colours of what gdb has no style for."""


def _has_colours() -> bool:
    """Whether lists have colours: as gdb's own, or where rvtrace's console, which reads the output, shows colours."""
    return os.environ.get("RVTRACE_COLOR") == "always" or (_terminal() and bool(gdb.parameter("style enabled")))


@functools.lru_cache(maxsize=1)
def _terminal() -> bool:
    return os.environ.get("TERM", "dumb") != "dumb" and sys.__stdout__ is not None and os.isatty(1)


def function_symbol(pc: int) -> gdb.Symbol | None:
    """Return the function at an address according to debug information; a function inlined there does not count."""
    found = None
    for block in blocks.function_blocks(pc):
        found = block.function
    return found
