"""The loads and stores of stretches of a history, found by executing them."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from typing import NamedTuple

_LOAD = 0x80  # in the byte of an access; the rest is its size, 0: the address is unknown
_CELL = 8  # bytes whose stores are found together
_CELL_BITS = 1 << 17
_KEPT_LOGS = 16


class ReconstructedAccess(NamedTuple):
    """The instruction at *position* accesses some bytes; *address*: the first of those that were asked for."""

    position: int
    address: int


class StoredCells:
    """Which cells stores were to, in little memory: some cells count as well that none was to."""

    def __init__(self, cells: Iterable[int]) -> None:
        self._bits = bytearray(_CELL_BITS // 8)
        for cell in cells:
            self._bits[cell % _CELL_BITS >> 3] |= 1 << (cell & 7)

    def may_include(self, address: int, size: int) -> bool:
        """Return whether a store may have been to any of some bytes."""
        cells = range(address // _CELL, (address + size - 1) // _CELL + 1)
        return len(cells) > _CELL_BITS or any(self._bits[it % _CELL_BITS >> 3] >> (it & 7) & 1 for it in cells)


class AccessLog:
    """Accesses in the order in which they were made, those of one instruction beside each other."""

    def __init__(self) -> None:
        self._positions, self._addresses, self._kinds = array("Q"), array("Q"), array("B")
        self._stores: dict[int, array[int]] = {}  # the numbers of the stores to each cell
        self._indexed = 0  # accesses
        self.unknown: list[tuple[int, str]] = []
        """(position, "load" or "store") of each access whose address is unknown."""

    def add(self, position: int, kind: str, address: int | None, size: int) -> None:
        """Add an access; an *address* of None: unknown."""
        if address is None:
            self.unknown.append((position, kind))
            return
        self._positions.append(position)
        self._addresses.append(address)
        self._kinds.append(size | (_LOAD if kind == "load" else 0))

    def __len__(self) -> int:
        return len(self._positions)

    def nearest(
        self, position: int, address: int, size: int, *, forward: bool, stores: bool, loads: bool
    ) -> ReconstructedAccess | None:
        """Return the first access to any of some bytes at or after a position, or the last one before it."""
        at = bisect_left(self._positions, position)
        order: Iterable[int] = range(at, len(self)) if forward else range(at - 1, -1, -1)
        if not loads and not forward and size <= _CELL:
            order = self._stores_before(at, address, size)
        end = address + size
        for number in order:
            kind, begin = self._kinds[number], self._addresses[number]
            if begin < end and address < begin + (kind & ~_LOAD) and (loads if kind & _LOAD else stores):
                return ReconstructedAccess(self._positions[number], max(begin, address))
        return None

    def _stores_before(self, number: int, address: int, size: int) -> Iterator[int]:
        """Yield the stores to the cells of some bytes that are before the access with a number, the last one first."""
        self._index_stores()
        cells = {address // _CELL, (address + size - 1) // _CELL}
        found = [self._stores[cell] for cell in cells if cell in self._stores]
        return merge(*(reversed(one[: bisect_left(one, number)]) for one in found), reverse=True)

    def stored_cells(self) -> StoredCells:
        """Return which cells the stores were to."""
        self._index_stores()
        return StoredCells(self._stores)

    def _index_stores(self) -> None:
        """Note the stores to each cell: what is asked of one store is asked of others, too."""
        stores = self._stores
        for number in range(self._indexed, len(self)):
            kind, begin = self._kinds[number], self._addresses[number]
            if not kind & _LOAD:
                for cell in range(begin // _CELL, (begin + kind - 1) // _CELL + 1):
                    found = stores.get(cell)
                    if found is None:
                        found = stores[cell] = array("I")
                    found.append(number)
        self._indexed = len(self)

    def store_at(self, position: int, address: int, size: int) -> tuple[int, int] | None:
        """Return the address and the size of the last store of an instruction that is to any of some bytes."""
        for number in range(bisect_right(self._positions, position) - 1, -1, -1):
            if self._positions[number] != position:
                break
            kind, begin = self._kinds[number], self._addresses[number]
            if not kind & _LOAD and begin < address + size and address < begin + kind:
                return begin, kind
        return None

    def unknown_between(self, first: int, last: int, *, loads: bool) -> list[int]:
        """Return those positions from *first* to *last* - 1 whose accesses have unknown addresses."""
        return [position for position, kind in self.unknown if first <= position < last and (loads or kind == "store")]


class StretchAccesses:
    """The accesses of the stretches of a history, by their numbers. Those of a few stretches are kept, and of each one
    what takes little memory.

    *observe* executes a stretch to find its accesses.
    """

    def __init__(self, observe: Callable[[int], AccessLog]) -> None:
        self._observe = observe
        self._logs: dict[int, AccessLog] = {}
        self._unknown: dict[int, array[int]] = {}
        self._cells: dict[int, StoredCells] = {}

    def log(self, stretch: int) -> AccessLog:
        """Return the loads and stores of a stretch. Raises what *observe* raises."""
        log = self._logs.pop(stretch, None)
        if log is None:
            log = self._observe(stretch)
            self._unknown[stretch] = array("Q", sorted({position for position, _ in log.unknown}))
            self._cells[stretch] = log.stored_cells()
        self._logs[stretch] = log
        while len(self._logs) > _KEPT_LOGS:
            del self._logs[next(iter(self._logs))]
        return log

    def unknown(self, stretch: int) -> Sequence[int]:
        """Return the positions in a stretch of loads and stores whose addresses are unknown. Raises as `log`."""
        if stretch not in self._unknown:
            self.log(stretch)
        return self._unknown[stretch]

    def may_store(self, stretch: int, address: int, size: int) -> bool:
        """Return whether a store in a stretch may be to some bytes, as far as its accesses have been looked at."""
        cells = self._cells.get(stretch)
        return cells is None or cells.may_include(address, size)
