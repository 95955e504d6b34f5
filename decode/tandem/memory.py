"""What was stored to memory, and when, at virtual and at physical addresses.

The last writer of a byte before any group is found by bisections. Stores are kept in the order of the trace, in arrays;
for look-ups they are sorted by size and address, once, on first use. Each address space is a `MemoryWrites`.

Physical memory is what was stored to it at physical addresses, and at virtual ones that the page tables translate. A
store whose physical address is not known may have changed any byte: from then on nothing that physical memory held
before is known. Page tables are known as far as the trace has the stores that created them. Source: RISC-V Privileged
Architecture, "Sv32", "Sv39", "Sv48", "Sv57" (Virtual Address Translation Process), "Svnapot". Permissions are ignored:
every address in question was accessed.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import NamedTuple

from rvtrace_gdb.decode.tandem.registers import PHYSICAL, UNKNOWN


class Store(NamedTuple):
    """A store. *value*: None if the trace does not report it."""

    group: int
    address: int
    size: int
    value: int | None


class _OfSize:
    """The stores of one size, by address: addresses in rising order, and for each the numbers of its stores."""

    def __init__(self, size: int, addresses: "array[int]", numbers: "list[int]") -> None:
        numbers.sort(key=addresses.__getitem__)  # stable: of one address they stay in order
        self.size = size
        self.numbers = array("I", numbers)
        self.addresses = array("Q")
        self.begins = array("I")
        last = -1
        for index, number in enumerate(numbers):
            if addresses[number] != last:
                last = addresses[number]
                self.addresses.append(last)
                self.begins.append(index)
        self.begins.append(len(numbers))

    def before(self, number: int, address: int, stop: int) -> Iterator[int]:
        """Yield, for each address in *address* to *stop* - 1 that was stored to before store *number*, the last such
        store.
        """
        for index in self._overlapping_indices(address, stop):
            begin = self.begins[index]
            found = bisect_left(self.numbers, number, begin, self.begins[index + 1]) - 1
            if found >= begin:
                yield self.numbers[found]

    def from_(self, number: int, address: int, stop: int) -> Iterator[int]:
        """Yield, for each address in *address* to *stop* - 1, the first store to it with number *number* or higher."""
        for index in self._overlapping_indices(address, stop):
            end = self.begins[index + 1]
            found = bisect_left(self.numbers, number, self.begins[index], end)
            if found < end:
                yield self.numbers[found]

    def all_in(self, address: int, stop: int) -> Iterator[int]:
        """Yield all stores to *address* to *stop* - 1."""
        for index in self._overlapping_indices(address, stop):
            yield from self.numbers[self.begins[index] : self.begins[index + 1]]

    def _overlapping_indices(self, address: int, stop: int) -> range:
        """Return the indices of the addresses whose stores reach into *address* to *stop* - 1."""
        first = bisect_left(self.addresses, max(address - self.size + 1, 0))
        return range(first, bisect_left(self.addresses, stop, first) if stop >> 64 == 0 else len(self.addresses))


class MemoryWrites:
    """The stores in one address space, in order."""

    def __init__(self) -> None:
        self.groups = array("I")
        self.addresses = array("Q")
        self.values = array("Q")
        self.sizes = array("B")
        self.unknown: set[int] = set()
        """The stores whose value is not reported."""
        self.placed: set[int] = set()
        """The stores whose physical address is also reported: they are among the stores to physical memory."""
        self._sorted: list[_OfSize] = []
        self._of = 0  # as many are sorted

    def __len__(self) -> int:
        return len(self.groups)

    def add(self, group: int, address: int, size: int, value: int | None) -> None:
        """Add *size* bytes stored by *group*, which is not before the last one."""
        if value is None:
            self.unknown.add(len(self.groups))
        self.groups.append(group)
        self.addresses.append(address)
        self.values.append(value or 0)
        self.sizes.append(size)

    def store(self, number: int) -> Store:
        """Return store *number*, counted from 0."""
        value = None if number in self.unknown else self.values[number]
        return Store(self.groups[number], self.addresses[number], self.sizes[number], value)

    def last(self, group: int, address: int, size: int) -> list[Store | None]:
        """Return, for each byte, the last store to it up to and including *group*; None if there is none."""
        found: list[Store | None] = [None] * size
        following, stop = bisect_left(self.groups, group + 1), address + size
        # the last stores to each address with some of the bytes, in order
        for number in sorted(one for sizes in self._sort() for one in sizes.before(following, address, stop)):
            store = self.store(number)
            for at in range(max(store.address - address, 0), min(store.address + store.size - address, size)):
                found[at] = store
        return found

    def stores_of(self, group: int) -> list[Store]:
        """Return the stores of a group, in order."""
        return [
            self.store(number) for number in range(bisect_left(self.groups, group), bisect_left(self.groups, group + 1))
        ]

    def nearest(self, group: int, address: int, size: int, *, forward: bool) -> Store | None:
        """Return the first store to any of some bytes by *group* or a later one (*forward*), or the last one by an
        earlier group.
        """
        number, stop = bisect_left(self.groups, group), address + size
        if forward:
            found = min((n for sizes in self._sort() for n in sizes.from_(number, address, stop)), default=None)
        else:
            found = max((n for sizes in self._sort() for n in sizes.before(number, address, stop)), default=None)
        return None if found is None else self.store(found)

    def all_to(self, address: int, size: int) -> list[Store]:
        """Return every store to any of some bytes, in order."""
        numbers = (number for sizes in self._sort() for number in sizes.all_in(address, address + size))
        return [self.store(number) for number in sorted(numbers)]

    def _sort(self) -> list[_OfSize]:
        if self._of != len(self.groups):
            by_size: dict[int, list[int]] = {}
            for number, size in enumerate(self.sizes):
                by_size.setdefault(size, []).append(number)
            self._sorted = [_OfSize(size, self.addresses, numbers) for size, numbers in sorted(by_size.items())]
            self._of = len(self.groups)
        return self._sorted


PAGE = 1 << 12
_V, _R, _W, _X = 1, 2, 4, 8
_PPN_SHIFT = 10
_NAPOT = 1 << 63
_LEVELS = {8: 3, 9: 4, 10: 5}
"""The levels of page tables, by satp.MODE on RV64."""

ReadEntry = Callable[[int, int], int | None]
"""Returns the content at a physical address, with a number of bytes; None: not known."""


def physical_address(read: ReadEntry, satp: int, address: int, xlen: int) -> int | None:
    """Return the physical address of a virtual one; None: not known, or not mapped."""
    if xlen == 32:
        levels, index_bits, entry_size, ppn_bits = 2, 10, 4, 22
    else:
        levels, index_bits, entry_size, ppn_bits = _LEVELS.get(satp >> 60, 0), 9, 8, 44
        if not levels or not _is_canonical(address, 12 + index_bits * levels):
            return None
    ppn_mask, index_mask = (1 << ppn_bits) - 1, (1 << index_bits) - 1
    table = satp & ppn_mask
    for level in reversed(range(levels)):
        shift = 12 + index_bits * level
        entry = read(table * PAGE + (address >> shift & index_mask) * entry_size, entry_size)
        if entry is None or not entry & _V or entry & (_R | _W) == _W:
            return None
        ppn = entry >> _PPN_SHIFT & ppn_mask
        if entry & (_R | _X):
            if entry & _NAPOT and not level:
                ppn = ppn & ~0xF | address >> 12 & 0xF  # 16 pages together
            offset = (1 << shift) - 1
            return None if ppn * PAGE & offset & -PAGE else ppn * PAGE | address & offset
        table = ppn
    return None


def _is_canonical(address: int, bits: int) -> bool:
    """Return whether all bits of a virtual address above so many equal the highest of those."""
    return address >> bits - 1 in (0, (1 << 65 - bits) - 1)


_WORD = 8  # bytes kept together


class PhysicalMemory:
    """All stores to physical memory, in order.

    writes    those whose physical address is known
    unplaced  groups that stored to an unknown physical address
    """

    def __init__(self, spaces: dict[int, MemoryWrites], forgotten: Sequence[int], xlen: int) -> None:
        others = [space for space, writes in spaces.items() if space != PHYSICAL and len(writes)]
        self.unplaced = array("I")
        self.writes = spaces.get(PHYSICAL, MemoryWrites())
        if others:
            self.writes = MemoryWrites()
            _Merger(self, spaces, forgotten, xlen).run()


class _Merger:
    """Processes all stores in order, tracks what memory holds meanwhile, and reads its page tables."""

    def __init__(
        self, result: PhysicalMemory, spaces: dict[int, MemoryWrites], forgotten: Sequence[int], xlen: int
    ) -> None:
        self._result, self._spaces, self._xlen = result, spaces, xlen
        self._forgotten = [*forgotten, 1 << 62]
        self._next = 0
        self._words: dict[int, tuple[int, int]] = {}  # by word address: value, mask of the bits that are known
        self._pages: dict[tuple[int, int], int | None] = {}  # by satp and virtual page
        self._entries: set[int] = set()  # words with page table entries that were looked at

    def run(self) -> None:
        """Process all stores."""
        for group, space, number in merge(*(self._located_stores(space) for space in self._spaces)):
            if group >= self._forgotten[self._next]:
                self._forget(group)
            self._add_store(space, self._spaces[space].store(number))

    def _located_stores(self, space: int) -> Iterator[tuple[int, int, int]]:
        writes = self._spaces[space]
        return ((group, space, number) for number, group in enumerate(writes.groups) if number not in writes.placed)

    def _forget(self, group: int) -> None:
        while group >= self._forgotten[self._next]:
            self._next += 1
        self._forget_all()

    def _add_store(self, space: int, store: Store) -> None:
        """Process one store: one piece, or two if it crosses the end of a page."""
        if space == PHYSICAL:
            self._put(store, store.address)
            return
        here = min(store.size, PAGE - store.address % PAGE)
        for at, size in ((0, here), (here, store.size - here)):
            if size:
                value = None if store.value is None else store.value >> 8 * at & (1 << 8 * size) - 1
                place = self._physical_address(space, store.address + at)
                if place is None:
                    self._result.unplaced.append(store.group)
                    self._forget_all()
                else:
                    self._put(Store(store.group, store.address + at, size, value), place)

    def _forget_all(self) -> None:
        self._words.clear()
        self._pages.clear()

    def _physical_address(self, space: int, address: int) -> int | None:
        if space == UNKNOWN:
            return None
        page = space, address // PAGE
        if page not in self._pages:
            self._pages[page] = physical_address(self._known_value, space, address & -PAGE, self._xlen)
        found = self._pages[page]
        return None if found is None else found + address % PAGE

    def _known_value(self, address: int, size: int) -> int | None:
        word, shift = address // _WORD, address % _WORD * 8
        self._entries.add(word)
        value, known = self._words.get(word, (0, 0))
        mask = (1 << 8 * size) - 1
        return value >> shift & mask if known >> shift & mask == mask else None

    def _put(self, store: Store, address: int) -> None:
        self._result.writes.add(store.group, address, store.size, store.value)
        end = address + store.size
        for word in range(address // _WORD, (end - 1) // _WORD + 1):
            shift = 8 * (address - word * _WORD)
            mask = (((1 << 8 * store.size) - 1) << shift if shift >= 0 else (1 << 8 * store.size) - 1 >> -shift) & _ALL
            value, known = self._words.get(word, (0, 0))
            if store.value is None:
                self._words[word] = value, known & ~mask
            else:
                bits = store.value << shift if shift >= 0 else store.value >> -shift
                self._words[word] = value & ~mask | bits & mask, known | mask
            if word in self._entries:
                self._pages.clear()
                self._entries.clear()


_ALL = (1 << 8 * _WORD) - 1
