"""Source lines: which instructions belong to which line and function, and the lines of a listing.

gdb's Python does not report where a statement begins (DWARF's is_stmt), so line tables are read from the command
`maintenance info line-table`; without that, from gdb.Symtab.linetable(), where each entry counts as a statement.

`Sources` returns the source lines of a listing, each before the first instruction of one of its statements, as in
`record instruction-history /s` (gdb's record-btrace.c, btrace_find_line_range): all lines whose statements begin at an
address are shown before it, unless they were the last ones shown.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import gdb

from rvtrace_gdb.gdbext import blocks, neutral
from rvtrace_gdb.gdbext.text import columns, printable

_SYMTAB = re.compile(r"symtab: (.*) \(\(struct symtab \*\) 0x[0-9a-f]+\)$")
_ROW = re.compile(r"\d+ +(\d+|END) +(0x[0-9a-f]+)\b")
_STATEMENT = "IS-STMT"


class LineCode(NamedTuple):
    """The code of a source *line* from *pc* to *end* - 1. *statement*: whether a statement of the line begins at *pc*.

    If *end* is *pc* + 1, the code belongs to another line, but a statement of this one begins with it.
    """

    pc: int
    line: int
    end: int
    statement: bool


class Count(NamedTuple):
    """How many *times* a line ran. *begun*: whether a statement of it did; else only other code of the line ran, which
    the compiler may have moved elsewhere, or may share with other lines.
    """

    times: int
    begun: bool

    def __str__(self) -> str:
        return f"{self.times}{'' if self.begun else '?'}" if self.times else NEVER


NEVER = "#####"
_LineEntry = tuple[int, int, bool]
"""A row of a line table: address, line, whether a statement begins; with line 0, no line is known from here on."""


class Scope(NamedTuple):
    """An instance of a function: its own code, or where it is *inlined*. *start* distinguishes the instances.

    *line*, *file*: those of the declaration; of an inlined instance, those of the call, which is all that gdb knows.
    """

    name: str
    file: str
    line: int
    start: int
    end: int
    inlined: bool


def line_tables(file: str = "") -> dict[str, list[LineCode]]:
    """Return the line tables of the source files that gdb has read, by full name; *file*: only of its base name."""
    pattern = re.sub(r"\W", ".", file.rpartition("/")[2])
    try:
        text = neutral.execute(f"maintenance info line-table {pattern}{'$' if pattern else ''}")
    except gdb.error:
        return {}
    found: dict[str, set[LineCode]] = {}
    for name, rows in _parsed(text):
        found.setdefault(name, set()).update(_entries(rows))
    return {name: sorted(entries) for name, entries in found.items() if entries}


def table_of(symtab: gdb.Symtab) -> list[LineCode]:
    """Return the line table of one symtab, for files that `line_tables` does not have."""
    mask = neutral.address_mask()
    return _entries([(entry.pc & mask, entry.line, True) for entry in symtab.linetable()])


def _parsed(text: str) -> Iterator[tuple[str, list[_LineEntry]]]:
    """Return (full name of the file, its rows) for each table."""
    name, rows, column = "", list[_LineEntry](), 0
    for line in text.splitlines():
        symtab, row = _SYMTAB.match(line), _ROW.match(line)
        if symtab:
            yield name, rows
            name, rows = symtab[1], []
        elif _STATEMENT in line:
            column = line.index(_STATEMENT)
        elif row:
            number = 0 if row[1] == "END" else int(row[1])
            rows.append((int(row[2], 16), number, line[column : column + 1] == "Y"))
    yield name, rows


def _entries(rows: list[_LineEntry]) -> list[LineCode]:
    """Return the entries of a table. If an address has several lines, the code belongs to the last one."""
    found: dict[int, dict[int, bool]] = {}
    for pc, line, statement in rows:
        lines = found.setdefault(pc, {})
        statement = lines.pop(line, False) or statement
        lines[line] = statement
    entries: list[LineCode] = []
    places = sorted(found)
    for pc, end in zip(places, [*places[1:], places[-1] + 1] if places else []):
        last = list(found[pc])[-1]
        for line, statement in found[pc].items():
            if line:
                entries.append(LineCode(pc, line, end if line == last else pc + 1, statement))
    return sorted(entries)


def scopes(pc: int) -> list[Scope]:
    """Return the functions that an instruction is in: the innermost inlined one first, last the one that was called."""
    mask = neutral.address_mask()
    found: list[Scope] = []
    for block in blocks.function_blocks(pc):
        function = block.function
        if function is not None:
            file = function.symtab.fullname()
            start, end = block.start & mask, block.end & mask
            found.append(Scope(function.print_name, file, function.line, start, end, True))
    return [*found[:-1], *(one._replace(inlined=False) for one in found[-1:])]


class CodeLines:
    """Lines of a source file with their code, from which their execution counts are computed.

    A line ran as often as that instruction of its statements that ran most often. Each copy of a function (inlined, or
    of a template) counts separately, and the counts are added.
    """

    def __init__(self, file: str, entries: Iterable[LineCode]) -> None:
        self.file = file
        self.entries = list(entries)
        self._scopes = functools.lru_cache(maxsize=None)(scopes)

    def within(self, begin: int, end: int) -> CodeLines:
        """Return the lines of the function with the code from *begin* to *end* - 1, without what is inlined there."""
        first, last = bisect_left(self.entries, (begin,)), bisect_left(self.entries, (end,))
        return self._only(entry for entry in self.entries[first:last] if not self._is_inlined(entry))

    def function_lines(self, function: str) -> CodeLines:
        """Return the lines of all copies of a function, without what is inlined there."""
        scopes = {entry: self.scope(entry) for entry in self.entries}
        own = {entry.line for entry, scope in scopes.items() if scope is not None and scope.name == function}
        return self._only(
            entry
            for entry, scope in scopes.items()
            if entry.line in own and (scope is None or scope.name == function or self._is_stray(scope))
        )

    def scope(self, entry: LineCode) -> Scope | None:
        """Return the function of a line: not an inlined one that is called there, whose code may have that line."""
        found = self._scopes(entry.pc)
        for scope in found:
            if not (scope.inlined and (scope.line, scope.file) == (entry.line, self.file)):
                return scope
        return None

    def _is_stray(self, scope: Scope) -> bool:
        """Whether this file's code is inlined in a function of another file, so that gdb does not know its function."""
        return not scope.inlined and scope.file != self.file

    def _is_inlined(self, entry: LineCode) -> bool:
        scope = self.scope(entry)
        return scope is not None and scope.inlined

    def span(self) -> tuple[int, int]:
        """Return the first address of the code, and the one after the last."""
        ends = [max([entry.end, *(scope.end for scope in self._scopes(entry.pc))]) for entry in self.entries]
        return min(entry.pc for entry in self.entries), max(ends)

    def counts(self, ran: dict[int, int]) -> dict[int, Count]:
        """Return how often each line with code ran. *ran*: how often the instruction at each address did."""
        places = sorted(ran)
        by_line: dict[int, list[LineCode]] = {}
        for entry in self.entries:
            by_line.setdefault(entry.line, []).append(entry)
        return {line: self._line_count(entries, ran, places) for line, entries in by_line.items()}

    def _line_count(self, entries: list[LineCode], ran: dict[int, int], places: list[int]) -> Count:
        statements = [entry for entry in entries if entry.statement] or entries  # compilers leave some without
        count = self._most(statements, ran, places)
        return Count(count, True) if count else Count(self._most(entries, ran, places), False)

    def _most(self, entries: list[LineCode], ran: dict[int, int], places: list[int]) -> int:
        most: dict[int, int] = {}
        for entry in entries:
            scope = self.scope(entry)
            instance = scope.start if scope is not None else 0
            inside = places[bisect_left(places, entry.pc) : bisect_left(places, entry.end)]
            most[instance] = max([most.get(instance, 0), *(ran[pc] for pc in inside)])
        return sum(most.values())

    def _only(self, entries: Iterable[LineCode]) -> CodeLines:
        found = CodeLines(self.file, entries)
        found._scopes = self._scopes
        return found


