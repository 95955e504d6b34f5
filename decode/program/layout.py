"""The layout of a program in memory: its sections, its objects, and where stacks may be.

Source: the ELF specification (System V gABI): sh_flags; which symbols name the end of a stack: linker scripts of
vendors and of picolibc.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support.inputs import open_input

_EXECUTABLE, _ALLOCATED = 4, 2
_STACK_END = re.compile(r"_*(stack|sp)_?(limit|bottom|lowest|low|end)_*|_*stacklimit_*", re.IGNORECASE)
_STACK_NAME = re.compile(r"stack", re.IGNORECASE)


class PlacedObject(NamedTuple):
    """Addresses from *start* to *end* - 1, and the name of what is there."""

    start: int
    end: int
    name: str


class ProgramLayout:
    """The sections and objects of the files of a program. What cannot be read has none."""

    def __init__(self, image: Image) -> None:
        self._image = image

    @cached_property
    def _contents(self) -> tuple[list[tuple[PlacedObject, int]], list[PlacedObject], list[int]]:
        """The sections with their flags, the objects, and the ends of stacks that the program names."""
        sections: list[tuple[PlacedObject, int]] = []
        objects: list[PlacedObject] = []
        limits: list[int] = []
        for elf, bias in self._image.layers:
            for kind, extent, flags in _file_parts(elf.path):
                moved = PlacedObject(extent.start + bias, extent.end + bias, extent.name)
                if kind == "section":
                    sections.append((moved, flags))
                elif kind == "object":
                    objects.append(moved)
                else:
                    limits.append(moved.start)
        return sorted(sections), sorted(objects), sorted(limits)

    def section_at(self, address: int) -> PlacedObject | None:
        """Return the section that an address is in."""
        return next((it for it, _ in self._contents[0] if it.start <= address < it.end), None)

    def object_at(self, address: int) -> PlacedObject | None:
        """Return the object, a variable or a table, that an address is in."""
        objects = self._contents[1]
        at = bisect_right(objects, address, key=lambda it: it.start) - 1
        for it in reversed(objects[max(at - 8, 0) : at + 1]):
            if it.start <= address < it.end:
                return it
        return None

    def is_code(self, pc: int) -> bool:
        """Return whether there is code at an address, as far as the sections say."""
        sections = self._contents[0]
        if not sections:
            return True
        holding = [flags for it, flags in sections if it.start <= pc < it.end]
        return not holding or (bool(holding[0] & _EXECUTABLE) and self.object_at(pc) is None)

    def stack_room(self, top: int) -> PlacedObject | None:
        """Return where a stack may be that begins below an address, or has come down to it; None: that is not known.
        The end of one that is in no section is that address.
        """
        sections, _, limits = self._contents
        own = self.object_at(top - 1)
        if own is not None:
            return own
        section = self.section_at(top - 1)
        if section is not None and _STACK_NAME.search(section.name) is None:
            return None  # a stack without a name in a section of others: its end is not known
        below = max((it.end for it, _ in sections if it.end <= top), default=-1)
        floor = below if section is None else section.start
        named = [it for it in limits if floor <= it < top]
        floor = max([floor, *named[-1:]])
        if section is not None:
            return PlacedObject(floor, section.end, section.name)
        return None if floor < 0 else PlacedObject(floor, top, "stack")


def _file_parts(path: str) -> Iterator[tuple[str, PlacedObject, int]]:
    from elftools.elf.elffile import ELFFile  # which takes long to load

    from rvtrace_gdb.decode.program.elf_file import ERRORS

    try:
        with open_input(path) as file:
            yield from list(_elf_file_parts(ELFFile(file)))
    except ERRORS:
        return


def _elf_file_parts(elf: Any) -> Iterator[tuple[str, PlacedObject, int]]:
    for section in elf.iter_sections():
        if section["sh_flags"] & _ALLOCATED and section["sh_size"]:
            start = section["sh_addr"]
            yield "section", PlacedObject(start, start + section["sh_size"], section.name), section["sh_flags"]
    table = elf.get_section_by_name(".symtab")
    for symbol in () if table is None else table.iter_symbols():
        start, size = symbol["st_value"], symbol["st_size"]
        if symbol["st_info"]["type"] == "STT_OBJECT" and size:
            yield "object", PlacedObject(start, start + size, symbol.name), 0
        elif _STACK_END.fullmatch(symbol.name) and start:
            yield "limit", PlacedObject(start, start, symbol.name), 0
