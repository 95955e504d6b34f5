"""The nearest group that accesses some bytes: for watchpoints in both directions. Found by bisections."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.memory import MemoryWrites, Store
from rvtrace_gdb.decode.tandem.reads import Reads, reads_of
from rvtrace_gdb.decode.tandem.spaces import PHYSICAL, UNKNOWN


class Accessed(NamedTuple):
    """*address*: of the first of the bytes in question that *group* accessed, as the question had it."""

    group: int
    address: int


class Watched:
    """Of a tandem trace.

    A store or load is found by its address, whatever address space it was made in, as a hart's own triggers have it;
    and, as far as page tables are known, under every other address that is the same physical memory.
    """

    def __init__(self, tandem: Tandem) -> None:
        self._tandem = tandem

    @cached_property
    def reads(self) -> Reads:
        """The loads; found when they are first asked for."""
        index = self._tandem.index
        return reads_of(index.trace, index.retired, index.spaces)

    def nearest(
        self, position: int, address: int, size: int, *, forward: bool, stores: bool, loads: bool
    ) -> Accessed | None:
        """The first access to one of some bytes at or behind a position, or the last one before it.

        The address is one that a load or store would have there. Bytes that go over a page are taken to be in a row.
        """
        group = self._tandem.group_of(position)
        found: list[Accessed] = []
        for writes, there in self._places(position, address, stores=stores, loads=loads):
            store = writes.nearest(group, there, size, forward=forward)
            if store is not None:
                found.append(_accessed(store, address - there, address))
        return min(found, default=None) if forward else max(found, key=lambda it: (it.group, -it.address), default=None)

    def untold(self, first: int, last: int, *, loads: bool) -> list[int]:
        """Of groups *first* to *last* - 1 those that accessed nobody knows what; breaks are not among them."""
        index = self._tandem.index
        breaks = {it.group for it in index.breaks}
        found = [it for it in _within(index.memory_forgotten, first, last) if it not in breaks]
        return sorted({*found, *(_within(self.reads.untold, first, last) if loads else [])})

    def misplaced(self, first: int, last: int) -> Sequence[int]:
        """Of groups *first* to *last* - 1 those that stored to virtual memory nobody knows where."""
        return _within(self._misplaced, first, last)

    @cached_property
    def _translates(self) -> bool:
        """Whether addresses of stores are translated anywhere; else physical memory need not be looked at."""
        return any(space not in (PHYSICAL, UNKNOWN) for space in self._tandem.index.memory)

    @cached_property
    def _misplaced(self) -> Sequence[int]:
        index = self._tandem.index
        if not self._translates:
            return ()
        return [group for group in index.physical.doubts if self._tandem.after(group - 1).space != UNKNOWN]

    def _places(self, position: int, address: int, *, stores: bool, loads: bool) -> Iterator[tuple[MemoryWrites, int]]:
        """Where to look, and for which address there."""
        index = self._tandem.index
        if stores:
            yield from ((writes, address) for writes in index.memory.values())
        if loads:
            yield from ((writes, address) for writes in self.reads.memory.values())
        physical = self._tandem.before(position).physical_address(address) if self._translates else None
        if physical is not None and stores:
            yield index.physical.writes, physical
        if physical is not None and loads:
            yield self.reads.memory.get(PHYSICAL, _NOTHING), physical


def _accessed(store: Store, offset: int, address: int) -> Accessed:
    return Accessed(store.group, max(store.address + offset, address))


def _within(groups: Sequence[int], first: int, last: int) -> Sequence[int]:
    return groups[bisect_left(groups, first) : bisect_left(groups, last)]


_NOTHING = MemoryWrites()
