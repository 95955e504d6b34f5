"""Source lines of instructions, from the debug information of ELF files (DWARF, "Line Number Information")."""

from collections.abc import Iterator, Sequence
from typing import Any

from rvtrace_gdb.decode.dwarf import debug_information, errors
from rvtrace_gdb.decode.elf import Elf


class SourceLines:
    """*elves*: files, and how far above their addresses they are. What cannot be read has no lines."""

    def __init__(self, elves: Sequence[tuple[Elf, int]]) -> None:
        self._elves = elves
        self._dwarfs: dict[str, Any] = {}
        self._units: dict[tuple[str, int], list[tuple[int, str, int]]] = {}

    def at(self, address: int) -> str:
        """file:line of an instruction, "" where nobody knows."""
        for elf, bias in self._elves:
            found = self._in(elf, address - bias)
            if found:
                return found
        return ""

    def _in(self, elf: Elf, address: int) -> str:
        try:
            for unit in _units_of(self._dwarf(elf), address):
                found = _line(self._rows(elf.path, unit), address)
                if found:
                    return found
        except errors():  # a damaged file: the line is left out
            return ""
        return ""

    def _dwarf(self, elf: Elf) -> Any:
        if elf.path not in self._dwarfs:
            self._dwarfs[elf.path] = debug_information(elf)
        return self._dwarfs[elf.path]

    def _rows(self, path: str, unit: Any) -> list[tuple[int, str, int]]:
        key = path, unit.cu_offset
        if key not in self._units:
            self._units[key] = sorted(_table(unit), key=lambda row: row[0])
        return self._units[key]


def _units_of(dwarf: Any, address: int) -> Iterator[Any]:
    """The compilation units that may have an address."""
    if dwarf is None or not dwarf.has_debug_info:
        return
    ranges = dwarf.get_aranges()
    offset = ranges.cu_offset_at_addr(address) if ranges is not None else None
    if offset is not None:
        yield dwarf.get_CU_at(offset)
        return
    for unit in dwarf.iter_CUs():
        attributes = unit.get_top_DIE().attributes
        if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
            low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
            end = high.value if high.form == "DW_FORM_addr" else low + high.value
            if not low <= address < end:
                continue
        yield unit


def _table(unit: Any) -> Iterator[tuple[int, str, int]]:
    """(address, file, line); line 0 where a sequence ends."""
    program = unit.dwarfinfo.line_program_for_CU(unit)
    if program is None:
        return
    files = program["file_entry"]
    first = 0 if program["version"] >= 5 else 1
    for entry in program.get_entries():
        state = entry.state
        if state is not None:
            at = state.file - first
            name = files[at].name.decode(errors="replace") if 0 <= at < len(files) else "?"
            yield state.address, name, 0 if state.end_sequence else state.line


def _line(rows: list[tuple[int, str, int]], address: int) -> str:
    """The last row up to an address."""
    found = None
    for row in rows:
        if row[0] > address:
            break
        if not (row[2] == 0 and found is not None and found[0] == row[0] and found[2]):
            found = row
    return f"{found[1]}:{found[2]}" if found is not None and found[2] else ""
