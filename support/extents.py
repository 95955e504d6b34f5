"""Extents of memory: what two have in common, what is left of one, in which order they are read."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Extent(NamedTuple):
    """Some memory. *size*: in bytes."""

    address: int
    size: int

    @property
    def end(self) -> int:
        """The address behind its last byte."""
        return self.address + self.size

    @classmethod
    def between(cls, address: int, end: int) -> "Extent":
        """Return the memory from an address up to another one, which is not in it."""
        return cls(address, end - address)

    def common(self, other: "Extent") -> "Extent | None":
        """Return what is in both, None if nothing is."""
        address, end = max(self.address, other.address), min(self.end, other.end)
        return Extent.between(address, end) if address < end else None


def without(extent: Extent, parts: Iterable[Extent]) -> Iterator[Extent]:
    """Yield what is left of an extent."""
    at = extent.address
    for part in sorted(parts):
        if part.address > at:
            yield Extent.between(at, min(part.address, extent.end))
        at = max(at, part.end)
        if at >= extent.end:
            return
    if at < extent.end:
        yield Extent.between(at, extent.end)


def common(first: Iterable[Extent], second: Sequence[Extent]) -> list[Extent]:
    """Return what of each of *first* is in one of *second*, in their order."""
    return [part for one in first for other in second if (part := one.common(other)) is not None]


def disjoint(extents: Iterable[Extent]) -> list[Extent]:
    """Return the same bytes, each once, in rising order."""
    found: list[Extent] = []
    for extent in sorted(extents):
        if found and extent.address <= found[-1].end:
            found[-1] = Extent.between(found[-1].address, max(found[-1].end, extent.end))
        else:
            found.append(extent)
    return found


def each_once(extents: Iterable[Extent]) -> list[Extent]:
    """Return the same bytes in the same order, without those that were there before."""
    found: list[Extent] = []
    for whole in extents:
        found += without(whole, tuple(found))
    return found


def up_to(most: int, extents: Iterable[Extent]) -> list[Extent]:
    """Return the first extents, up to a number of bytes."""
    found = []
    for extent in each_once(extents):
        taken = min(extent.size, most)
        most -= taken
        if taken:
            found.append(Extent(extent.address, taken))
    return found


def cut(extents: Iterable[Extent], most: int) -> Iterator[Extent]:
    """Yield the same bytes in pieces."""
    for extent in extents:
        for at in range(extent.address, extent.end, most):
            yield Extent.between(at, min(at + most, extent.end))


def joined(pieces: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the contents of extents in rising order, those that touch as one. *pieces*: addresses and bytes."""
    found: list[tuple[int, list[bytes]]] = []
    end = -1
    for address, data in sorted(it for it in pieces if it[1]):
        if address == end:
            found[-1][1].append(data)
        else:
            found.append((address, [data]))
        end = address + len(data)
    return [(address, b"".join(parts)) for address, parts in found]
