"""The debug information of ELF files: how functions save registers, and the whole symbol table.

How a program's functions save registers is in the call frame information that gdb's own unwinder reads (DWARF). The
symbol table is read as it is, data and labels included; `decode.program.elf` has the symbols that gdb uses for code
addresses. pyelftools reads the files; it is imported only when there is one to read.

Source: DWARF 5, 6.4 "Call Frame Information"; RISC-V ELF psABI, "DWARF Register
Numbers": 0 to 31 are x0 to x31.
"""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rvtrace_gdb.decode.program.elf import BadElf, Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support.inputs import open_input


def debug_information(elf: Elf) -> Any:
    """Return pyelftools' DWARFInfo of a file; None if the file is gone or has changed, or has none.

    Using the result raises one of `dwarf_errors` if the file is damaged.
    """
    from rvtrace_gdb.decode.program.dwarf_file import open_dwarf

    try:
        return open_dwarf(elf, with_units=False)
    except BadElf:
        return None


def dwarf_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that pyelftools raises for a file that is damaged, not supported
    (segments), or circular.
    """
    from rvtrace_gdb.decode.program.dwarf_file import ERRORS

    return ERRORS


SAME, UNDEFINED, AT, VALUE, IN, COMPUTED = ["same", "undefined", "at", "value", "in", "computed"]
"""A register of the caller is unchanged; is lost; is saved at the CFA + *n*; is the CFA + *n*; is in register *n*; is
the result of a DWARF expression.
"""
_KINDS = {"UNDEFINED": UNDEFINED, "SAME_VALUE": SAME, "OFFSET": AT, "VAL_OFFSET": VALUE, "REGISTER": IN}
_RA = 1


class UnwindRule(NamedTuple):
    """The place of a register of the caller."""

    kind: str
    n: int = 0


class UnwindRules(NamedTuple):
    """The unwinding rules at an instruction.

    *cfa* is the register and the offset of the canonical frame address. The function returns to the value of the
    caller's register *ra*.
    """

    cfa: tuple[int, int]
    registers: dict[int, UnwindRule]
    ra: int = _RA


class _FunctionEntry(NamedTuple):
    """*entry* is pyelftools' entry; *bias* is the load address minus the address in the file."""

    start: int
    stop: int
    bias: int
    entry: Any


class CallFrameInformation:
    """The call frame information of all files of a program; files that cannot be read any more have none."""

    def __init__(self, image: Image) -> None:
        found = (function for elf, bias in image.elves for function in _functions(elf, bias))
        self._functions = sorted(found, key=lambda function: function.start)
        self._starts = [function.start for function in self._functions]
        self._tables: dict[int, list[Any]] = {}

    def rules_at(self, address: int) -> UnwindRules | None:
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
        return UnwindRules((row["cfa"].reg, row["cfa"].offset), rules, function.entry.cie["return_address_register"])

    def _table(self, number: int) -> list[Any]:
        if number not in self._tables:
            try:
                self._tables[number] = self._functions[number].entry.get_decoded().table
            except dwarf_errors():
                self._tables[number] = []
        return self._tables[number]


def _rule(rule: Any) -> UnwindRule:
    kind = _KINDS.get(rule.type, COMPUTED)
    return UnwindRule(kind, rule.arg if kind in (AT, VALUE, IN) else 0)


def _functions(elf: Elf, bias: int) -> Iterator[_FunctionEntry]:
    from elftools.dwarf.callframe import FDE  # a tenth of a second, for those who go back in a tandem trace

    try:
        entries = _entries(debug_information(elf))
    except dwarf_errors():
        entries = []
    for entry in entries:
        if isinstance(entry, FDE):
            start = entry["initial_location"] + bias
            yield _FunctionEntry(start, start + entry["address_range"], bias, entry)


def _entries(dwarf: Any) -> list[Any]:
    """Return the entries of .eh_frame and of .debug_frame, which gdb searches first."""
    if dwarf is None:
        return []
    found = list(dwarf.EH_CFI_entries()) if dwarf.has_EH_CFI() else []
    return found + (list(dwarf.CFI_entries()) if dwarf.has_CFI() else [])


class SymbolPlace(NamedTuple):
    """The place of a symbol. *size* is in bytes, 0 if the file does not give it."""

    address: int
    size: int


def symbols(path: str | Path) -> dict[str, SymbolPlace]:
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
            return {name: SymbolPlace(one["st_value"], one["st_size"]) for name, one in found}
    except ERRORS:
        return {}  # what reads the program says what is wrong with it


def _is_place(symbol: Any) -> bool:
    return symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] not in ("STT_FILE", "STT_SECTION")


def symbol_names(path: str | Path) -> dict[int, str]:
    """Return, for each address with a symbol, its first name in alphabetical order."""
    return {place.address: name for name, place in sorted(symbols(path).items(), reverse=True)}
