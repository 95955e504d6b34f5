"""Parses ELF files with pyelftools; `read_elf` imports this module when there is a file to read.

Source: as for `decode.program.elf`.
"""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from io import BytesIO
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from rvtrace_gdb.decode.program.elf import Elf, ElfSection, ElfSegment, Symbol

_SHF_WRITE, _SHF_ALLOC, _SHF_EXECINSTR = 1, 2, 4
_PF_X, _PF_W = 1, 2
# pyelftools answers corrupt files with whatever its parsing ran into.
ERRORS = (
    ELFError, ConstructError, OSError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError,
    AssertionError,
)  # fmt: skip


def parse(path: str, content: bytes) -> Elf:
    """Return the program in the *content* of the file at *path*. Raises ERRORS."""
    elf: Any = ELFFile(BytesIO(content))
    if elf["e_machine"] != "EM_RISCV":
        raise ELFError(f"its machine is {elf['e_machine']}, not RISC-V")
    symbols, isa = _symbols(elf), _isa(elf)
    segments = [_segment(segment) for segment in elf.iter_segments("PT_LOAD") if segment["p_filesz"]]
    return Elf(
        path,
        hashlib.sha256(content).hexdigest(),
        elf.elfclass,
        elf["e_entry"],
        _build_id(elf),
        _names_zcm(isa),
        next((symbol["st_value"] for symbol in symbols if symbol.name == "__jvt_base$"), None),
        segments,
        _sections(elf, symbols),
        _constants(elf),
        isa,
        elf["e_flags"],
        _loaded_hash(segments, elf["e_phoff"] + elf["e_phnum"] * elf["e_phentsize"]),
    )


kept = lru_cache(4)(parse)
"""`parse`, which remembers the last files: nobody changes an Elf."""


def _loaded_hash(segments: Iterable[ElfSegment], headers: int) -> str:
    """Return the SHA-256 of what a loader takes. *headers*: so many bytes of the file are its headers, which differ in
    a stripped copy, also where a segment contains them.
    """
    digest = hashlib.sha256()
    for segment in segments:
        digest.update(f"{segment.vaddr:x} {segment.paddr:x} {len(segment.data):x}\n".encode())
        digest.update(segment.data[max(headers - segment.offset, 0) :])
    return digest.hexdigest()


def _segment(segment: Any) -> ElfSegment:
    executable = bool(segment["p_flags"] & _PF_X)
    return ElfSegment(segment["p_vaddr"], segment["p_paddr"], segment["p_offset"], segment.data(), executable)


def _build_id(elf: Any) -> str | None:
    notes = (note for section in _of_kind(elf, NoteSection) for note in section.iter_notes())
    ids = [note["n_desc"] for note in notes if note["n_type"] == "NT_GNU_BUILD_ID" and note["n_name"] == "GNU"]
    return ids[-1] if ids else None


def _symbols(elf: Any) -> list[Any]:
    """Return the entries of .symtab, or of .dynsym in a stripped file, as gdb does."""
    tables = {table.name: table for table in _of_kind(elf, SymbolTableSection)}
    table = tables.get(".symtab") or tables.get(".dynsym")
    return [] if table is None else list(table.iter_symbols())


def _sections(elf: Any, symbols: Iterable[Any]) -> list[ElfSection]:
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
            sections.append(ElfSection(start, start + section["sh_size"], sorted(places)))
    return sorted(sections)


def _constants(elf: Any) -> list[range]:
    """Return the constant ranges from the sections; without sections, the segments that are
    executable or not writable.
    """
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
    """Return whether gdb uses an ELF symbol for code addresses: not sections, files, mapping symbols, local labels."""
    if symbol["st_info"]["type"] in ("STT_SECTION", "STT_FILE", "STT_TLS") or not isinstance(symbol["st_shndx"], int):
        return False
    local = symbol["st_info"]["bind"] == "STB_LOCAL"
    return bool(symbol.name) and not (local and symbol.name.startswith((".L", "$")))


def _of_kind(elf: Any, kind: type) -> list[Any]:
    return [section for section in elf.iter_sections() if isinstance(section, kind)]


def _isa(elf: Any) -> str:
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_RISCV_ATTRIBUTES":
            for subsection in section.iter_subsections():
                for part in subsection.iter_subsubsections():
                    for attribute in part.iter_attributes("TAG_ARCH"):
                        return str(attribute.value)
    return ""


def _names_zcm(isa: str) -> bool:
    return any(extension.startswith(("zcmp", "zcmt")) for extension in isa.split("_"))
