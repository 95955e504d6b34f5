"""The symbols of a program in memory: which function an address is in, and where a name is.

Source: which symbols gdb uses, as for `decode.program.elf`.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.program.elf import Elf, Symbol, symbol_at


class _Placed(NamedTuple):
    """A section of an ELF file in memory, *bias* bytes above its address in the file."""

    start: int
    end: int
    bias: int
    symbols: list[Symbol]


class Symbols:
    """The symbols of the ELF files of one address space, whose addresses have *xlen* bits."""

    def __init__(self, xlen: int) -> None:
        self._mask = (1 << xlen) - 1
        self._sections: list[_Placed] = []  # sorted
        self._elves: list[tuple[Elf, int]] = []

    def add(self, elf: Elf, bias: int) -> None:
        """Add those of a file that is in memory *bias* bytes above its addresses."""
        self._elves.append((elf, bias))
        for section in elf.sections:
            start = section.start + bias & self._mask
            self._sections.append(
                _Placed(start, start + section.end - section.start, start - section.start, section.symbols)
            )
        self._sections.sort()

    def covers(self, addr: int) -> bool:
        """Return whether an address is in a section of a file."""
        return self._section(addr) is not None

    def at(self, addr: int) -> tuple[str, int] | None:
        """Return the name and the offset that gdb prints for a code address, None if gdb finds no symbol."""
        section = self._section(addr)
        found = None if section is None else symbol_at(section.symbols, addr - section.bias)
        return None if section is None or found is None else (found.name, addr - section.bias - found.address)

    def named(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield (address, size in bytes) of each symbol with this name."""
        yield from ((it.address + bias, it.size) for it, bias in self._all() if it.name == name)

    def sizes_at(self, addr: int) -> set[int]:
        """Return the sizes of the symbols that begin at an address; 0: the file does not give it."""
        section = self._section(addr)
        symbols = [] if section is None else section.symbols
        return {it.size for it in symbols if section is not None and it.address + section.bias == addr}

    def _all(self) -> Iterator[tuple[Symbol, int]]:
        for elf, bias in self._elves:
            for section in elf.sections:
                yield from ((symbol, bias) for symbol in section.symbols)

    def _section(self, addr: int) -> _Placed | None:
        i = bisect_right(self._sections, addr, key=lambda section: section.start) - 1
        return self._sections[i] if i >= 0 and addr < self._sections[i].end else None
