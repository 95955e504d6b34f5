"""The names of a file's symbols as gdb has them: C++ and Rust names as they stand in the program.

They are made when they are asked for: a program has many symbols, and few of them are shown.

Source: which of a function's names gdb prints: gdb's printcmd.c, `build_address_symbolic`: that of the debug
information, and the linker's where it has no function at the address.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from rvtrace_gdb.decode.program.elf import BadElf, Elf, Symbol
from rvtrace_gdb.decode.program.names.demangling import demangled, is_mangled, original


class FunctionNames:
    """The names of the symbols of one file."""

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._names: dict[tuple[str, int], str] = {}
        self._has_mangled: bool | None = None
        self._units: _Units | None = None

    def name_of(self, symbol: Symbol) -> str:
        """Return the name of a symbol."""
        key = symbol.name, symbol.address
        found = self._names.get(key)
        if found is None:
            found = self._names[key] = self._printed_name(*key)
        return found

    @property
    def has_mangled(self) -> bool:
        """Whether there is code of C++ or Rust."""
        if self._has_mangled is None:
            symbols = (symbol for section in self._elf.sections for symbol in section.symbols)
            self._has_mangled = any(is_mangled(symbol.name) for symbol in symbols)
        return self._has_mangled

    def _printed_name(self, linked: str, address: int) -> str:
        if not is_mangled(linked):
            if not self.has_mangled and original(linked) == linked:
                return linked
            return self._reported_name(linked, address) or linked
        name = demangled(linked)
        if name.inside or name.rust:
            return self._reported_name(name.plain, address) or name.full
        return name.plain if name.full != name.plain and self._debug.covers(address) else name.full

    def _reported_name(self, plain: str, address: int) -> str | None:
        """Return the name of the function at an address in the debug information; *plain*, if it is in another file."""
        return self._debug.name(plain, address)

    @property
    def _debug(self) -> "_Units":
        if self._units is None:
            self._units = _Units(self._elf)
        return self._units


class _Units:
    """The compilation units of a file."""

    def __init__(self, elf: Elf) -> None:
        self._functions: dict[int, Any] = {}
        self._dwarf: Any = None
        self._ranges: list[Any] = []
        from rvtrace_gdb.decode.program.dwarf_file import ERRORS, open_dwarf

        self._errors: tuple[type[Exception], ...] = (BadElf, *ERRORS)
        try:
            self._dwarf = open_dwarf(elf)
            self._find_ranges()
        except self._errors:
            return  # names are those of the linker

    def _find_ranges(self) -> None:
        from rvtrace_gdb.decode.program.dwarf_file import UnitRange, unit_ranges
        from rvtrace_gdb.decode.program.names.unit_functions import ranges_of

        self._ranges = unit_ranges(self._dwarf)
        known = {one.offset for one in self._ranges}
        for unit in self._dwarf.iter_CUs():
            if unit.cu_offset in known:
                continue
            top = unit.get_top_DIE()
            if "DW_AT_ranges" in top.attributes:
                self._ranges += (UnitRange(start, end, unit.cu_offset) for start, end in ranges_of(top))
            elif "DW_AT_low_pc" in top.attributes and "DW_AT_high_pc" in top.attributes:
                low, high = top.attributes["DW_AT_low_pc"].value, top.attributes["DW_AT_high_pc"]
                end = high.value if high.form == "DW_FORM_addr" else low + high.value
                self._ranges.append(UnitRange(low, end, unit.cu_offset))
        self._ranges.sort()

    def name(self, plain: str, address: int) -> str | None:
        """Return the name of the function that begins at an address."""
        for offset in self._units_at(address):
            try:
                functions = self._unit_functions(offset)
                found: str | None = plain if functions.is_skeleton else functions.name(address)
            except self._errors:
                continue
            if found is not None:
                return found
        return None

    def covers(self, address: int) -> bool:
        """Return whether a unit has the code at an address."""
        return any(True for _ in self._units_at(address))

    def _units_at(self, address: int) -> Iterator[int]:
        """Yield the units that have the code at an address: several, where the linker has removed functions."""
        place = bisect_right(self._ranges, address, key=lambda one: one.start) - 1
        start = self._ranges[place].start if place >= 0 else 0
        while place >= 0 and self._ranges[place].start == start:
            if address < self._ranges[place].end:
                yield self._ranges[place].offset
            place -= 1

    def _unit_functions(self, offset: int) -> Any:
        from rvtrace_gdb.decode.program.names.unit_functions import UnitFunctions

        if offset not in self._functions:
            self._functions[offset] = UnitFunctions(self._dwarf.get_CU_at(offset), self._unit_functions)
        return self._functions[offset]
