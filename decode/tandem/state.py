"""The state of a hart: what registers, CSRs and memory held after any group of a trace, and what wrote it last.

What the trace does not determine is None: registers before their first write, bytes never stored to, counters, what a
trap or a return changed without a report, and everything after a loss until it is written again.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.tandem.effects import NOWHERE
from rvtrace_gdb.decode.tandem.index import Index
from rvtrace_gdb.decode.tandem.memory import PAGE, MemoryWrites, Store, physical_address
from rvtrace_gdb.decode.tandem.protocol import FPR, GPR
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, UNKNOWN

NOT_WRITTEN = "the trace has no earlier write to it"
LOST = "the value written to it may no longer be valid: part of the trace was lost since"
NOT_REPORTED = "it changed, and the trace does not give the new value"


class LastWrite(NamedTuple):
    """The last write before a moment.

    group    which made it
    value    what it wrote, None if the trace does not report it
    current  nothing was lost since, so it certainly is the last one
    size     bytes, of a store; 0 for a register
    """

    group: int
    value: int | None
    current: bool
    size: int = 0


class StoresAt(NamedTuple):
    """The stores to an address: *writes*, which have it as *address*."""

    writes: MemoryWrites
    address: int


class _PagePiece(NamedTuple):
    """Bytes of one page. *since*: stores before this group may be invalid."""

    place: StoresAt
    size: int
    since: int


class TandemState:
    """The state after group *group*; -1: before the first one. Everything is computed on demand.

    *lost*: also after what is missing after that group, so nothing is certain.
    """

    def __init__(self, index: Index, group: int, *, lost: bool = False) -> None:
        self._index, self.group, self._lost = index, group, lost

    @property
    def pc(self) -> int | None:
        """The address of the next instruction."""
        index, following = self._index, self.group + 1
        found = index.origins.get(following) if following < len(index.retired) and index.retired[following] else None
        if found is None:
            found = index.pcs[self.group] if self.group >= 0 else NOWHERE
        return None if found == NOWHERE else found

    @property
    def privilege(self) -> int | None:
        """The privilege mode: 0 U, 1 S, 3 M."""
        return self.register(csrs.PRIVILEGE)

    @property
    def mtime(self) -> int | None:
        """The time reported last: it has counted by itself since."""
        return None if self._lost or self.group < 0 else self._index.registers.reported(csrs.MTIME, self.group)

    @property
    def space(self) -> int:
        """The address space of loads and stores: see `decode.tandem.registers.space_of`."""
        spaces = self._index.spaces
        return spaces[bisect_right(spaces, self.group, key=itemgetter(0)) - 1][1]

    def register(self, regno: int) -> int | None:
        """Return any register, by its number in the Debug Specification."""
        if self._lost:
            return 0 if regno == GPR else None
        return self._index.registers.value(regno, self.group) if self.group >= 0 else (0 if regno == GPR else None)

    def x(self, number: int) -> int | None:
        """Return an integer register."""
        return self.register(GPR + number)

    def f(self, number: int) -> int | None:
        """Return a floating-point register, FLEN bits."""
        return self.register(FPR + number)

    def csr(self, number: int) -> int | None:
        """Return a CSR."""
        return self.register(number)

    def xs(self) -> list[int | None]:
        """Return all 32 integer registers."""
        return [self.x(number) for number in range(32)]

    def fs(self) -> list[int | None]:
        """Return all 32 floating-point registers."""
        return [self.f(number) for number in range(32)]

    def csrs(self) -> dict[int, int]:
        """Return all CSRs that are known, by number; parts of others are included once one of them was written."""
        registers = self._index.registers
        values = {number: self.csr(number) for number in registers.known_csrs()}
        return {number: value for number, value in sorted(values.items()) if value is not None}

    def memory(self, address: int, size: int, *, space: int | None = None, loads: bool = False) -> list[int | None]:
        """Return bytes of memory. *space*: of the address, by default that of loads and stores; or `PHYSICAL`.

        *loads*: include bytes that were not stored, but read by a load since they may have changed: for memory that is
        its content, for a device what it answered then.
        """
        if self._lost:
            return [None] * size
        found = [byte for piece in self._pieces(address, size, space) for byte in self._bytes(piece)]
        if loads and None in found:
            loaded = self._loaded_bytes(address, size, space)
            found = [other if byte is None else byte for byte, other in zip(found, loaded, strict=True)]
        return found

    def physical_address(self, address: int, *, space: int | None = None) -> int | None:
        """Return the physical address of an address in an address space, as far as the page tables are known."""
        space = self.space if space is None else space
        if space == PHYSICAL:
            return address
        if space == UNKNOWN:
            return None
        return physical_address(self._entry, space, address, self._index.trace.parameters.xlen)

    def why_not(self, regno: int) -> str:
        """Return why a register is not known; "" if it is."""
        if self.register(regno) is not None:
            return ""
        writer = self.register_writer(regno)
        if writer is None:
            return NOT_WRITTEN
        return NOT_REPORTED if writer.current else LOST

    def register_writer(self, regno: int) -> LastWrite | None:
        """Return the last write to a register, or to one it shares bits with, this group included."""
        registers = self._index.registers
        found = registers.last_write(regno, self.group) if self.group >= 0 else None
        if found is None:
            return None
        return LastWrite(found.group, found.value, not self._lost and registers.is_current(found.group, self.group))

    def memory_writer(self, address: int, size: int = 1, *, space: int | None = None) -> LastWrite | None:
        """Return the last store to any of some bytes, this group included."""
        found = [(store, piece.since) for piece in self._pieces(address, size, space) for store in self._stores(piece)]
        writers = [(store, store.group >= since) for store, since in found if store is not None]
        if not writers:
            return None
        last, current = max(writers, key=lambda writer: writer[0].group)
        return LastWrite(last.group, last.value, current and not self._lost, last.size)

    def place(self, address: int, *, space: int | None = None) -> StoresAt:
        """Return the stores to an address: the address space to search, and the address there."""
        space = self.space if space is None else space
        physical = self.physical_address(address, space=space)
        if physical is not None:
            return StoresAt(self._index.physical.writes, physical)
        return StoresAt(self._index.memory.get(space, _NOTHING), address)

    def _pieces(self, address: int, size: int, space: int | None) -> Iterator[_PagePiece]:
        """Yield some bytes, page by page."""
        space = self.space if space is None else space
        end = address + size
        while address < end:
            stop = end if space in (PHYSICAL, UNKNOWN) else min(end, (address // PAGE + 1) * PAGE)
            place = self.place(address, space=space)
            is_physical = place.writes is self._index.physical.writes
            yield _PagePiece(place, stop - address, self._since(is_physical=is_physical))
            address = stop

    def _stores(self, piece: _PagePiece) -> list[Store | None]:
        return piece.place.writes.last(self.group, piece.place.address, piece.size)

    def _bytes(self, piece: _PagePiece) -> Iterator[int | None]:
        for address, store in enumerate(self._stores(piece), piece.place.address):
            yield _byte(store, address) if store is not None and store.group >= piece.since else None

    def _loaded_bytes(self, address: int, size: int, space: int | None) -> list[int | None]:
        """Return the bytes that loads of this address have read, except those that may have changed since."""
        writes = self._index.loads.get(self.space if space is None else space, _NOTHING)
        found: list[int | None] = []
        for piece in self._pieces(address, size, space):
            for store in self._stores(piece):
                at = address + len(found)
                load = writes.last(self.group, at, 1)[0]
                since = max(piece.since, -1 if store is None else store.group)
                found.append(_byte(load, at) if load is not None and load.group >= since else None)
        return found

    def _entry(self, address: int, size: int) -> int | None:
        """Return a page table entry."""
        found = self.memory(address, size, space=PHYSICAL)
        return None if None in found else int.from_bytes(bytes(byte or 0 for byte in found), "little")

    def _since(self, *, is_physical: bool) -> int:
        """Return the first group whose stores are certain."""
        forgotten = _last_group(self._index.memory_forgotten, self.group)
        unplaced = _last_group(self._index.physical.unplaced, self.group) if is_physical else 0
        return max(forgotten, unplaced)


def _last_group(groups: Sequence[int], group: int) -> int:
    """Return the last of some groups up to one; 0 without any."""
    found = bisect_right(groups, group)
    return groups[found - 1] if found else 0


def _byte(store: Store, address: int) -> int | None:
    return None if store.value is None else store.value >> 8 * (address - store.address) & 0xFF


_NOTHING = MemoryWrites()
