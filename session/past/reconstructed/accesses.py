"""Loads and stores at known addresses: for watchpoints, and for the last store to some memory."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, KnownValue
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.decode.tandem.memory import Store
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past.data_trace.accesses import LocatedAccesses, byte_of
from rvtrace_gdb.session.past.past import (
    INSTRUCTION,
    OUTSIDE,
    AccessedBytes,
    NoWrite,
    PastWrite,
    StoredBytes,
    StoreWindow,
)
from rvtrace_gdb.session.past.reconstructed.execution import Execution
from rvtrace_gdb.session.past.reconstructed.values import ReconstructedValues
from rvtrace_gdb.session.past.reconstructed.windows import Windows
from rvtrace_gdb.support.errors import Progress, silent

_WINDOW = 32  # bytes around a store whose values are returned, to show the object that they are part of

LostDoubts = Callable[[int, int], Iterator[str]]
"""Yields what is missing from a position up to another, that included."""


class ReconstructedAccesses:
    """The loads and stores of a history. *halts*: what a debugger wrote. *traced*: those that the trace itself has."""

    def __init__(
        self,
        execution: Execution,
        values: ReconstructedValues,
        windows: Windows,
        halts: Sequence[HaltWrites],
        lost: LostDoubts,
        traced: LocatedAccesses | None = None,
    ) -> None:
        self._execution, self._values, self._windows, self._lost = execution, values, windows, lost
        self._traced = traced
        self._halts = sorted(halts, key=lambda it: it.position)

    @property
    def are_known(self) -> bool:
        """Whether any may be known."""
        return self._execution.forward is not None or self._traced is not None

    # -- the nearest one

    def nearest(
        self, position: int, address: int, size: int, *, forward: bool, stores: bool, loads: bool, progress: Progress
    ) -> AccessedBytes | None:
        """Return the first access to any of some bytes at or after a position, or the last one before it."""

        def search(executed: Forward) -> AccessedBytes | None:
            stretches = self._later(executed, position, progress) if forward else _earlier(executed, position, progress)
            for segment in stretches:
                if loads or executed.may_store(segment, address, size):
                    log = executed.accesses(segment)
                    found = log.nearest(position, address, size, forward=forward, stores=stores, loads=loads)
                    if found is not None:
                        return AccessedBytes(found.position, found.address)
            return None

        found = self._execution.ask(search)
        span = (position, self._execution.length) if forward else (0, position)
        only = {"forward": forward, "stores": stores, "loads": loads}
        near = [] if found is None else [found]
        for it in self._windows.solved(*span, progress):
            if found is None or not (found.position < it.first if forward else found.position >= it.last):
                other = it.window.accesses().nearest(position, address, size, **only)
                near += [] if other is None else [AccessedBytes(other.position, other.address)]
        if self._traced is not None:
            other_kind = self._traced.nearest(position, address, size, **only)
            near += [] if other_kind is None else [other_kind]
        return (min if forward else max)(near, default=None, key=lambda it: it.position)

    def _later(self, executed: Forward, position: int, progress: Progress) -> Iterator[int]:
        """Yield the stretches from that of a position on."""
        begin, length = max(position, self._execution.first), self._execution.length
        while begin < length:
            executed.reach(begin + 1, progress)
            segment = executed.segment_of(begin)
            progress("searching the accesses (instructions)", begin - position, length - position)
            yield segment
            begin = executed.bounds(segment)[1]

    def unknown(self, first: int, last: int, *, loads: bool) -> Sequence[int]:
        """Return those positions from *first* to *last* - 1 that store, or load, at an unknown address."""
        first = max(first, self._execution.first)
        if first >= last:
            return ()
        found = self._execution.ask(lambda it: _unknown_accesses(it, first, last, loads=loads)) or ()
        if found:
            for it in self._windows.solved(first, last):
                still = set(it.window.accesses().unknown_between(first, last, loads=loads))
                found = [at for at in found if not it.first <= at < it.last or at in still]
        traced = self._traced
        return found if traced is None else [at for at in found if traced.lacks(at, loads=loads)]

    # -- the last store

    def memory_writer(self, position: int, address: int, size: int, below: int | None) -> PastWrite | NoWrite:
        """Return the last store to any of some bytes before a position; *below*: an earlier one than that."""
        if not self.are_known:
            raise NoTrace("nothing is known of memory: what the trace says contradicts itself (`trace values`)")
        last = position if below is None else min(position, below)
        found = self.nearest(last, address, size, forward=False, stores=True, loads=False, progress=silent)
        written: PastWrite | None = None
        halted = self._halt(last if below is None else last - 1, address, size)
        if halted is not None and (found is None or found.position < halted.position):
            written = self._by_debugger(halted, address, size)
        elif found is not None:
            written = self._past_store(found.position, address, size)
        since = -1 if written is None else written.position
        unknown = len(self.unknown(since + 1, position, loads=False))
        doubts = tuple(self._lost(since, position))
        if written is None:
            return NoWrite((*doubts, *_unknown_doubts(unknown, "in the trace")))
        return written._replace(doubts=(*doubts, *_unknown_doubts(unknown, "since")))

    def _halt(self, last: int, address: int, size: int) -> HaltWrites | None:
        """Return the last halt up to a position at which a debugger wrote any of some bytes."""
        for halt in reversed(self._halts):
            pieces = [(begin, len(content)) for begin, content in halt.memory]
            if halt.position <= last and any(at < address + size and address < at + n for at, n in pieces):
                return halt
        return None

    def _store_at(self, position: int, address: int, size: int) -> tuple[int, int]:
        """Return the address and the size of a store that was found."""
        logs = [it.window.accesses() for it in self._windows.solved(position, position + 1)]
        executed = self._execution.forward
        if executed is not None:
            logs.append(executed.accesses(executed.segment_of(position)))
        found = next((it for log in logs if (it := log.store_at(position, address, size)) is not None), None)
        traced = self._traced_store(position, address, size) if found is None else None
        return found or ((address, size) if traced is None else (traced.address, traced.size))

    def _traced_store(self, position: int, address: int, size: int) -> Store | None:
        """Return the store at a position to any of some bytes that the trace itself has."""
        stores = [] if self._traced is None else self._traced.stores.stores_of(position)
        return next((it for it in stores if it.address < address + size and address < it.address + it.size), None)

    def _by_debugger(self, halt: HaltWrites, address: int, size: int) -> PastWrite:
        begin, content = next(it for it in halt.memory if it[0] < address + size and address < it[0] + len(it[1]))
        store = StoredBytes(begin, len(content), int.from_bytes(content, "little"))
        low, high = max(begin, address), min(begin + len(content), address + size)
        new = int.from_bytes(content[low - begin : high - begin], "little")
        return PastWrite(OUTSIDE, halt.position, halt.position, store=store, new=new)

    def _past_store(self, position: int, address: int, size: int) -> PastWrite:
        """Return the store at a position, with memory around it before and after."""
        begin, length = self._store_at(position, address, size)
        low, high = max(begin, address), min(begin + length, address + size)
        first = max(address, low & -_WINDOW)
        stop = min(address + size, first + 2 * _WINDOW)
        before = self._values.memory(position, first, stop - first)
        after = self._after(position, first, stop - first)
        is_shown = high <= stop
        return PastWrite(
            INSTRUCTION,
            position,
            position,
            store=StoredBytes(begin, length, _content_number(self._after(position, begin, length))),
            old=_content_number(before[low - first : high - first]) if is_shown else None,
            new=_content_number(after[low - first : high - first]) if is_shown else None,
            window=StoreWindow(first, before, after),
        )


    def _after(self, position: int, address: int, size: int) -> list[KnownValue]:
        """Return memory after a store."""
        found = self._values.stored(position, address, size)
        stored = self._traced_store(position, address, size) if None in found else None
        if stored is None:
            return found
        inside = range(stored.address, stored.address + stored.size)
        return [
            byte_of(stored, at) if byte is None and at in inside else byte for at, byte in enumerate(found, address)
        ]


def _earlier(executed: Forward, position: int, progress: Progress) -> Iterator[int]:
    """Yield the stretches with positions before one, the last first."""
    executed.reach(position, progress)
    last = executed.segment_of(position - 1) if position > executed.bounds(0)[0] else -1
    for segment in range(last, -1, -1):
        progress("searching the accesses (parts)", last - segment, last + 1)
        yield segment


def _unknown_accesses(executed: Forward, first: int, last: int, *, loads: bool) -> Sequence[int]:
    executed.reach(last)
    stores = executed.unknown_stores
    found = set(stores[bisect_left(stores, first) : bisect_left(stores, last)])
    if loads:
        for segment in range(executed.segment_of(first), executed.segment_of(last - 1) + 1):
            found.update(at for at in executed.unknown_accesses(segment) if first <= at < last)
    return sorted(found)


def _content_number(content: Sequence[KnownValue]) -> int | None:
    return None if None in content else int.from_bytes(bytes(it or 0 for it in content), "little")


def _unknown_doubts(unknown: int, when: str) -> tuple[str, ...]:
    return (f"The address of {unknown} store{'s' * (unknown != 1)} {when} is not known.",) if unknown else ()
