"""The nearest group that accesses some bytes, in both directions: for watchpoints.

Stores are in the index of the trace. What was read from memory, and when, is found on first use; values do not matter,
and loads to x0 also count as reads. The nearest access is found by bisections.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.program.instructions import ATOMIC, LOAD, reach
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.group_grammar import UnpackPlan, plan_of
from rvtrace_gdb.decode.tandem.memory import MemoryWrites
from rvtrace_gdb.decode.tandem.protocol import SIZES, AdditionalState, Instr, MemoryOp, MemoryRequest, StateId
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, UNKNOWN
from rvtrace_gdb.decode.tandem.trace import TraceGroups

_ADDRESSES = (StateId.EFFECTIVE_ADDRESS, StateId.PHYSICAL_ADDRESS)
_NO_DATA = (MemoryOp.STORE, MemoryOp.STORE_CONDITIONAL, MemoryOp.INSTRUCTION_FETCH)
"""Instructions that read no data."""
_UNKNOWN_SIZE = -1


class Reads(NamedTuple):
    """*memory*: what was read, by address space, as if it had been stored. *unknown*: groups that read unknown
    bytes.
    """

    memory: dict[int, MemoryWrites]
    unknown: "array[int]"


def reads_of(trace: TraceGroups, retired: bytearray, spaces: list[tuple[int, int]]) -> Reads:
    """Return the loads and atomic operations of a trace. *retired*, *spaces*: as in `Index`."""
    found = Reads({}, array("I"))
    sizes = Computed(partial(_read_size, xlen=trace.parameters.xlen))
    starts = [group + 1 for group, _ in spaces]
    plans = [plan_of(shape) for shape in trace.automaton.shapes]
    for group, shape in enumerate(trace.shapes):
        if not retired[group]:
            continue
        for address, size, is_physical in _reads(trace, group, plans[shape], sizes):
            if size == _UNKNOWN_SIZE:
                found.unknown.append(group)
                continue
            space = PHYSICAL if is_physical else spaces[bisect_right(starts, group) - 1][1]
            found.memory.setdefault(space, MemoryWrites()).add(group, address, size, 0)
    return found


def _reads(
    trace: TraceGroups, group: int, plan: UnpackPlan | None, sizes: Mapping[int, int]
) -> Iterator[tuple[int, int, bool]]:
    """Yield (address, size, physical) of what a group reads; a size of _UNKNOWN_SIZE: not in the trace."""
    if plan is not None:
        values = plan.unpack(trace.data, trace.offsets[group])
        size = sizes[values[plan.word]]
        if size:
            at = plan.address
            yield (values[at], size, plan.physical) if at >= 0 and size > 0 else (0, _UNKNOWN_SIZE, False)
        return
    elements = trace.elements(group)
    size = next((sizes[element.word] for element in elements if isinstance(element, Instr)), 0)
    if not size:
        return
    states = [e for e in elements if isinstance(e, AdditionalState) and e.identifier in _ADDRESSES]
    reported = [(e.value, size, e.identifier == StateId.PHYSICAL_ADDRESS) for e in states]
    on_bus = [(e.addr, SIZES[e.size], True) for e in elements if isinstance(e, MemoryRequest) and e.op not in _NO_DATA]
    yield from (reported or on_bus) if size > 0 and (reported or on_bus) else [(0, _UNKNOWN_SIZE, False)]


def _read_size(word: int, xlen: int) -> int:
    """Return how many bytes an instruction reads: 0 none, _UNKNOWN_SIZE more than one piece."""
    found = reach(word, xlen)
    if found is None or found.kind not in (LOAD, ATOMIC):
        return 0
    return found.size if found.size and found.times == 1 else _UNKNOWN_SIZE


class GroupAccess(NamedTuple):
    """*address*: the first of the bytes in question that *group* accessed, as an address of the query."""

    group: int
    address: int


class WatchpointSearch:
    """The watchpoints of a tandem trace.

    A store or load is found by its address, in whatever address space it was made, like a hart's own triggers; and, as
    far as page tables are known, by every other address of the same physical memory.
    """

    def __init__(self, tandem: DecodedTandem) -> None:
        self._tandem = tandem

    @cached_property
    def reads(self) -> Reads:
        """The loads; found on first use."""
        index = self._tandem.index
        return reads_of(index.trace, index.retired, index.spaces)

    def nearest(
        self, position: int, address: int, size: int, *, forward: bool, stores: bool, loads: bool
    ) -> GroupAccess | None:
        """Return the first access to any of some bytes at or after a position, or the last one before it.

        The address is one that a load or store would have there. Bytes that cross a page are assumed to be contiguous.
        """
        group = self._tandem.group_of(position)
        found: list[GroupAccess] = []
        for writes, place in self._searched_stores(position, address, stores=stores, loads=loads):
            store = writes.nearest(group, place, size, forward=forward)
            if store is not None:
                found.append(GroupAccess(store.group, max(store.address + address - place, address)))
        if forward:
            return min(found, default=None)
        return max(found, key=lambda access: (access.group, -access.address), default=None)

    def unknown_accesses(self, first: int, last: int, *, loads: bool) -> list[int]:
        """Return those of groups *first* to *last* - 1 that accessed unknown bytes; breaks are not among them."""
        index = self._tandem.index
        breaks = {mark.group for mark in index.breaks}
        found = [group for group in _within(index.memory_forgotten, first, last) if group not in breaks]
        return sorted({*found, *(_within(self.reads.unknown, first, last) if loads else [])})

    def misplaced(self, first: int, last: int) -> Sequence[int]:
        """Return those of groups *first* to *last* - 1 that stored to virtual memory with an
        unknown physical address.
        """
        return _within(self._misplaced, first, last)

    @cached_property
    def _translates(self) -> bool:
        """Return whether addresses of stores are translated anywhere; if not, physical memory need not be searched."""
        return any(space not in (PHYSICAL, UNKNOWN) for space in self._tandem.index.memory)

    @cached_property
    def _misplaced(self) -> Sequence[int]:
        index = self._tandem.index
        if not self._translates:
            return ()
        return [group for group in index.physical.unplaced if self._tandem.after(group - 1).space != UNKNOWN]

    def _searched_stores(
        self, position: int, address: int, *, stores: bool, loads: bool
    ) -> Iterator[tuple[MemoryWrites, int]]:
        """Yield the stores to search, and the address to search for there."""
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


def _within(groups: Sequence[int], first: int, last: int) -> Sequence[int]:
    return groups[bisect_left(groups, first) : bisect_left(groups, last)]


_NOTHING = MemoryWrites()
