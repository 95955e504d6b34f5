"""What is known at the two ends of a window."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.reconstruction.facts import KnownValue, StopState
from rvtrace_gdb.support.extents import Extent

ReadBytes = Callable[[int, int], Sequence[KnownValue]]
"""Returns each of some bytes of memory, from an address on; None: unknown."""


def nothing(address: int, size: int) -> Sequence[KnownValue]:
    """Know nothing of memory."""
    return [None] * size


class WindowEdge(NamedTuple):
    """What is known of a hart before the instruction at a position. *pc*: where it goes on, if the history does not
    tell.
    """

    x: Sequence[KnownValue] = (0, *[None] * 31)
    f: Sequence[KnownValue] = (None,) * 32
    csrs: Mapping[int, int] = {}
    memory: ReadBytes = nothing
    pc: KnownValue = None


def edge_of_stop(stop: StopState) -> WindowEdge:
    """Return the edge at a stop."""

    def read(address: int, size: int) -> Sequence[KnownValue]:
        known = stop.memory(address, size)
        return [*known[:size], *[None] * (size - len(known))]

    return WindowEdge(stop.x, stop.f, stop.csrs, read, stop.pc)


BLOCK = 256
"""Bytes that are read at once."""


class EdgeMemory:
    """The RAM at an edge, read in blocks, and each only once. *rams*: disjoint."""

    def __init__(self, read: ReadBytes, rams: Sequence[Extent]) -> None:
        self._read, self._rams = read, rams
        self._blocks: dict[int, Sequence[KnownValue]] = {}

    def byte(self, address: int) -> KnownValue:
        """Return a byte of RAM, None if it is unknown."""
        block = self._blocks.get(address & -BLOCK)
        if block is None:
            block = self._blocks[address & -BLOCK] = self._edge_block(address & -BLOCK)
        return block[address % BLOCK]

    def _edge_block(self, address: int) -> Sequence[KnownValue]:
        found: list[KnownValue] = [None] * BLOCK
        for ram in self._rams:
            if (part := ram.common(Extent(address, BLOCK))) is not None:
                found[part.address - address : part.end - address] = self._range_bytes(part.address, part.end)
        return found

    def _range_bytes(self, begin: int, end: int) -> Sequence[KnownValue]:
        """Return the bytes of a range. What can be read may begin, or end, within it."""
        found = list(self._read(begin, end - begin))
        missing = next((at for at, byte in enumerate(found) if byte is None), None)
        if missing is None or end - begin == 1:
            return found
        found[missing] = None
        rest = begin + missing + 1
        step = max(1, min(8 - rest % 8, end - rest))
        while rest < end:
            found[rest - begin : rest - begin + step] = self._read(rest, step)
            rest += step
            step = min(8, end - rest)
        return found
