"""The symbol table of an ELF file as it is, data and labels included; `decode.elf` has those gdb takes for places."""

from pathlib import Path
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where a symbol is. *size* in bytes, 0 when the file does not tell."""

    address: int
    size: int


def symbols(path: str | Path) -> dict[str, Place]:
    """All that have a name and are in a section, or absolute; of two of a name the last. {} where there are none."""
    from elftools.elf.elffile import ELFFile  # which takes long to load

    from rvtrace_gdb.decode.elf_file import ERRORS

    try:
        with open(path, "rb") as file:
            elf: Any = ELFFile(file)
            table = elf.get_section_by_name(".symtab")
            if table is None:
                return {}
            found = ((one.name, one) for one in table.iter_symbols() if one.name and _is_place(one))
            return {name: Place(one["st_value"], one["st_size"]) for name, one in found}
    except ERRORS:
        return {}  # what reads the program says what is wrong with it


def _is_place(symbol: Any) -> bool:
    return symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] not in ("STT_FILE", "STT_SECTION")


def names(path: str | Path) -> dict[int, str]:
    """The first name in alphabetical order of each address that has one."""
    return {place.address: name for name, place in sorted(symbols(path).items(), reverse=True)}
