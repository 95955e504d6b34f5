"""Opens the debug information of an ELF file for what reads it, also where pyelftools alone does not read it.

That is `-gz=zlib-gnu`, which compresses each section on its own, where that makes it smaller (`.zdebug_line` beside
`.debug_str`), and 64-bit DWARF (`-gdwarf64`), in which each table says by itself which of the two it is.

Source: DWARF 5, 7.4 "32-Bit and 64-Bit DWARF Formats", 6.1.2 "Lookup by Address"; GNU binutils, `bfd/compress.c`
("ZLIB", size).
"""

import hashlib
import zlib
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from types import SimpleNamespace
from typing import Any, NamedTuple

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile

from rvtrace_gdb.decode.program.elf import BadElf, Elf
from rvtrace_gdb.decode.program.elf_file import ERRORS as ELF_ERRORS
from rvtrace_gdb.support.inputs import read_input
from rvtrace_gdb.support.text import open_problem

ERRORS: tuple[type[Exception], ...] = (*ELF_ERRORS, DWARFError, NotImplementedError, RecursionError, zlib.error)
"""What pyelftools raises for a file that is damaged, not supported (segments), or circular."""

_ESCAPE_64 = 0xFFFFFFFF  # of an initial length: eight bytes follow


class _DwarfFile(ELFFile):
    """An ELF file, whose `.zdebug_` sections are read like the `.debug_` sections that they are."""

    def has_section(self, section_name: str) -> bool:
        return not section_name.startswith(".zdebug_") and super().has_section(section_name)

    def get_section_by_name(self, name: str) -> Any:
        section: Any = super().get_section_by_name(name)
        if section is None and name.startswith(".debug_"):
            section = super().get_section_by_name(f".z{name[1:]}")
            if section is not None:
                _unpack(section)
        if section is not None and section.compressed and section._compression_type in _ZSTD:
            section.data = lambda: _from_zstd(section)
        return section


_ZSTD = ("ELFCOMPRESS_ZSTD", 2)


def _from_zstd(section: Any) -> bytes:
    """Return the data of a section that is compressed with zstd, which Python 3.14 is the first to read."""
    try:
        zstd = import_module("compression.zstd")
    except ImportError:
        raise ELFError(
            "it is compressed with zstd, which this Python does not read: `objcopy --decompress-debug-sections`"
        ) from None
    section.stream.seek(section["sh_offset"] + section.structs.Elf_Chdr.sizeof())
    try:
        return bytes(zstd.decompress(section.stream.read(section["sh_size"] - section.structs.Elf_Chdr.sizeof())))
    except zstd.ZstdError as error:
        raise ELFError(str(error)) from error


def _unpack(section: Any) -> None:
    """Make a section in the form of GNU, "ZLIB" and the size before what zlib has made, one with the data itself."""
    packed = section.data()
    if packed[:4] != b"ZLIB":
        return
    data = zlib.decompressobj().decompress(packed[12:], int.from_bytes(packed[4:12], "big") or 1)
    section.data = lambda: data
    section._decompressed_size = len(data)


def open_dwarf(elf: Elf, *, with_units: bool = True) -> Any:
    """Return pyelftools' DWARFInfo of a file. Raises BadElf: it has none, or it cannot be read, and why. *with_units*:
    what has no units, only call frames or nothing, does not do.

    Using the result raises ERRORS if the file is damaged.
    """
    try:
        content = read_input(elf.path)
    except (OSError, ValueError) as error:
        raise BadElf(elf.path, f"its debug information cannot be read: {open_problem(error)}") from error
    if hashlib.sha256(content).hexdigest() != elf.sha256:
        raise BadElf(elf.path, "the file has changed since it was read: its debug information is of another program")
    try:
        dwarf: Any = _DwarfFile(BytesIO(content)).get_dwarf_info()
    except ERRORS as error:
        raise BadElf(elf.path, f"its debug information cannot be read ({error or type(error).__name__})") from error
    if with_units and not dwarf.has_debug_info:
        raise BadElf(elf.path, "it has no debug information (compile with -g, and do not strip it)")
    return dwarf


def line_program(unit: Any) -> Any:
    """Return pyelftools' line program of a unit, None if it has none."""
    dwarf, top = unit.dwarfinfo, unit.get_top_DIE()
    table = top.attributes.get("DW_AT_stmt_list")
    if table is None or dwarf.debug_line_sec is None:
        return None
    stream = dwarf.debug_line_sec.stream
    stream.seek(table.value)
    wide = int.from_bytes(stream.read(4), "little") == _ESCAPE_64
    structs = unit.structs
    if wide != (structs.dwarf_format == 64):  # of the table, which the assembler has made
        structs = DWARFStructs(
            little_endian=structs.little_endian, dwarf_format=64 if wide else 32, address_size=structs.address_size,
            dwarf_version=structs.dwarf_version,
        )  # fmt: skip
    return dwarf.line_program_for_CU(SimpleNamespace(get_top_DIE=lambda: top, structs=structs))


class UnitRange(NamedTuple):
    """The addresses *start* to *end* - 1 are code of the unit at an *offset* of .debug_info."""

    start: int
    end: int
    offset: int


def unit_ranges(dwarf: Any) -> list[UnitRange]:
    """Return what .debug_aranges says, in the order of the addresses: which unit has which code."""
    section = dwarf.debug_aranges_sec
    if section is None:
        return []
    section.stream.seek(0)
    return sorted(_ranges(section.stream.read()))


def _ranges(data: bytes) -> Iterator[UnitRange]:
    at = 0
    while at + 12 <= len(data):
        size, begin, wide = int.from_bytes(data[at : at + 4], "little"), at + 4, 4
        if size == _ESCAPE_64:
            size, begin, wide = int.from_bytes(data[at + 4 : at + 12], "little"), at + 12, 8
        end = begin + size
        unit = int.from_bytes(data[begin + 2 : begin + 2 + wide], "little")
        width, segment = data[begin + 2 + wide : begin + 4 + wide].ljust(2, b"\0")
        if width not in (4, 8) or segment:
            return
        entry = begin + 4 + wide
        entry += (at - entry) % (2 * width)
        while entry + 2 * width <= min(end, len(data)):
            start = int.from_bytes(data[entry : entry + width], "little")
            length = int.from_bytes(data[entry + width : entry + 2 * width], "little")
            if length:
                yield UnitRange(start, start + length, unit)
            entry += 2 * width
        at = end
