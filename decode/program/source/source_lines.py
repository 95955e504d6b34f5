"""Which source lines the instructions of a program come from, and where the code of a line is.

Files are named as gdb names them: by the end of their path. Code that the linker has removed (`--gc-sections`) is still
in the line table, at address 0, and is left out.

Source: DWARF 5, 6.2 "Line Number Information"; file names and removed code as gdb has them (symtab.c, dwarf2/read.c).
"""

import posixpath
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from rvtrace_gdb.decode.program.elf import BadElf, Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.inlined_code import InlinedCode, inlined_code


class LineTableRow(NamedTuple):
    """From *address* on the code is of a *line* of a file, which the line table calls *name*; 0: of none.

    *column*: in the line, counted from 1; 0: not known. *statement*: a statement begins here (DWARF's is_stmt).
    *discriminator*: tells blocks of code of the same line apart, as the compiler numbers them; 0: none.
    """

    address: int
    path: str
    name: str
    line: int
    column: int
    statement: bool
    discriminator: int


class UnitLines(NamedTuple):
    """The line table of a compilation unit, by addresses, where line 0 ends a sequence of code; and what is inlined in
    that code.
    """

    rows: list[LineTableRow]
    inlined: list[InlinedCode]


class SourceLines:
    """The source lines of a program. What cannot be read has none; `problems` says what that was."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._files = [_LineTables(elf, bias, image) for elf, bias in image.layers]

    @property
    def problems(self) -> list[str]:
        """Why files have no lines, or not all: one text for each."""
        return list(dict.fromkeys(file.problem for file in self._files if file.problem))

    def line_at(self, address: int) -> str:
        """Return file:line of an instruction, "" if it is not known."""
        row = self.row(address)
        return "" if row is None else f"{row.name}:{row.line}"

    def row(self, address: int) -> LineTableRow | None:
        """Return the line of an instruction, None if it is not known."""
        return next((found for file in self._files if (found := file.row(address))), None)

    def addresses(self, name: str, line: int) -> list[int]:
        """Return where a breakpoint of a line is, once in each function: where a statement begins, if any does. *name*:
        of the source file, as `is_named`.
        """
        first: dict[object, int] = {}
        rows = [row for file in self._files for row in file.named(name) if row.line == line]
        for row in [row for row in rows if row.statement] or rows:
            symbol = self._image.symbol(row.address)
            function = None if symbol is None else row.address - symbol[1]
            first[function] = min(first.get(function, row.address), row.address)
        return sorted(first.values())

    def paths(self) -> set[str]:
        """Return the source files that the line tables name."""
        return {path for file in self._files for path in file.paths()}

    def tables(self) -> Iterator["UnitLines"]:
        """Yield the lines of each compilation unit."""
        for file in self._files:
            yield from file.tables()


def is_named(path: str, name: str) -> bool:
    """Return whether a source file is meant by a name: the last parts of its path, or all of it."""
    name = posixpath.normpath(name) if not name.startswith("..") else name
    return path == name or (path.endswith(f"/{name.removeprefix('/')}") and not name.startswith("/"))


class _LineTables:
    """The line tables of an ELF file that is in memory *bias* bytes above its addresses."""

    def __init__(self, elf: Elf, bias: int, image: Image) -> None:
        self._elf, self._bias, self._image, self.problem = elf, bias, image, ""
        self._units: list[_UnitLineTable] | None = None
        self._ranges: list[Any] = []

    def row(self, address: int) -> LineTableRow | None:
        """Return the line of an instruction."""
        address -= self._bias
        rows = (row for unit in self._units_at(address) if (row := _row_at(self._rows(unit), address)) is not None)
        found = next(rows, None)
        return None if found is None else found._replace(address=found.address + self._bias)

    def named(self, name: str) -> Iterator[LineTableRow]:
        """Yield the rows of a source file."""
        for unit in self._all():
            if any(is_named(path, name) for path in self._paths(unit)):
                for row in self._rows(unit):
                    if is_named(row.path, name):
                        yield row._replace(address=row.address + self._bias)

    def paths(self) -> Iterator[str]:
        """Yield the source files."""
        for unit in self._all():
            yield from self._paths(unit)

    def tables(self) -> Iterator["UnitLines"]:
        """Yield the lines of each compilation unit."""
        for unit in self._all():
            rows = [row._replace(address=row.address + self._bias) for row in self._rows(unit)]
            inlined = self._try(unit.inlined) if rows else None
            yield UnitLines(rows, [one.moved(self._bias) for one in inlined or ()])

    def _all(self) -> "list[_UnitLineTable]":
        if self._units is None:
            self._units = []
            self._read_units()
        return self._units

    def _read_units(self) -> None:
        from rvtrace_gdb.decode.program import dwarf_file  # pyelftools, which takes long to load

        assert self._units is not None
        try:
            dwarf = dwarf_file.open_dwarf(self._elf)
            self._ranges = dwarf_file.unit_ranges(dwarf)
            for unit in dwarf.iter_CUs():
                self._units.append(_UnitLineTable(unit))
        except BadElf as error:
            self.problem = str(error)
        except dwarf_file.ERRORS as error:
            self._damaged(error)

    def _damaged(self, error: Exception) -> None:
        why = str(error) or type(error).__name__
        self.problem = self.problem or f"{self._elf.path}: a part of its debug information cannot be read ({why})"

    def _units_at(self, address: int) -> "Iterator[_UnitLineTable]":
        """Yield the units that may contain an address."""
        said = {one.offset for one in self._ranges if one.start <= address < one.end}
        chosen = [unit for unit in self._all() if unit.offset in said]
        yield from chosen or (unit for unit in self._all() if self._may_have(unit, address))

    def _may_have(self, unit: "_UnitLineTable", address: int) -> bool:
        return bool(self._try(unit.may_have, address))

    def _rows(self, unit: "_UnitLineTable") -> list[LineTableRow]:
        return self._try(unit.rows, self._bias, self._image) or []

    def _paths(self, unit: "_UnitLineTable") -> list[str]:
        return self._try(unit.paths) or []

    def _try(self, read: Any, *args: Any) -> Any:
        """Return what a function reads; None where the file is damaged, which is noted."""
        from rvtrace_gdb.decode.program.dwarf_file import ERRORS

        try:
            return read(*args)
        except ERRORS as error:
            self._damaged(error)
            return None


class _UnitLineTable:
    """The line table of a compilation unit, read when it is asked for. Its methods raise `dwarf_file.ERRORS`."""

    def __init__(self, unit: Any) -> None:
        self.offset: int = unit.cu_offset
        self._unit, self._names = unit, list[tuple[str, str]]()
        self._program: Any = None
        self._rows: list[LineTableRow] | None = None

    def may_have(self, address: int) -> bool:
        """Return whether the code of the unit may contain an address."""
        attributes = self._unit.get_top_DIE().attributes
        if "DW_AT_low_pc" not in attributes or "DW_AT_high_pc" not in attributes:
            return True
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        return bool(low <= address < (high.value if high.form == "DW_FORM_addr" else low + high.value))

    def paths(self) -> list[str]:
        """Return the source files."""
        return [path for path, _ in self._read_files()]

    def rows(self, bias: int, image: Image) -> list[LineTableRow]:
        """Return the rows by their addresses, those of code that is in the program."""
        if self._rows is None:
            live = _in_program(self._sequences(), bias, image)
            self._rows = sorted((row for rows in live for row in rows), key=lambda row: row.address)
        return self._rows

    def inlined(self) -> list[InlinedCode]:
        """Return the inlined functions, at the addresses of the file."""
        names = [path for path, _ in self._read_files()]
        first = 0 if self._program is None or self._program["version"] >= 5 else 1
        return list(inlined_code(self._unit, lambda n: names[n - first] if first <= n < len(names) + first else ""))

    def _sequences(self) -> Iterator[list[LineTableRow]]:
        """Yield the rows of each sequence, the last of which is where it ends."""
        names, rows = self._read_files(), list[LineTableRow]()
        first = 0 if self._program is None or self._program["version"] >= 5 else 1
        for state in (entry.state for entry in (self._program.get_entries() if self._program else ())):
            if state is not None:
                at = state.file - first
                path, name = names[at] if 0 <= at < len(names) else ("?", "?")
                line = 0 if state.end_sequence else state.line
                said = state.column, bool(state.is_stmt), int(state.discriminator)
                rows.append(LineTableRow(state.address, path, name, line, *said))
                if state.end_sequence:
                    yield rows
                    rows = []

    def _read_files(self) -> list[tuple[str, str]]:
        """Return the files of the line table: their paths, and their names in the table."""
        from rvtrace_gdb.decode.program.dwarf_file import line_program

        if self._program is None:
            self._program = line_program(self._unit)
            self._names = [] if self._program is None else list(self._files())
        return self._names

    def _files(self) -> Iterator[tuple[str, str]]:
        compiled_in = self._unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        inside = "" if compiled_in is None else _decoded_text(compiled_in.value)
        folders = [_decoded_text(folder) for folder in self._program["include_directory"]]
        if self._program["version"] < 5:
            folders.insert(0, "")
        for file in self._program["file_entry"]:
            at, name = file.dir_index or 0, _decoded_text(file.name)
            folder = folders[at] if at < len(folders) else ""
            yield posixpath.normpath(posixpath.join(inside, folders[0] if folders else "", folder, name)), name


def _decoded_text(value: bytes) -> str:
    return value.decode(errors="replace")


def _in_program(sequences: Iterable[list[LineTableRow]], bias: int, image: Image) -> Iterator[list[LineTableRow]]:
    """Yield the sequences whose code is in the program: not what was removed, which has no code, or that of another
    function at the same address. A row that has no code, because it is where its sequence ends, also goes.
    """
    live = [rows for rows in sequences if rows[0].address < rows[-1].address and image.knows(rows[0].address + bias)]
    live.sort(key=lambda rows: rows[0].address)
    for start, group in groupby(live, key=lambda rows: rows[0].address):
        same = list(group)
        if len(same) > 1:
            ends = {start + size for size in image.symbols.sizes_at(start + bias)}
            same = [rows for rows in same if rows[-1].address in ends] or same
        for rows in same:
            yield [row for row in rows[:-1] if row.address < rows[-1].address] + rows[-1:]


def _row_at(rows: list[LineTableRow], address: int) -> LineTableRow | None:
    """Return the last row up to an address, None if it is of no line."""
    at = bisect_right(rows, address, key=lambda row: row.address) - 1
    last = rows[at].address if at >= 0 else None
    while at >= 0 and rows[at].address == last:
        if rows[at].line:
            return rows[at]
        at -= 1
    return None