_starts: dict[str, dict[int, range]] = {}  # per source file: emptied when gdb reads new symbols


def clear_cache() -> None:
    """Forget line tables and sources: the program was rebuilt or another was loaded."""
    _starts.clear()
    _source_file.cache_clear()


class Sources:
    """The source lines of one listing."""

    def __init__(self) -> None:
        self._last: tuple[str, range] | None = None

    def before(self, pc: int) -> Iterator[str]:
        """Return the source lines whose statements begin at *pc*, unless they were the last ones shown."""
        symtab: gdb.Symtab | None = gdb.find_pc_line(pc).symtab
        lines = _line_starts(symtab).get(pc) if symtab else None
        if symtab is None or lines is None or self._shown(symtab.filename, lines):
            return
        self._last = (symtab.filename, lines)
        for line in lines:
            yield f"{printable(symtab.filename)}:{line}\t{_source_text(symtab.fullname(), line)}"

    def _shown(self, file: str, lines: range) -> bool:
        """Whether these lines are among the last ones shown, which gdb does not repeat."""
        last_file, last = self._last or ("", range(0))
        return file == last_file and lines.start in last and lines[-1] in last


def line_of(pc: int) -> str | None:
    """Return the source line that an instruction is part of; None if unknown."""
    place = gdb.find_pc_line(pc)
    symtab: gdb.Symtab | None = place.symtab
    if symtab is None or not place.line:
        return None
    return f"{printable(symtab.filename)}:{place.line}\t{_source_text(symtab.fullname(), place.line)}"


def _line_starts(symtab: gdb.Symtab) -> dict[int, range]:
    """Return the source lines of each address at which a statement begins."""
    key = symtab.fullname()
    if key not in _starts:
        _starts[key] = _read_line_table(symtab)
    return _starts[key]


def _read_line_table(symtab: gdb.Symtab) -> dict[int, range]:
    starts: dict[int, range] = {}
    tables = line_tables(symtab.fullname())
    for entry in tables.get(symtab.fullname()) or table_of(symtab):
        if entry.statement:
            before = starts.get(entry.pc)
            first, last = (before.start, before.stop - 1) if before else (entry.line, entry.line)
            starts[entry.pc] = range(min(first, entry.line), max(last, entry.line) + 1)
    return starts


@functools.lru_cache(maxsize=64)
def _source_file(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def _source_text(path: str, line: int) -> str:
    lines = _source_file(path)
    return columns(lines[line - 1]) if 0 < line <= len(lines) else f"in {printable(path)}"


def lines_of_function(symbol: gdb.Symbol | None, addresses: Sequence[int]) -> str:
    """Return FILE:FIRST,LAST of the instructions at these addresses that are from the function's own file."""
    if symbol is None:
        return ""
    file = symbol.symtab.filename
    lines = sorted(set(_line_numbers(file, addresses)))
    if not lines:
        return printable(file)
    return f"{printable(file)}:{lines[0]}" + ("" if len(lines) == 1 else f",{lines[-1]}")


def _line_numbers(file: str, addresses: Sequence[int]) -> Iterator[int]:
    for pc in addresses:
        place = gdb.find_pc_line(pc)
        if place.line and place.symtab is not None and place.symtab.filename == file:
            yield place.line
