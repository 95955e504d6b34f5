"""The symbols of a program in memory: which function an address is in, and where a name is.

Source: which symbols gdb uses, as for `decode.program.elf`.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.program.elf import Elf, Symbol, symbol_at
from rvtrace_gdb.decode.program.names.function_names import FunctionNames
from rvtrace_gdb.decode.program.names.name_patterns import Pattern


class _Placed(NamedTuple):
    """A section of an ELF file in memory, *bias* bytes above its address in the file."""

    start: int
    end: int
    bias: int
    symbols: list[Symbol]
    names: FunctionNames


class Symbols:
    """The symbols of the ELF files of one address space, whose addresses have *xlen* bits."""

    def __init__(self, xlen: int) -> None:
        self._mask = (1 << xlen) - 1
        self._sections: list[_Placed] = []  # sorted
        self._files: list[tuple[Elf, int, FunctionNames]] = []

    def add(self, elf: Elf, bias: int) -> None:
        """Add those of a file that is in memory *bias* bytes above its addresses."""
        names = FunctionNames(elf)
        self._files.append((elf, bias, names))
        for section in elf.sections:
            start = section.start + bias & self._mask
            self._sections.append(
                _Placed(start, start + section.end - section.start, start - section.start, section.symbols, names)
            )
        self._sections.sort(key=lambda section: section[:3])

    def covers(self, addr: int) -> bool:
        """Return whether an address is in a section of a file."""
        return self._section(addr) is not None

    def symbol_at(self, addr: int) -> tuple[str, int] | None:
        """Return the name and the offset that gdb prints for a code address, None if gdb finds no symbol."""
        section = self._section(addr)
        found = None if section is None else symbol_at(section.symbols, addr - section.bias)
        if section is None or found is None:
            return None
        return section.names.name_of(found), addr - section.bias - found.address

    def start(self, addr: int) -> int | None:
        """Return the address of the symbol of a code address, without its name, which takes longer."""
        section = self._section(addr)
        found = None if section is None else symbol_at(section.symbols, addr - section.bias)
        return None if section is None or found is None else found.address + section.bias

    def named(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield (address, size in bytes) of each symbol that is meant by a name: the one in the file, or the one in the
        program (`Pattern`).
        """
        pattern = Pattern(name)
        for elf, bias, names in self._files:
            for section in elf.sections:
                for it in section.symbols:
                    if it.name == name or (pattern.may_be(it.name) and _means(pattern, names, it)):
                        yield it.address + bias, it.size
            if name in elf.objects:
                yield elf.objects[name] + bias, 0

    def sizes_at(self, addr: int) -> set[int]:
        """Return the sizes of the symbols that begin at an address; 0: the file does not give it."""
        section = self._section(addr)
        symbols = [] if section is None else section.symbols
        return {it.size for it in symbols if section is not None and it.address + section.bias == addr}

    def _section(self, addr: int) -> _Placed | None:
        i = bisect_right(self._sections, addr, key=lambda section: section.start) - 1
        return self._sections[i] if i >= 0 and addr < self._sections[i].end else None


def _means(pattern: Pattern, names: FunctionNames, symbol: Symbol) -> bool:
    """Return whether the name of a symbol is meant. Labels of assembler code, and names of C, mean themselves alone."""
    return names.name_of(symbol) != symbol.name and pattern.means(names.name_of(symbol))
