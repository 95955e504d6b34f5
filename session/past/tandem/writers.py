"""The last writer of a register or some memory in a tandem trace.

Groups are counted from 0 here; they are shown counted from 1, as in `trace dump`.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.effects import NOWHERE
from rvtrace_gdb.decode.tandem.memory import PAGE, Store
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, UNKNOWN
from rvtrace_gdb.decode.tandem.state import TandemState
from rvtrace_gdb.session.past.past import (
    INSTRUCTION,
    OUTSIDE,
    PC,
    RESET,
    TRAP,
    PastWrite,
    StoredBytes,
    StoreWindow,
)

_ELSEWHERE = ("The address spaces of this store and of the accesses here are not known: it may be other memory.",)
_WINDOW = 32  # bytes around a store whose values are returned, to show the object that they are part of


class LastWriters:
    """The writers before position *position* of a history; its length: the end.

    *below*: only writers of groups below this one are searched.
    """

    def __init__(self, tandem: DecodedTandem, position: int, below: int | None = None) -> None:
        self._tandem, self._index = tandem, tandem.index
        self._now = tandem.before(position)
        self._last = self._now.group if below is None else min(below - 1, self._now.group)

    def register(self, number: int) -> PastWrite | None:
        """Return the last writer of a register, by its Debug Specification number, or `PC`. None: there is none in the
        trace.
        """
        if number == PC:
            return self._pc()
        then = TandemState(self._index, self._last)
        writer = then.register_writer(number)
        if writer is None:
            return None
        old, new = (TandemState(self._index, group).register(number) for group in (writer.group - 1, writer.group))
        told = self._reported_value(number, writer.group)
        doubts = tuple(self._register_doubts(number, writer.group, new, then))
        return self._past_write(writer.group)._replace(register=number, reported=told, old=old, new=new, doubts=doubts)

    def memory(self, address: int, size: int) -> PastWrite | None:
        """Return the last store to one of some bytes. Loads and stores of this moment use the address."""
        found = [it for piece in _pages(address, size) if (it := self._in_page(*piece)) is not None]
        return max(found, key=lambda it: it.below, default=None)

    def loaded(self, address: int, size: int) -> bytes | None:
        """Return what loads have read there, if no store to any of these bytes is in the trace."""
        found = self._now.memory(address, size, loads=True)
        return None if None in found else bytes(byte or 0 for byte in found)

    def _past_write(self, group: int) -> PastWrite:
        """Return the writer of a group."""
        tandem, history = self._tandem, self._tandem.history
        position = _behind_gap(history, tandem.position_of(group))
        return PastWrite(self._kind(group), position, group, group, tandem.trace.offsets[group])

    def _kind(self, group: int) -> str:
        index = self._index
        if index.retired[group]:
            return INSTRUCTION
        at = bisect_right(index.traps, group, key=lambda trap: trap.group)
        if at and index.traps[at - 1].group == group:
            return TRAP
        return RESET if group in index.resets else OUTSIDE

    def _pc(self) -> PastWrite | None:
        """Return the last instruction or trap: all of them write the pc."""
        for group in range(self._last, -1, -1):
            made = self._past_write(group)
            if made.kind != OUTSIDE:
                origin, following = self._index.origin(group), self._index.pcs[group]
                old, new = (None if pc == NOWHERE else pc for pc in (origin, following))
                return made._replace(register=PC, old=old, new=new, doubts=tuple(self._missing_between(group)))
        return None

    def _reported_value(self, number: int, group: int) -> int | None:
        """Return the register that a group wrote, if it is another one with the same bits."""
        changed = self._tandem.changed(group)
        if number in changed:
            return None
        parts = csrs.parts(self._tandem.trace.parameters.xlen)
        own = parts.get(number)
        others = (it for it in changed if it in parts and own is not None and parts[it].register == own.register)
        return next(others, None)

    def _register_doubts(self, number: int, group: int, new: int | None, then: TandemState) -> Iterator[str]:
        resets = [it for it in self._index.resets if group < it <= self._last]
        if resets:
            yield f"The hart was reset since, by group {resets[-1] + 1}: its value from then on is not known."
        yield from self._missing_between(group)
        if new is None:
            yield "The trace does not give the value that it wrote."
        elif not resets and not self._breaks(group) and then.register(number) is None:
            counts = csrs.is_counter(number)
            yield "It counts by itself." if counts else "It has changed since; the trace does not give the new value."

    def _breaks(self, group: int) -> list[str]:
        return [it.why for it in self._index.breaks if group < it.group <= self._last + 1]

    def _missing_between(self, group: int) -> Iterator[str]:
        """Yield what is missing between a group and this moment."""
        lost = self._breaks(group)
        if lost:
            more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
            yield f"Part of the trace is missing since ({lost[0]}{more}): it may have been written there."

    def _in_page(self, address: int, size: int) -> PastWrite | None:
        """Return the last store, as `memory`, to bytes of one page."""
        physical = self._now.physical_address(address)
        own, there = (self._now.space, address) if physical is None else (PHYSICAL, physical)
        other = PHYSICAL if own == UNKNOWN else UNKNOWN
        found = [
            self._in_space(own, there, address, size, ()),
            self._in_space(other, address, address, size, _ELSEWHERE),
        ]
        return max((it for it in found if it is not None), key=lambda it: it.below, default=None)

    def _in_space(
        self, space: int, there: int, address: int, size: int, doubts: tuple[str, ...]
    ) -> PastWrite | None:
        """Return the last store, as `memory`, to bytes at *there* in an address space."""
        then = TandemState(self._index, self._last)
        stores = then.place(there, space=space).writes.last(then.group, there, size)
        known = [store for store in stores if store is not None]
        if not known:
            return None
        group = max(store.group for store in known)
        store = _together([store for store in known if store.group == group])
        writer = then.memory_writer(there, size, space=space)
        more = self._memory_doubts(store, writer is None or writer.current)
        made = self._past_write(group)._replace(doubts=(*doubts, *more))
        return self._with_values(made, address - there, store, (there, size), space)

    def _with_values(
        self, write: PastWrite, shift: int, store: Store, extent: tuple[int, int], space: int
    ) -> PastWrite:
        """Return the writer with the values before and after. *shift*: from requested addresses to memory addresses."""
        group = store.group
        begin, end = max(store.address, extent[0]), min(store.address + store.size, extent[0] + extent[1])
        first = max(extent[0], (begin & -_WINDOW))
        stop = min(extent[0] + extent[1], first + 2 * _WINDOW)
        before, after = (
            TandemState(self._index, it).memory(first, stop - first, space=space) for it in (group - 1, group)
        )
        told = end <= stop
        return write._replace(
            store=StoredBytes(store.address + shift, store.size, store.value),
            old=_content_number(before[begin - first : end - first]) if told else None,
            new=_content_number(after[begin - first : end - first]) if told else None,
            window=StoreWindow(first + shift, before, after),
        )

    def _memory_doubts(self, store: Store, holds: bool) -> Iterator[str]:
        group = store.group
        lost = list(self._missing_between(group))
        yield from lost
        if store.value is None:
            yield "The trace does not give the value that it stored."
        if not lost and not holds:
            doubts = (*self._index.memory_forgotten, *self._index.physical.unplaced)
            since = [it for it in doubts if group < it <= self._last]
            where = f" (group {min(since) + 1})" if since else ""
            yield f"A later store{where} has no address in the trace: it may have been to this memory."


def _together(stores: Sequence[Store]) -> Store:
    """Join stores of one group to the requested memory."""
    begin, end = min(store.address for store in stores), max(store.address + store.size for store in stores)
    value = None if any(store.value is None for store in stores) else stores[0].value
    return Store(stores[0].group, begin, end - begin, value)


def _behind_gap(history: History, position: int) -> int:
    """Return the position of the instruction after a gap: the history gives the gap's position for such a group."""
    if position < len(history) and history.pc(position) == GAP:
        return position + 1
    return position


def _pages(address: int, size: int) -> Iterator[tuple[int, int]]:
    end = address + size
    while address < end:
        stop = min(end, (address // PAGE + 1) * PAGE)
        yield address, stop - address
        address = stop


def _content_number(data: Sequence[int | None]) -> int | None:
    if None in data:
        return None
    return int.from_bytes(bytes(byte or 0 for byte in data), "little")
