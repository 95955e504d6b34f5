"""Stretches of memory, (address, bytes): what two have in common, what is left of one, in which order they are read."""

from collections.abc import Iterable, Iterator, Sequence

Stretch = tuple[int, int]
"""Address and size of some memory, in bytes."""


def without(whole: Stretch, parts: Iterable[Stretch]) -> Iterator[Stretch]:
    """Yield what is left of a stretch."""
    at, end = whole[0], sum(whole)
    for start, size in sorted(parts):
        if start > at:
            yield at, min(start, end) - at
        at = max(at, start + size)
        if at >= end:
            return
    if at < end:
        yield at, end - at


def common(first: Iterable[Stretch], second: Sequence[Stretch]) -> list[Stretch]:
    """Return what of each of *first* is in one of *second*, in their order."""
    found = []
    for a, a_size in first:
        for b, b_size in second:
            begin, end = max(a, b), min(a + a_size, b + b_size)
            if begin < end:
                found.append((begin, end - begin))
    return found


def disjoint(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return the same bytes, each once, in rising order."""
    found: list[Stretch] = []
    for start, size in sorted(stretches):
        if found and start <= sum(found[-1]):
            found[-1] = (found[-1][0], max(sum(found[-1]), start + size) - found[-1][0])
        else:
            found.append((start, size))
    return found


def each_once(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return the same bytes in the same order, without those that were there before."""
    found: list[Stretch] = []
    for whole in stretches:
        found += without(whole, tuple(found))
    return found


def up_to(most: int, stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return the first stretches, up to a number of bytes."""
    found = []
    for start, size in each_once(stretches):
        taken = min(size, most)
        most -= taken
        if taken:
            found.append((start, taken))
    return found


def cut(stretches: Iterable[Stretch], most: int) -> Iterator[Stretch]:
    """Yield the same bytes in pieces."""
    for start, size in stretches:
        for at in range(0, size, most):
            yield start + at, min(most, size - at)


def joined(pieces: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the content of stretches in rising order, those that touch as one."""
    found: list[tuple[int, list[bytes]]] = []
    end = -1
    for address, data in sorted(it for it in pieces if it[1]):
        if address == end:
            found[-1][1].append(data)
        else:
            found.append((address, [data]))
        end = address + len(data)
    return [(address, b"".join(parts)) for address, parts in found]
