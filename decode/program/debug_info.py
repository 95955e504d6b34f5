"""The debug information of ELF files: how functions save registers, source lines of instructions, the whole symbol
table.

How a program's functions save registers is in the call frame information that gdb's own unwinder reads (DWARF). The
symbol table is read as it is, data and labels included; `decode.program.elf` has the symbols that gdb uses for code
addresses. pyelftools reads the files; it is imported only when there is one to read.

Source: DWARF 5, 6.2 "Line Number Information", 6.4 "Call Frame Information"; RISC-V ELF psABI, "DWARF Register
Numbers": 0 to 31 are x0 to x31.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support.inputs import open_input, read_input


def debug_information(elf: Elf) -> Any:
    """Return pyelftools' DWARFInfo of a file; None if the file is gone or has changed.

    Using the result raises one of `dwarf_errors` if the file is damaged.
    """
    from elftools.elf.elffile import ELFFile

    try:
        content = read_input(elf.path)
        if hashlib.sha256(content).hexdigest() != elf.sha256:
            return None
        file: Any = ELFFile(BytesIO(content))
        return file.get_dwarf_info()
    except dwarf_errors():
        return None


def dwarf_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that pyelftools raises for a file that is damaged, not supported
    (segments), or circular.
    """
    from elftools.common.exceptions import DWARFError

    from rvtrace_gdb.decode.program.elf_file import ERRORS

    return *ERRORS, DWARFError, NotImplementedError, RecursionError


SAME, UNDEFINED, AT, VALUE, IN, COMPUTED = ["same", "undefined", "at", "value", "in", "computed"]
"""A register of the caller is unchanged; is lost; is saved at the CFA + *n*; is the CFA + *n*; is in register *n*; is
the result of a DWARF expression.
"""
_KINDS = {"UNDEFINED": UNDEFINED, "SAME_VALUE": SAME, "OFFSET": AT, "VAL_OFFSET": VALUE, "REGISTER": IN}
_RA = 1


class Rule(NamedTuple):
    """The place of a register of the caller."""

    kind: str
    n: int = 0


class Rules(NamedTuple):
    """The unwinding rules at an instruction.

    *cfa* is the register and the offset of the canonical frame address. The function returns to the value of the
    caller's register *ra*.
    """

    cfa: tuple[int, int]
    registers: dict[int, Rule]
    ra: int = _RA


class _Function(NamedTuple):
    """*entry* is pyelftools' entry; *bias* is the load address minus the address in the file."""

    start: int
    stop: int
    bias: int
    entry: Any


class CallFrames:
    """The call frame information of all files of a program; files that cannot be read any more have none."""

    def __init__(self, image: Image) -> None:
        found = (function for elf, bias in image.elves for function in _functions(elf, bias))
        self._functions = sorted(found, key=lambda function: function.start)
        self._starts = [function.start for function in self._functions]
        self._tables: dict[int, list[Any]] = {}

    def at(self, address: int) -> Rules | None:
        """Return the rules at an address, None if there are none or the CFA is an expression."""
        number = bisect_right(self._starts, address) - 1
        if number < 0 or address >= self._functions[number].stop:
            return None
        function = self._functions[number]
        rows = [row for row in self._table(number) if row["pc"] + function.bias <= address]
        if not rows or rows[-1]["cfa"] is None or rows[-1]["cfa"].reg is None:
            return None
        row = rows[-1]
        rules = {register: _rule(row[register]) for register in row if isinstance(register, int)}
        return Rules((row["cfa"].reg, row["cfa"].offset), rules, function.entry.cie["return_address_register"])

    def _table(self, number: int) -> list[Any]:
        if number not in self._tables:
            try:
                self._tables[number] = self._functions[number].entry.get_decoded().table
            except dwarf_errors():
                self._tables[number] = []
        return self._tables[number]


def _rule(rule: Any) -> Rule:
    kind = _KINDS.get(rule.type, COMPUTED)
    return Rule(kind, rule.arg if kind in (AT, VALUE, IN) else 0)


def _functions(elf: Elf, bias: int) -> Iterator[_Function]:
    from elftools.dwarf.callframe import FDE  # a tenth of a second, for those who go back in a tandem trace

    try:
        entries = _entries(debug_information(elf))
    except dwarf_errors():
        entries = []
    for entry in entries:
        if isinstance(entry, FDE):
            start = entry["initial_location"] + bias
            yield _Function(start, start + entry["address_range"], bias, entry)


def _entries(dwarf: Any) -> list[Any]:
    """Return the entries of .eh_frame and of .debug_frame, which gdb searches first."""
    if dwarf is None:
        return []
    found = list(dwarf.EH_CFI_entries()) if dwarf.has_EH_CFI() else []
    return found + (list(dwarf.CFI_entries()) if dwarf.has_CFI() else [])


class SourceLines:
    """The source lines of *elves*: pairs of a file and its bias (load address minus address in the file).

    A file that cannot be read has no lines.
    """

    def __init__(self, elves: Sequence[tuple[Elf, int]]) -> None:
        self._elves = elves
        self._dwarfs: dict[str, Any] = {}
        self._units: dict[tuple[str, int], list[tuple[int, str, int]]] = {}

    def at(self, address: int) -> str:
        """Return file:line of an instruction, "" if it is not known."""
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
        except dwarf_errors():  # a damaged file: the line is left out
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


def line_addresses(image: Image, file: str, line: int) -> list[int]:
    """Return where the code of a source line begins, once in each function. *file*: the name of the source file.

    A program file that cannot be read has no lines.
    """
    first: dict[object, int] = {}
    for elf, bias in image.elves:
        try:
            dwarf = debug_information(elf)
            units = dwarf.iter_CUs() if dwarf is not None and dwarf.has_debug_info else ()
            for place, name, number in (row for unit in units for row in _table(unit)):
                if number == line and Path(name).name == Path(file).name:
                    address = place + bias
                    symbol = image.symbol(address)
                    function = None if symbol is None else address - symbol[1]
                    first[function] = min(first.get(function, address), address)
        except dwarf_errors():
            continue
    return sorted(first.values())


def _units_of(dwarf: Any, address: int) -> Iterator[Any]:
    """Yield the compilation units that may contain an address."""
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
    """Yield (address, file, line); line 0 ends a sequence."""
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
    """Return the line of the last row up to an address."""
    found = None
    for row in rows:
        if row[0] > address:
            break
        if not (row[2] == 0 and found is not None and found[0] == row[0] and found[2]):
            found = row
    return f"{found[1]}:{found[2]}" if found is not None and found[2] else ""


class Place(NamedTuple):
    """The place of a symbol. *size* is in bytes, 0 if the file does not give it."""

    address: int
    size: int


def symbols(path: str | Path) -> dict[str, Place]:
    """Return all symbols that have a name and are absolute or in a section; of equal names, the last one.

    The result is empty for a file that cannot be read.
    """
    from elftools.elf.elffile import ELFFile  # which takes long to load

    from rvtrace_gdb.decode.program.elf_file import ERRORS

    try:
        with open_input(path) as file:
            elf: Any = ELFFile(file)
            table = elf.get_section_by_name(".symtab")
            if table is None:
                return {}
            found = ((one.name, one) for one in table.iter_symbols() if one.name and _is_place(one))
            return {name: Place(one["st_value"], one["st_size"]) for name, one in found}
    except ERRORS:
        return {}  # what reads the program says what is wrong with it


def _is_place(symbol: Any) -> bool:
    return symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] not in ("STT_FILE", "STT_SECTION")


def symbol_names(path: str | Path) -> dict[int, str]:
    """Return, for each address with a symbol, its first name in alphabetical order."""
    return {place.address: name for name, place in sorted(symbols(path).items(), reverse=True)}
