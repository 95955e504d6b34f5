"""What an ELF file says about a program: its segments, its symbols, its identity. Addresses are those in the file.

Source: the ELF specification (System V gABI) and the RISC-V ELF psABI; which symbols gdb takes for places: gdb's
elfread.c and minsyms.c.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from decode.errors import BadElf as BadElf

_SHF_WRITE, _SHF_ALLOC, _SHF_EXECINSTR = 1, 2, 4
_PF_X, _PF_W = 1, 2
_ELFDATA2LSB = 1
EM_RISCV = 243
# pyelftools answers corrupt files with whatever its parsing ran into.
_ELF_ERRORS = (ELFError, OSError, ValueError, LookupError, AttributeError, TypeError, OverflowError, AssertionError)


class Segment(NamedTuple):
    """One PT_LOAD with content: *data* belongs at *vaddr*, is loaded at *paddr*, and stands at *offset* in the file."""

    vaddr: int
    paddr: int
    offset: int
    data: bytes
    executable: bool


class Symbol(NamedTuple):
    """A named place. *size* in bytes, 0 when the file does not tell."""

    address: int
    name: str
    size: int
    is_global: bool


class Section(NamedTuple):
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
    constants what the program does not write: code and constants, in rising order
    """

    path: str
    sha256: str
    xlen: int
    entry: int = 0
    build_id: str | None = None
    zcm: bool = False
    jvt: int | None = None
    segments: list[Segment] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    constants: list[range] = field(default_factory=list)


def machine(path: str | Path) -> int | None:
    """The e_machine of a file that starts like a little-endian ELF file, None for any other, or for none."""
    try:
        with open(path, "rb") as file:
            header = file.read(20)
    except OSError:
        return None
    is_elf = header.startswith(b"\x7fELF") and len(header) == 20 and header[5] == _ELFDATA2LSB
    return int.from_bytes(header[18:], "little") if is_elf else None


def read_elf(path: str | Path) -> Elf:
    """The program in an ELF file. Raises BadElf when it cannot be read or is not a RISC-V ELF."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise BadElf(str(path), f"cannot be read: {error.strerror}") from error
    try:
        return _parse(str(path), content)
    except _ELF_ERRORS as error:
        raise BadElf(str(path), f"is not a readable ELF file ({error})") from error


def symbol_at(symbols: Sequence[Symbol], addr: int) -> Symbol | None:
    """gdb's choice among the symbols of a section, sorted, for an address in it; None where gdb prints none.

    The nearest sized symbol if *addr* is in it or, past its end, in the ones right before it; else the nearest unsized
    one. Of equal ones a local one gives way to a global one right before it.
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


def _parse(path: str, content: bytes) -> Elf:
    elf: Any = ELFFile(BytesIO(content))
    if elf["e_machine"] != "EM_RISCV":
        raise ELFError(f"its machine is {elf['e_machine']}, not RISC-V")
    symbols = _symbols(elf)
    return Elf(
        path,
        hashlib.sha256(content).hexdigest(),
        elf.elfclass,
        elf["e_entry"],
        _build_id(elf),
        _has_zcm(elf),
        next((symbol["st_value"] for symbol in symbols if symbol.name == "__jvt_base$"), None),
        [_segment(segment) for segment in elf.iter_segments("PT_LOAD") if segment["p_filesz"]],
        _sections(elf, symbols),
        _constants(elf),
    )


def _segment(segment: Any) -> Segment:
    executable = bool(segment["p_flags"] & _PF_X)
    return Segment(segment["p_vaddr"], segment["p_paddr"], segment["p_offset"], segment.data(), executable)


def _build_id(elf: Any) -> str | None:
    notes = (note for section in _of_kind(elf, NoteSection) for note in section.iter_notes())
    ids = [note["n_desc"] for note in notes if note["n_type"] == "NT_GNU_BUILD_ID" and note["n_name"] == "GNU"]
    return ids[-1] if ids else None


def _symbols(elf: Any) -> list[Any]:
    """Those of .symtab; of a stripped file those of .dynsym, as gdb has it."""
    tables = {table.name: table for table in _of_kind(elf, SymbolTableSection)}
    table = tables.get(".symtab") or tables.get(".dynsym")
    return [] if table is None else list(table.iter_symbols())


def _sections(elf: Any, symbols: Iterable[Any]) -> list[Section]:
    by_section: dict[int, list[Symbol]] = {}
    for symbol in filter(_is_place, symbols):
        is_global = symbol["st_info"]["bind"] != "STB_LOCAL"
        entry = Symbol(symbol["st_value"], symbol.name, symbol["st_size"], is_global)
        by_section.setdefault(symbol["st_shndx"], []).append(entry)
    sections = []
    for index, section in enumerate(elf.iter_sections()):
        if section["sh_flags"] & _SHF_ALLOC and section["sh_size"]:
            places = by_section.get(index, [])
            if not section["sh_flags"] & _SHF_EXECINSTR:  # gdb prints no unsized symbol of data
                places = [symbol for symbol in places if symbol.size]
            start = section["sh_addr"]
            sections.append(Section(start, start + section["sh_size"], sorted(places)))
    return sorted(sections)


def _constants(elf: Any) -> list[range]:
    """As the sections say; of a file without any the segments that hold code, or cannot be written."""
    sections = [section for section in elf.iter_sections() if section["sh_flags"] & _SHF_ALLOC]
    kept = [
        range(section["sh_addr"], section["sh_addr"] + section["sh_size"])
        for section in sections
        if not section["sh_flags"] & _SHF_WRITE and section["sh_type"] != "SHT_NOBITS" and section["sh_size"]
    ]
    if not sections:
        kept = [
            range(segment["p_vaddr"], segment["p_vaddr"] + segment["p_filesz"])
            for segment in elf.iter_segments("PT_LOAD")
            if segment["p_filesz"] and (segment["p_flags"] & _PF_X or not segment["p_flags"] & _PF_W)
        ]
    return sorted(kept, key=lambda place: place.start)


def _is_place(symbol: Any) -> bool:
    """Whether gdb takes an ELF symbol for a place in the code: not sections, files, mapping symbols, local labels."""
    if symbol["st_info"]["type"] in ("STT_SECTION", "STT_FILE", "STT_TLS") or not isinstance(symbol["st_shndx"], int):
        return False
    local = symbol["st_info"]["bind"] == "STB_LOCAL"
    return bool(symbol.name) and not (local and symbol.name.startswith((".L", "$")))


def _of_kind(elf: Any, kind: type) -> list[Any]:
    return [section for section in elf.iter_sections() if isinstance(section, kind)]


def _has_zcm(elf: Any) -> bool:
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_RISCV_ATTRIBUTES":
            for subsection in section.iter_subsections():
                for part in subsection.iter_subsubsections():
                    for attribute in part.iter_attributes("TAG_ARCH"):
                        return _names_zcm(attribute.value)
    return False


def _names_zcm(arch: str) -> bool:
    return any(extension.startswith(("zcmp", "zcmt")) for extension in arch.split("_"))
