"""The memory of a program: where it is, and what in it never changes."""

from bisect import bisect_right
from collections.abc import Iterator

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support.extents import Extent


class ProgramMemory:
    """The memory that a program has, as far as its files say: code, constants and data, and no device."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._extents = _merged(sorted(_extents(image)))

    def __contains__(self, address: int) -> bool:
        i = bisect_right(self._extents, (address, 1 << 64)) - 1
        return i >= 0 and address < self._extents[i][1]

    @property
    def extents(self) -> list[Extent]:
        """Where the program is in memory, in increasing order."""
        return [Extent.between(begin, end) for begin, end in self._extents if end > begin]

    def constants(self, address: int, size: int) -> list[int | None]:
        """Return *size* bytes at *address*: code and constants, which the program does not write; None for others."""
        found: list[int | None] = []
        while len(found) < size:
            found += self._image.constant(address + len(found), size - len(found)) or [None]
        return found


def _extents(image: Image) -> Iterator[tuple[int, int]]:
    """Yield where the program is in memory: begin and end."""
    for elf, bias in image.elves:
        for section in elf.sections:
            yield section.start + bias, section.end + bias
        for segment in elf.segments:
            yield segment.vaddr + bias, segment.vaddr + bias + len(segment.data)
            yield segment.paddr + bias, segment.paddr + bias + len(segment.data)


def _merged(extents: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same addresses without overlaps, in increasing order."""
    merged: list[tuple[int, int]] = []
    for begin, end in extents:
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged
