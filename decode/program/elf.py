"""What an ELF file contains of a program: its segments, its symbols, its identity. Addresses are those in the file.

Files are read by `decode.program.image.read_elf`. Symbols are those that gdb uses for code addresses; `symbols` in
`decode.program.debug_info` reads the whole symbol table.

Source: the ELF specification (System V gABI) and the RISC-V ELF psABI; which symbols gdb uses: gdb's elfread.c and
minsyms.c.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import open_input


class BadElf(RvtraceError):
    """The file cannot be used as the program of a trace."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"{path}: {why}")


_ELFDATA2LSB = 1
EM_RISCV = 243


class ElfSegment(NamedTuple):
    """A PT_LOAD segment with content: *data* belongs at *vaddr*, is loaded at *paddr*, and is at
    *offset* in the file.
    """

    vaddr: int
    paddr: int
    offset: int
    data: bytes
    executable: bool


class Symbol(NamedTuple):
    """A named address. *size* is in bytes, 0 if the file does not give it."""

    address: int
    name: str
    size: int
    is_global: bool


class ElfSection(NamedTuple):
    """An address range that is in memory while the program runs, and its symbols by (address, name)."""

    start: int
    end: int
    symbols: list[Symbol]


@dataclass(frozen=True)
class Elf:
    """The content of one file.

    xlen      32 or 64
    entry     the entry point
    build_id  in hex, or None
    sha256    of the file, in hex
    zcm       the code is Zcmp or Zcmt code (from the attributes)
    jvt       base of the Zcmt jump table, or None
    constants the addresses the program never writes: code and constants, in rising order
    isa       the ISA string of its attributes ("rv64i2p1_m2p0_zicsr2p0"), "" without one
    flags     e_flags
    loaded    SHA-256 of the segments, in hex: what a loader takes, which is the same in a stripped copy
    objects   addresses of data by name, of a file that is a list of a kernel's symbols: its sections have code alone
    """

    path: str
    sha256: str
    xlen: int
    entry: int = 0
    build_id: str | None = None
    zcm: bool = False
    jvt: int | None = None
    segments: list[ElfSegment] = field(default_factory=list)
    sections: list[ElfSection] = field(default_factory=list)
    constants: list[range] = field(default_factory=list)
    isa: str = ""
    flags: int = 0
    loaded: str = ""
    objects: Mapping[str, int] = field(default_factory=dict)


def machine(path: str | Path) -> int | None:
    """Return the e_machine of a file that starts like a little-endian ELF file, None for any other or none."""
    try:
        with open_input(path) as file:
            header = file.read(20)
    except (OSError, ValueError):
        return None
    is_elf = header.startswith(b"\x7fELF") and len(header) == 20 and header[5] == _ELFDATA2LSB
    return int.from_bytes(header[18:], "little") if is_elf else None


def symbol_at(symbols: Sequence[Symbol], addr: int) -> Symbol | None:
    """Return the symbol that gdb chooses for an address among the sorted symbols of a section, None if it prints none.

    That is the nearest sized symbol if *addr* is in it or, past its end, in the ones directly before it; otherwise the
    nearest unsized one. Of symbols at the same address, a local one gives way to a global one directly before it.
    """
    unsized = None
    i = bisect_right(symbols, addr, key=lambda symbol: symbol.address) - 1
    while i >= 0:
        symbol = symbols[i]
        if i and not symbol.is_global and symbols[i - 1] == (symbol.address, symbols[i - 1].name, symbol.size, True):
            symbol = symbols[i := i - 1]
        if addr < symbol.address + symbol.size:
            return symbol
        if symbol.size == 0:
            unsized = unsized or symbol
        elif i == 0 or addr >= symbols[i - 1].address + symbols[i - 1].size:
            break
        i -= 1
    return unsized
