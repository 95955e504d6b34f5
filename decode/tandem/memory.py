"""What was stored to memory, and when. A byte's last writer before any group is found by bisections.

Stores are kept in the order of the trace, in arrays; for looking up they are sorted by size and address, once, when
first asked for. An address space is a `MemoryWrites` of its own.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple


class Store(NamedTuple):
    """A store. *value*: None where the trace does not say what it was."""

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
        """For each place in *address* to *stop* - 1 that was stored to before store *number*: the last such store."""
        for index in self._places(address, stop):
            begin = self.begins[index]
            found = bisect_left(self.numbers, number, begin, self.begins[index + 1]) - 1
            if found >= begin:
                yield self.numbers[found]

    def from_(self, number: int, address: int, stop: int) -> Iterator[int]:
        """For each place in *address* to *stop* - 1: the first store to it that is number *number* or a later one."""
        for index in self._places(address, stop):
            end = self.begins[index + 1]
            found = bisect_left(self.numbers, number, self.begins[index], end)
            if found < end:
                yield self.numbers[found]

    def all_in(self, address: int, stop: int) -> Iterator[int]:
        """All stores to *address* to *stop* - 1."""
        for index in self._places(address, stop):
            yield from self.numbers[self.begins[index] : self.begins[index + 1]]

    def _places(self, address: int, stop: int) -> range:
        """Of the addresses those whose stores reach into *address* to *stop* - 1."""
        first = bisect_left(self.addresses, max(address - self.size + 1, 0))
        return range(first, bisect_left(self.addresses, stop, first) if stop >> 64 == 0 else len(self.addresses))


class MemoryWrites:
    """Stores in one address space, in order."""

    def __init__(self) -> None:
        self.groups = array("I")
        self.addresses = array("Q")
        self.values = array("Q")
        self.sizes = array("B")
        self.unknown: set[int] = set()
        """Those whose value is not told."""
        self.placed: set[int] = set()
        """Those whose physical address is told, too: they are among the stores to physical memory."""
        self._sorted: list[_OfSize] = []
        self._of = 0  # as many are sorted

    def __len__(self) -> int:
        return len(self.groups)

    def add(self, group: int, address: int, size: int, value: int | None) -> None:
        """*size* bytes stored by *group*, not before the last one."""
        if value is None:
            self.unknown.add(len(self.groups))
        self.groups.append(group)
        self.addresses.append(address)
        self.values.append(value or 0)
        self.sizes.append(size)

    def store(self, number: int) -> Store:
        """Store *number*, counted from 0."""
        value = None if number in self.unknown else self.values[number]
        return Store(self.groups[number], self.addresses[number], self.sizes[number], value)

    def last(self, group: int, address: int, size: int) -> list[Store | None]:
        """Of each byte the last store to it up to and with *group*; None: there is none."""
        found: list[Store | None] = [None] * size
        for number in self._before(bisect_left(self.groups, group + 1), address, address + size):
            store = self.store(number)
            for at in range(max(store.address - address, 0), min(store.address + store.size - address, size)):
                found[at] = store
        return found

    def of(self, group: int) -> list[Store]:
        """What a group stored, in order."""
        return [
            self.store(number) for number in range(bisect_left(self.groups, group), bisect_left(self.groups, group + 1))
        ]

    def nearest(self, group: int, address: int, size: int, *, forward: bool) -> Store | None:
        """The first store to one of some bytes by *group* or a later one; else the last one by an earlier group."""
        number, stop = bisect_left(self.groups, group), address + size
        if forward:
            found = min((n for sizes in self._sort() for n in sizes.from_(number, address, stop)), default=None)
        else:
            found = max((n for sizes in self._sort() for n in sizes.before(number, address, stop)), default=None)
        return None if found is None else self.store(found)

    def all_to(self, address: int, size: int) -> list[Store]:
        """Every store to one of some bytes, in order."""
        numbers = (number for sizes in self._sort() for number in sizes.all_in(address, address + size))
        return [self.store(number) for number in sorted(numbers)]

    def _before(self, number: int, address: int, stop: int) -> list[int]:
        """The last stores to each place that has some of the bytes, in order."""
        return sorted(found for sizes in self._sort() for found in sizes.before(number, address, stop))

    def _sort(self) -> list[_OfSize]:
        if self._of != len(self.groups):
            by_size: dict[int, list[int]] = {}
            for number, size in enumerate(self.sizes):
                by_size.setdefault(size, []).append(number)
            self._sorted = [_OfSize(size, self.addresses, numbers) for size, numbers in sorted(by_size.items())]
            self._of = len(self.groups)
        return self._sorted
