"""The source lines of a listing, each before the first instruction of a statement of it.

As in `record instruction-history /s` (gdb's record-btrace.c, btrace_find_line_range): all lines whose statements begin
at an address are shown before it, unless they were shown last.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import gdb

from rvtrace_gdb.gdbext import coverage_lines
from rvtrace_gdb.gdbext.printing import columns, printable

_starts: dict[str, dict[int, range]] = {}  # per source file: emptied when gdb reads new symbols


def forget() -> None:
    """Forget line tables and sources: the program was rebuilt or another was loaded."""
    _starts.clear()
    _source_file.cache_clear()


class Sources:
    """The source lines of one listing."""

    def __init__(self) -> None:
        self._last: tuple[str, range] | None = None

    def before(self, pc: int) -> Iterator[str]:
        """The source lines whose statements start at `pc`, unless they were shown last."""
        symtab: gdb.Symtab | None = gdb.find_pc_line(pc).symtab
        lines = _line_starts(symtab).get(pc) if symtab else None
        if symtab is None or lines is None or self._shown(symtab.filename, lines):
            return
        self._last = (symtab.filename, lines)
        for line in lines:
            yield f"{printable(symtab.filename)}:{line}\t{_source_text(symtab.fullname(), line)}"

    def _shown(self, file: str, lines: range) -> bool:
        """Whether these lines are among those shown last, which gdb does not repeat."""
        last_file, last = self._last or ("", range(0))
        return file == last_file and lines.start in last and lines[-1] in last


def line_of(pc: int) -> str | None:
    """The source line that an instruction is part of; None: not known."""
    place = gdb.find_pc_line(pc)
    symtab: gdb.Symtab | None = place.symtab
    if symtab is None or not place.line:
        return None
    return f"{printable(symtab.filename)}:{place.line}\t{_source_text(symtab.fullname(), place.line)}"


def _line_starts(symtab: gdb.Symtab) -> dict[int, range]:
    """For each address a statement starts at: its source lines."""
    key = symtab.fullname()
    if key not in _starts:
        _starts[key] = _read_line_table(symtab)
    return _starts[key]


def _read_line_table(symtab: gdb.Symtab) -> dict[int, range]:
    starts: dict[int, range] = {}
    tables = coverage_lines.tables(symtab.fullname())
    for entry in tables.get(symtab.fullname()) or coverage_lines.table_of(symtab):
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
