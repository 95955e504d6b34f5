"""Physical memory: what was stored to it at physical addresses, and at virtual ones that the page tables tell.

A store whose physical address is not known may have changed any byte: what physical memory held before it is not known
either. Page tables are known as far as the trace has the stores that made them.
"""

from array import array
from collections.abc import Iterator, Sequence
from heapq import merge

from rvtrace_gdb.decode.tandem.memory import MemoryWrites, Store
from rvtrace_gdb.decode.tandem.spaces import PHYSICAL, UNKNOWN
from rvtrace_gdb.decode.tandem.translation import PAGE, physical_address

_WORD = 8  # bytes kept together


class PhysicalMemory:
    """All stores to physical memory, in order.

    writes  those whose place is known
    doubts  groups that stored nobody knows where
    """

    def __init__(self, spaces: dict[int, MemoryWrites], forgotten: Sequence[int], xlen: int) -> None:
        others = [space for space, writes in spaces.items() if space != PHYSICAL and len(writes)]
        self.doubts = array("I")
        self.writes = spaces.get(PHYSICAL, MemoryWrites())
        if others:
            self.writes = MemoryWrites()
            _Merger(self, spaces, forgotten, xlen).run()


class _Merger:
    """Takes all stores in order, keeps what memory holds meanwhile, and looks into its page tables."""

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
        """All stores."""
        for group, space, number in merge(*(self._of(space) for space in self._spaces)):
            if group >= self._forgotten[self._next]:
                self._forget(group)
            self._take(space, self._spaces[space].store(number))

    def _of(self, space: int) -> Iterator[tuple[int, int, int]]:
        writes = self._spaces[space]
        return ((group, space, number) for number, group in enumerate(writes.groups) if number not in writes.placed)

    def _forget(self, group: int) -> None:
        while group >= self._forgotten[self._next]:
            self._next += 1
        self._forget_all()

    def _take(self, space: int, store: Store) -> None:
        """One store: one piece, or two where it goes over the end of a page."""
        if space == PHYSICAL:
            self._put(store, store.address)
            return
        here = min(store.size, PAGE - store.address % PAGE)
        for at, size in ((0, here), (here, store.size - here)):
            if size:
                value = None if store.value is None else store.value >> 8 * at & (1 << 8 * size) - 1
                place = self._place(space, store.address + at)
                if place is None:
                    self._result.doubts.append(store.group)
                    self._forget_all()
                else:
                    self._put(Store(store.group, store.address + at, size, value), place)

    def _forget_all(self) -> None:
        self._words.clear()
        self._pages.clear()

    def _place(self, space: int, address: int) -> int | None:
        if space == UNKNOWN:
            return None
        page = space, address // PAGE
        if page not in self._pages:
            self._pages[page] = physical_address(self._read, space, address & -PAGE, self._xlen)
        found = self._pages[page]
        return None if found is None else found + address % PAGE

    def _read(self, address: int, size: int) -> int | None:
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
