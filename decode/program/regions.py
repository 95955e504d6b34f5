"""Known bytes of an address space, each with the name of the file it comes from: what is added, replaced, compared."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_PAGE = 1024  # bytes compared at once


class Region(NamedTuple):
    """Bytes at an address, and the name of the file they come from."""

    start: int
    data: bytes
    origin: str

    @property
    def end(self) -> int:
        """The address behind the last byte."""
        return self.start + len(self.data)

    def part(self, start: int, end: int) -> bytes:
        """Return the bytes from address *start*, which is in this region, to *end* - 1, as far as they are."""
        return self.data[start - self.start : end - self.start]


class Regions:
    """Regions in rising order of their addresses, of which no two overlap. Addresses and sizes are in bytes."""

    def __init__(self) -> None:
        self._regions: list[Region] = []

    def __iter__(self) -> Iterator[Region]:
        return iter(self._regions)

    def region_at(self, addr: int) -> Region | None:
        """Return the region that has the byte at *addr*, if there is one."""
        i = self._begun(addr) - 1
        region = self._regions[i] if i >= 0 else None
        return region if region is not None and addr < region.start + len(region.data) else None

    def _begun(self, addr: int) -> int:
        """Return how many regions begin at *addr* or before it."""
        return bisect_left(self._regions, (addr + 1, b"", ""))  # without a key, which would be a call for each

    def overlapping(self, addr: int, end: int) -> list[Region]:
        """Return the regions that have some of the bytes from *addr* to *end* - 1, in rising order."""
        first = max(self._begun(addr) - 1, 0)
        behind = self._begun(end - 1)
        return [region for region in self._regions[first:behind] if addr < region.end]

    def next_start(self, addr: int, end: int) -> int:
        """Return where the first region behind *addr* begins, at most *end*."""
        i = self._begun(addr)
        return min(self._regions[i].start, end) if i < len(self._regions) else end

    def holes(self, addr: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield begin and end of the parts of a range that no region has."""
        for region in self.overlapping(addr, end):
            if addr < region.start:
                yield addr, region.start
            addr = max(addr, region.end)
        if addr < end:
            yield addr, end

    def add(self, addr: int, data: bytes, origin: str) -> None:
        """Add the bytes that no region has yet."""
        for start, end in list(self.holes(addr, addr + len(data))):
            insort(self._regions, Region(start, data[start - addr : end - addr], origin))

    def replace(self, addr: int, data: bytes, origin: str) -> None:
        """Put these bytes in the place of those of one region."""
        i = self._begun(addr) - 1
        start, old, of_file = self._regions[i]
        end = addr + len(data)
        parts = [Region(start, old[: addr - start], of_file), Region(addr, data, origin),
                 Region(end, old[end - start :], of_file)]  # fmt: skip
        self._regions[i : i + 1] = [part for part in parts if part.data]

    def compared(self, addr: int, data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield each stretch of *addr* and *data* that a region has, too: its address, the bytes of *data*, and those
        of the region.
        """
        end = addr + len(data)
        for region in self.overlapping(addr, end):
            start, stop = max(addr, region.start), min(end, region.end)
            yield start, data[start - addr : stop - addr], region.part(start, stop)


def joined_code(code: Iterable[tuple[int, bytes]]) -> tuple[tuple[int, bytes], ...]:
    """Return stretches of code, addresses and bytes, with those that touch each other as one, in rising order. Bytes
    that an earlier one has already stay, as in `Image.add_code`.
    """
    regions = Regions()
    for address, data in code:
        regions.add(address, data, "")
    found: list[tuple[int, bytearray]] = []
    for region in regions:
        if found and region.start == found[-1][0] + len(found[-1][1]):
            found[-1][1].extend(region.data)
        else:
            found.append((region.start, bytearray(region.data)))
    return tuple((start, bytes(data)) for start, data in found)


def differing_halfwords(now: bytes, before: bytes, odd: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each stretch of halfwords in which two contents of the same memory differ. *odd*: 1 if it
    begins between two halfwords.
    """
    begin = None
    for page in range(-odd, len(now), _PAGE):
        if now[max(page, 0) : page + _PAGE] == before[max(page, 0) : page + _PAGE]:
            halfwords = range(page, page + 1)  # nothing differs: the first one says so
        else:
            halfwords = range(page, min(page + _PAGE, len(now)), 2)
        for at in halfwords:
            if now[max(at, 0) : at + 2] != before[max(at, 0) : at + 2]:
                begin = max(at, 0) if begin is None else begin
            elif begin is not None:
                yield begin, at
                begin = None
    if begin is not None:
        yield begin, len(now)
