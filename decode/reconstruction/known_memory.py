"""Memory of which each byte is known or not.

Only what is declared is believed: `Ram` ranges keep what is stored; `Rom` ranges have constant content; every other
address is volatile, so that a load of it is unknown and a store to it changes nothing that is known. Addresses are
physical, and the hart's own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

PAGE = 4096
"""Bytes; the unit of checkpoints."""
GRANULE = 8
"""Bytes that one byte of `Ram.known` tells of: bit n is set if byte n of them is known."""
WHOLE = 0xFF
"""All bytes of a granule are known."""


class Rom(Protocol):
    """Memory that is never written."""

    def constant(self, addr: int, size: int, /) -> bytes:
        """Return the leading part of *size* bytes that is known and never written."""


class Ram:
    """One range of RAM. *base* and *size* are multiples of `PAGE`."""

    def __init__(self, base: int, size: int) -> None:
        if base % PAGE or size % PAGE or size <= 0:
            raise ValueError(f"RAM at {base:#x}, {size:#x} bytes: not whole pages of {PAGE} bytes")
        self.base, self.size = base, size
        self.data = bytearray(size)
        self.known = bytearray(size // GRANULE)
        self.dirty = bytearray(size // PAGE)
        """1 for a page that was written since the last checkpoint."""
        self.filled = bytearray(size // PAGE)
        """1 for a page of which something may be known, besides those in `dirty`."""
        whole = memoryview(self.data)
        self.views = {1: whole, 2: whole.cast("H"), 4: whole.cast("I"), 8: whole.cast("Q")}

    def fill(self, address: int, content: bytes) -> None:
        """Make bytes known, as far as they lie in this range."""
        begin, end = max(address, self.base), min(address + len(content), self.base + self.size)
        if begin >= end:
            return
        first, last = begin - self.base, end - self.base
        self.data[first:last] = content[begin - address : end - address]
        for page in range(first // PAGE, (last - 1) // PAGE + 1):
            self.dirty[page] = 1
        inner = range(-(-first // GRANULE), last // GRANULE)
        if inner:
            self.known[inner.start : inner.stop] = bytes([WHOLE]) * len(inner)
        for at in (*range(first, min(inner.start * GRANULE, last)), *range(max(inner.stop * GRANULE, first), last)):
            self.known[at // GRANULE] |= 1 << at % GRANULE

    def forget(self, address: int, size: int) -> None:
        """Make bytes unknown, as far as they lie in this range."""
        for at in range(max(address - self.base, 0), min(address + size - self.base, self.size)):
            self.known[at // GRANULE] &= ~(1 << at % GRANULE)
            self.dirty[at // PAGE] = 1

    def is_known(self, offset: int) -> bool:
        return bool(self.known[offset // GRANULE] >> offset % GRANULE & 1)


class PageContent(NamedTuple):
    """A page as a checkpoint keeps it."""

    data: bytes
    known: bytes


class KnownMemory:
    """All memory of a hart. *rams*: the ranges of RAM, which do not overlap."""

    def __init__(self, rams: Iterable[Ram], rom: Rom) -> None:
        self.rams = sorted(rams, key=lambda ram: ram.base)
        self._rom = rom

    def load(self, address: int, size: int) -> int | None:
        """Return *size* bytes as a number, None if any of them is unknown."""
        found = self.bytes(address, size)
        return None if None in found else int.from_bytes(bytes(found), "little")  # type: ignore[arg-type]

    def bytes(self, address: int, size: int) -> list[int | None]:
        """Return each byte, None for an unknown one."""
        ram = self._ram(address)
        if ram is not None and address + size <= ram.base + ram.size:
            offset = address - ram.base
            known, data = ram.known, ram.data
            return [
                data[at] if known[at // GRANULE] >> at % GRANULE & 1 else None for at in range(offset, offset + size)
            ]
        return [self._byte(at) for at in range(address, address + size)]

    def store(self, address: int, size: int, value: int | None) -> None:
        """Store *size* bytes; None: unknown ones."""
        content = None if value is None else (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        for ram in self.rams:
            if address < ram.base + ram.size and ram.base < address + size:
                if content is None:
                    ram.forget(address, size)
                else:
                    ram.fill(address, content)

    def forget(self) -> None:
        """Forget all RAM: something was stored, and nobody knows where."""
        for ram in self.rams:
            for page in {*_marked(ram.dirty), *_marked(ram.filled)}:
                first = page * PAGE // GRANULE
                ram.known[first : first + PAGE // GRANULE] = bytes(PAGE // GRANULE)
                ram.dirty[page] = 1
                ram.filled[page] = 0

    def changed_pages(self) -> dict[int, PageContent]:
        """Return the pages that were written since the last call, by address."""
        found: dict[int, PageContent] = {}
        for ram in self.rams:
            for page in _marked(ram.dirty):
                found[ram.base + page * PAGE] = _content(ram, page)
                ram.dirty[page] = 0
                ram.filled[page] = 1
        return found

    def dirty_pages(self) -> Iterator[int]:
        """Yield the addresses of the pages that were written since the last `changed_pages`."""
        for ram in self.rams:
            yield from (ram.base + page * PAGE for page in _marked(ram.dirty))

    def restore(self, pages: Mapping[int, PageContent]) -> None:
        """Set pages to what they were; they do not count as written."""
        for address, content in pages.items():
            ram = self._ram(address)
            assert ram is not None
            offset = address - ram.base
            ram.data[offset : offset + PAGE] = content.data
            ram.known[offset // GRANULE : (offset + PAGE) // GRANULE] = content.known
            ram.dirty[offset // PAGE] = 0
            ram.filled[offset // PAGE] = 1

    def _ram(self, address: int) -> Ram | None:
        return next((ram for ram in self.rams if ram.base <= address < ram.base + ram.size), None)

    def _byte(self, address: int) -> int | None:
        ram = self._ram(address)
        if ram is not None:
            offset = address - ram.base
            return ram.data[offset] if ram.is_known(offset) else None
        constant = self._rom.constant(address, 1)
        return constant[0] if constant else None


BLANK = PageContent(bytes(PAGE), bytes(PAGE // GRANULE))
"""A page of which nothing is known."""


def _content(ram: Ram, page: int) -> PageContent:
    offset = page * PAGE
    return PageContent(
        bytes(ram.data[offset : offset + PAGE]), bytes(ram.known[offset // GRANULE : (offset + PAGE) // GRANULE])
    )


def _marked(marks: bytearray) -> Iterator[int]:
    """Yield the numbers of the pages that are marked."""
    page = marks.find(1)
    while page >= 0:
        yield page
        page = marks.find(1, page + 1)
