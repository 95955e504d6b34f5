"""The functions of a program, and how many instructions they have: what its symbols say, whether or not any ran."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

from rvtrace_gdb.decode.elf import Elf, Section, Symbol
from rvtrace_gdb.decode.errors import CodeMissing, UndecodableInstruction
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.instructions import length

_SHF_EXECINSTR = 4


class Function(NamedTuple):
    """A name for code: *start* to *end* - 1, and how many *instructions* are there."""

    start: int
    end: int
    name: str
    instructions: int


def functions(image: Image) -> list[Function]:
    """All functions in the ELF files of a program, as gdb names them, by address.

    A symbol without a size (a label of assembler code) reaches to the next one.
    """
    found: dict[int, Function] = {}
    for elf, bias in image.elves:
        code, data = _code(elf)
        for section in elf.sections:
            for function in _in_section(image, section, bias) if section.start in code else ():
                if function.start - bias not in data:
                    found.setdefault(function.start, function)
    return sorted(found.values())


def _code(elf: Elf) -> tuple[set[int], set[int]]:
    """Where sections with code begin, and tables and the like that may be among it.

    As the file says; if it is gone, all that is in memory which may be executed is code.
    """
    from elftools.common.exceptions import ELFError  # takes long to load, as for rvtrace_gdb.decode.elf
    from elftools.elf.elffile import ELFFile

    try:
        with open(elf.path, "rb") as file:
            read: Any = ELFFile(file)
            code = {it["sh_addr"] for it in read.iter_sections() if it["sh_flags"] & _SHF_EXECINSTR and it["sh_size"]}
            symbols = read.get_section_by_name(".symtab")
            data = {it["st_value"] for it in symbols.iter_symbols() if _is_data(it)} if symbols else set()
            return code, data
    except (OSError, ELFError, ValueError):
        loaded = [range(it.vaddr, it.vaddr + len(it.data)) for it in elf.segments if it.executable]
        return {section.start for section in elf.sections if any(section.start in one for one in loaded)}, set()


def _is_data(symbol: Any) -> bool:
    return bool(symbol["st_info"]["type"] == "STT_OBJECT")


def _in_section(image: Image, section: Section, bias: int) -> Iterator[Function]:
    starts = sorted({symbol.address + bias for symbol in section.symbols})
    starts = [start for start in starts if (image.symbol(start) or ("", 1))[1] == 0]
    for i, start in enumerate(starts):
        following = starts[i + 1] if i + 1 < len(starts) else section.end + bias
        size = _size(section.symbols, start - bias)
        end = min(start + size, following) if size else following
        name, _ = image.symbol(start) or ("", 0)
        if end > start:
            yield Function(start, end, name, _instructions(image, start, end))


def _size(symbols: list[Symbol], address: int) -> int:
    """Of the largest function that starts there, 0 if no symbol tells."""
    i = bisect_left(symbols, address, key=lambda symbol: symbol.address)
    sizes = [0]
    while i < len(symbols) and symbols[i].address == address:
        sizes.append(symbols[i].size)
        i += 1
    return max(sizes)


def _instructions(image: Image, start: int, end: int) -> int:
    """How many, one after another; what is there but no instruction ends them."""
    try:
        code = image.read(start, end - start)
    except CodeMissing:
        return 0
    count = at = 0
    try:
        while at + 1 < len(code):
            at += length(code[at] | code[at + 1] << 8)
            count += 1
    except UndecodableInstruction:
        pass
    return count
