"""The physical addresses of virtual ones, page by page: each page is looked up once while its page tables are the same.

A translation stays valid until the address space changes, a part of the trace is missing, a store goes to an unknown
place, or one goes to a page with page table entries. Groups are looked at in ascending order; a lower one forgets
everything.
"""

from bisect import bisect_left, bisect_right

from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.memory import PAGE, physical_address
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, UNKNOWN
from rvtrace_gdb.decode.tandem.state import TandemState

_MOST = 1 << 16


class TranslatedPages:
    """Translates what `TandemState.physical_address` does, in the state before a group."""

    def __init__(self, tandem: DecodedTandem) -> None:
        self._tandem, index = tandem, tandem.index
        self._writes = index.physical.writes
        self._changes = sorted(
            {*(group for group, _ in index.spaces), *index.memory_forgotten, *index.physical.unplaced}
        )
        self._pages: dict[int, int | None] = {}
        self._tables: set[int] = set()
        self._group = self._end = -1
        self._version = 0
        self._following = 0  # the first store that was not looked at

    def physical(self, group: int, address: int) -> int | None:
        """Return the physical address before *group*; None: not known, or not mapped."""
        self._advance(group)
        page = address // PAGE
        if page not in self._pages:
            if len(self._pages) == _MOST:
                self._forget()
            self._pages[page] = self._walked(self._tandem.after(group - 1), page * PAGE)
        found = self._pages[page]
        return None if found is None else found | address % PAGE

    def version(self, group: int) -> int:
        """Return a number that changes when translations from before *group* may not be valid any more."""
        self._advance(group)
        return self._version

    def _walked(self, state: TandemState, address: int) -> int | None:
        """Return the physical address of a page, and note the pages with its page table entries."""
        space = state.space
        if space in (PHYSICAL, UNKNOWN):
            return address if space == PHYSICAL else None

        def entry(place: int, size: int) -> int | None:
            self._tables.add(place // PAGE)
            found = [byte for byte in state.memory(place, size, space=PHYSICAL) if byte is not None]
            return int.from_bytes(bytes(found), "little") if len(found) == size else None

        return physical_address(entry, space, address, self._tandem.trace.parameters.xlen)

    def _advance(self, group: int) -> None:
        """Forget what may have changed before *group*."""
        if group < self._group or group > self._end:
            self._forget()
            self._following = bisect_left(self._writes.groups, group)
            later = bisect_right(self._changes, group - 1)
            self._end = self._changes[later] if later < len(self._changes) else len(self._tandem.trace)
        self._group = group
        groups, following = self._writes.groups, self._following
        while following < len(groups) and groups[following] < group:
            first = self._writes.addresses[following]
            last = first + self._writes.sizes[following] - 1
            if first // PAGE in self._tables or last // PAGE in self._tables:
                self._forget()
            following += 1
        self._following = following

    def _forget(self) -> None:
        self._version += 1
        self._pages.clear()
        self._tables.clear()
