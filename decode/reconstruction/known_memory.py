"""Memory of which each byte is known or not.

Only what is declared is believed: `KnownRam` ranges keep what is stored; `Rom` ranges have constant content; every
other address is volatile, so that a load of it is unknown and a store to it changes nothing that is known. Addresses
are physical, and the hart's own.
"""

import mmap
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from rvtrace_gdb.support.extents import Extent

PAGE = 4096
"""Bytes; the unit of checkpoints."""
GRANULE = 8
"""Bytes that one byte of `KnownRam.known_bytes` tells of: bit n is set if byte n of them is known."""
WHOLE = 0xFF
"""All bytes of a granule are known."""


_LARGE = 1 << 25  # bytes; a larger array takes memory only where it is used
_LARGEST = 1 << 36
_MAP_NORESERVE = 0x4000  # Linux: it may be more than the machine has (mmap(2)); Python 3.13 has the name


class Rom(Protocol):
    """Memory that is not written, unless a store shows that it is."""

    def constant(self, addr: int, size: int, /) -> bytes:
        """Return the leading part of *size* bytes that is known and never written."""

    def constants(self, addr: int, size: int, /) -> Iterable[tuple[int, bytes]]:
        """Return (address, bytes) of all parts of *size* bytes that `constant` would return."""


class KnownRam:
    """One range of RAM. *base* and *size* are multiples of `PAGE`.

    own  the parts of it that are RAM; (): all of it. Other bytes are never known.
    """

    def __init__(self, base: int, size: int, own: Sequence[Extent] = ()) -> None:
        if base % PAGE or size % PAGE or size <= 0:
            raise ValueError(f"RAM at {base:#x}, {size:#x} bytes: not whole pages of {PAGE} bytes")
        self.base, self.size = base, size
        self.own = [(part.address, part.end) for part in own or [Extent(base, size)]]
        self.is_whole = not own
        self.data = _zeros(size)
        self.known_bytes = _zeros(size // GRANULE)
        self.dirty = bytearray(size // PAGE)
        """1 for a page that was stored to, until `KnownMemory` has looked at it."""
        self.filled = bytearray(size // PAGE)
        """1 for a page of which something may be known, besides those in `dirty`."""
        self.changed = bytearray(size // PAGE)
        """1 for a page that has changed since the last checkpoint, besides those in `dirty`."""
        whole = memoryview(self.data)
        self.views = {1: whole, 2: whole.cast("H"), 4: whole.cast("I"), 8: whole.cast("Q")}

    def fill(self, address: int, content: bytes) -> None:
        """Make bytes known, as far as they lie in this range."""
        for low, high in self.own:
            begin, end = max(address, low), min(address + len(content), high)
            if begin < end:
                self._fill(begin - self.base, content[begin - address : end - address])

    def _fill(self, first: int, content: bytes) -> None:
        last = first + len(content)
        self.data[first:last] = content
        for page in range(first // PAGE, (last - 1) // PAGE + 1):
            self.dirty[page] = 1
        inner = range(-(-first // GRANULE), last // GRANULE)
        if inner:
            self.known_bytes[inner.start : inner.stop] = bytes([WHOLE]) * len(inner)
        for at in (*range(first, min(inner.start * GRANULE, last)), *range(max(inner.stop * GRANULE, first), last)):
            self.known_bytes[at // GRANULE] |= 1 << at % GRANULE

    def forget(self, address: int, size: int) -> None:
        """Make bytes unknown, as far as they lie in this range: a store of unknown ones."""
        for at in range(max(address - self.base, 0), min(address + size - self.base, self.size)):
            self.known_bytes[at // GRANULE] &= ~(1 << at % GRANULE)
            self.dirty[at // PAGE] = 1

    def is_known(self, offset: int) -> bool:
        return bool(self.known_bytes[offset // GRANULE] >> offset % GRANULE & 1)


def _zeros(size: int) -> "bytearray | mmap.mmap":
    if size < _LARGE:
        return bytearray(size)
    if sys.platform != "linux":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)


def rams_of(ranges: Iterable[Extent]) -> list[KnownRam]:
    """Return the RAM of disjoint ranges: whole pages together, and each page of which only parts are
    RAM by itself. Ranges that are too large for this machine are left out.
    """
    found: list[KnownRam] = []
    parts: dict[int, list[Extent]] = {}
    for ram in ranges:
        begin, end, first = ram.address, ram.end, -(-ram.address // PAGE) * PAGE
        last = max(end // PAGE * PAGE, first)
        if first < last:
            try:
                whole = KnownRam(first, last - first) if last - first <= _LARGEST else None
            except (OSError, MemoryError):
                whole = None
            if whole is None:
                continue
            found.append(whole)
        for low, high in ((begin, min(first, end)), (max(last, begin), end)):
            if low < high:
                parts.setdefault(low // PAGE * PAGE, []).append(Extent.between(low, high))
    return found + [KnownRam(page, PAGE, sorted(set(own))) for page, own in parts.items()]


class PageContent(NamedTuple):
    """A page as a checkpoint keeps it."""

    data: bytes
    known_bytes: bytes


class StoredPages(NamedTuple):
    """The addresses of pages. *stored*: stores went there; *elsewhere*: stores that are not in RAM, or not wholly."""

    stored: frozenset[int]
    elsewhere: frozenset[int]

    def may_include(self, address: int, size: int) -> bool:
        """Return whether a store to any of some bytes may be among them."""
        pages = range(address & -PAGE, address + size, PAGE)
        return any(page in self.stored or page in self.elsewhere for page in pages)


class KnownMemory:
    """All memory of a hart. *rams*: the ranges of RAM, which do not overlap.

    rewritten  the pages that have constants, and are stored to nevertheless: their constants are not believed
    replaced   the bytes that breakpoints replace: they have no constants
    """

    def __init__(self, rams: Iterable[KnownRam], rom: Rom) -> None:
        self.rams = sorted(rams, key=lambda ram: ram.base)
        self._rom = rom
        self.rewritten: frozenset[int] = frozenset()
        self.replaced: frozenset[int] = frozenset()
        self._stored: set[int] = set()
        self._elsewhere: set[int] = set()

    def begin(self, contents: Iterable[tuple[int, bytes]]) -> None:
        """Set what is known at first."""
        for address, content in contents:
            for ram in self.rams:
                ram.fill(address, content)
        self._note_stored_pages()
        self._stored.clear()

    def write(self, address: int, content: bytes) -> None:
        """Write what a debugger wrote."""
        for at in range(0, len(content), GRANULE):
            part = content[at : at + GRANULE]
            self.store(address + at, len(part), int.from_bytes(part, "little"))

    def lose(self, address: int, size: int) -> None:
        """Make bytes unknown that breakpoints replace while the program runs. Constants beside them stay."""
        for ram in self.rams:
            ram.forget(address, size)
        self.replaced |= {*range(address, address + size)}

    def load(self, address: int, size: int) -> int | None:
        """Return *size* bytes as a number, None if any of them is unknown."""
        ram = self._ram(address)
        if ram is None and address & -PAGE not in self.rewritten and not self._is_replaced(address, size):
            constant = self._rom.constant(address, size)
            if len(constant) == size:
                return int.from_bytes(constant, "little")
        found = self.bytes(address, size)
        return None if None in found else int.from_bytes(bytes(found), "little")  # type: ignore[arg-type]

    def _is_replaced(self, address: int, size: int) -> bool:
        return bool(self.replaced) and not self.replaced.isdisjoint(range(address, address + size))

    def bytes(self, address: int, size: int) -> list[int | None]:
        """Return each byte, None for an unknown one."""
        ram = self._ram(address)
        if ram is not None and address + size <= ram.base + ram.size:
            offset = address - ram.base
            known, data = ram.known_bytes, ram.data
            found: list[int | None] = [
                data[at] if known[at // GRANULE] >> at % GRANULE & 1 else None for at in range(offset, offset + size)
            ]
            return found if None not in found else [self._or_constant(address + n, it) for n, it in enumerate(found)]
        return [self._byte(at) for at in range(address, address + size)]

    def store(self, address: int, size: int, value: int | None) -> None:
        """Store *size* bytes; None: unknown ones."""
        content = None if value is None else (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        inside = False
        for ram in self.rams:
            if address < ram.base + ram.size and ram.base < address + size:
                if content is None:
                    ram.forget(address, size)
                else:
                    ram.fill(address, content)
                inside = inside or (ram.is_whole and ram.base <= address and address + size <= ram.base + ram.size)
        if not inside or content is None:
            pages = range(address & -PAGE, address + size, PAGE)
            if not inside:
                self._elsewhere.update(pages)
            if any(self._rom.constants(address, size)):
                self.rewritten |= {*pages}

    def _note_stored_pages(self) -> None:
        """Note which pages were stored to, and which of these no longer have the constants of the program."""
        for ram in self.rams:
            for page in _marked(ram.dirty):
                address = ram.base + page * PAGE
                ram.dirty[page], ram.filled[page], ram.changed[page] = 0, 1, 1
                self._stored.add(address)
                if address not in self.rewritten and any(
                    byte not in (None, other)
                    for at, content in self._rom.constants(address, PAGE)
                    if ram.data[at - ram.base : at - ram.base + len(content)] != content
                    for byte, other in zip(self.bytes(at, len(content)), content, strict=True)
                ):
                    self.rewritten |= {address}

    def forget(self) -> None:
        """Forget all RAM: something was stored, and nobody knows where. Constants stay."""
        self._note_stored_pages()
        for ram in self.rams:
            for page in _marked(ram.filled):
                address = ram.base + page * PAGE
                if address not in self.rewritten and len(self._rom.constant(address, PAGE)) == PAGE:
                    ram.filled[page] = 0
                    continue
                first = page * PAGE // GRANULE
                ram.known_bytes[first : first + PAGE // GRANULE] = bytes(PAGE // GRANULE)
                ram.filled[page], ram.changed[page] = 0, 1

    def changed_pages(self) -> tuple[dict[int, PageContent], StoredPages]:
        """Return the pages that have changed since the last call, by address, and where stores went since then."""
        self._note_stored_pages()
        found: dict[int, PageContent] = {}
        for ram in self.rams:
            for page in _marked(ram.changed):
                found[ram.base + page * PAGE] = _content(ram, page)
                ram.filled[page], ram.changed[page] = 1, 0
        stored = StoredPages(frozenset(self._stored), frozenset(self._elsewhere))
        self._stored.clear()
        self._elsewhere.clear()
        return found, stored

    def dirty_pages(self) -> Iterator[int]:
        """Yield the addresses of the pages that were written since the last `changed_pages`."""
        for ram in self.rams:
            yield from (ram.base + page * PAGE for page in {*_marked(ram.dirty), *_marked(ram.changed)})

    def restore(self, pages: Mapping[int, PageContent], rewritten: frozenset[int]) -> None:
        """Set pages to what they were; they do not count as written."""
        self.rewritten = rewritten
        for address, content in pages.items():
            ram = self._ram(address)
            assert ram is not None
            offset = address - ram.base
            ram.data[offset : offset + PAGE] = content.data
            ram.known_bytes[offset // GRANULE : (offset + PAGE) // GRANULE] = content.known_bytes
            ram.dirty[offset // PAGE] = ram.changed[offset // PAGE] = 0
            ram.filled[offset // PAGE] = 1
        self._stored.clear()
        self._elsewhere.clear()

    def _ram(self, address: int) -> KnownRam | None:
        return next((ram for ram in self.rams if ram.base <= address < ram.base + ram.size), None)

    def _byte(self, address: int) -> int | None:
        ram = self._ram(address)
        if ram is not None:
            offset = address - ram.base
            return self._or_constant(address, ram.data[offset] if ram.is_known(offset) else None)
        return self._or_constant(address, None)

    def _or_constant(self, address: int, byte: int | None) -> int | None:
        """Return a byte of RAM, or the constant there."""
        if byte is not None or address & -PAGE in self.rewritten or address in self.replaced:
            return byte
        constant = self._rom.constant(address, 1)
        return constant[0] if constant else None


BLANK = PageContent(bytes(PAGE), bytes(PAGE // GRANULE))
"""A page of which nothing is known."""


def _content(ram: KnownRam, page: int) -> PageContent:
    offset = page * PAGE
    return PageContent(
        bytes(ram.data[offset : offset + PAGE]), bytes(ram.known_bytes[offset // GRANULE : (offset + PAGE) // GRANULE])
    )


def _marked(marks: bytearray) -> Iterator[int]:
    """Yield the numbers of the pages that are marked."""
    page = marks.find(1)
    while page >= 0:
        yield page
        page = marks.find(1, page + 1)
