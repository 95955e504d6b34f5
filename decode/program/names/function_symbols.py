"""Which names of a program are those of functions, and which names are like one that it does not have."""

from collections.abc import Iterable, Iterator
from typing import Any

from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support.inputs import open_input

_SHF_EXECINSTR = 4
_NEAR, _MOST = 0.75, 3


def is_function(image: Image, address: int) -> bool:
    """Return whether a function, or a label of assembler code, is at an address: as the symbol table of the file says.
    False if that cannot be read any more.
    """
    return any(
        _begins_at(elf, address - bias)
        for elf, bias in image.layers
        for part in elf.segments
        if part.executable and 0 <= address - bias - part.vaddr < len(part.data)
    )


def _begins_at(elf: Elf, address: int) -> bool:
    from elftools.common.exceptions import ELFError  # takes long to load, as for rvtrace_gdb.decode.program.elf
    from elftools.elf.elffile import ELFFile

    try:
        with open_input(elf.path) as file:
            read: Any = ELFFile(file)
            table = read.get_section_by_name(".symtab")
            found = [it for it in table.iter_symbols() if it["st_value"] == address and it.name] if table else []
            kinds = {it["st_info"]["type"] for it in found if _is_code(read, it["st_shndx"])}
    except (OSError, ELFError, ValueError):
        return False
    return "STT_OBJECT" not in kinds and bool({"STT_FUNC", "STT_NOTYPE"} & kinds)


def _is_code(read: Any, section: Any) -> bool:
    return isinstance(section, int) and bool(read.get_section(section)["sh_flags"] & _SHF_EXECINSTR)


def names_of(image: Image) -> Iterator[str]:
    """Yield the names of the functions and objects of a program, as its files have them."""
    for elf, _ in image.layers:
        for section in elf.sections:
            for it in section.symbols:
                yield it.name


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return what follows a message that there is no *name*: which ones are like it; "" if none is."""
    from difflib import get_close_matches  # only where a name is wrong

    known = sorted({it for it in names if it.isidentifier()} - {name})
    near = get_close_matches(name, known, _MOST, _NEAR)
    return f" Did you mean {' or '.join(near)}?" if near else ""
