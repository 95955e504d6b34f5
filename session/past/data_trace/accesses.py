"""The loads and stores of a data trace by position and address, and the instructions whose access it does not give.

The code says which instructions load and store. Those for which the trace has no access at a known address access
unknown bytes: data packets were lost, or the encoder does not report addresses, or accesses of this kind.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.accesses import image_pieces, reaches_at
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import ATOMIC, CAS_FAILURE, CSR, LOAD, STORE, STORE_FAILURE, MemoryAccess
from rvtrace_gdb.decode.tandem.memory import MemoryWrites, Store
from rvtrace_gdb.session.past.past import AccessedBytes
from rvtrace_gdb.session.past.program_memory import ProgramMemory
from rvtrace_gdb.support.errors import Progress, silent

_LOADING, _STORING = frozenset((LOAD, ATOMIC)), frozenset((STORE, ATOMIC))
_POSITIONS = 1 << 24, 256  # of a history that are examined, and how many more for each access
_ANY_NUMBER = 1 << 30
_LARGEST = 8  # bytes of an access whose value is kept


def is_store(access: MemoryAccess) -> bool:
    """Return whether an access has changed memory."""
    return access.kind in _STORING and access.operation not in (CAS_FAILURE, STORE_FAILURE)


def is_load(access: MemoryAccess) -> bool:
    """Return whether an access has read memory."""
    return access.kind in _LOADING and access.operation != STORE_FAILURE


class UnknownAddresses(NamedTuple):
    """Positions of instructions that store, or load, and for which the trace has no address, in order."""

    stores: "array[int]"
    loads: "array[int]"


class LocatedAccesses:
    """The accesses of *history* whose instruction and address are known: as groups of `MemoryWrites`, by position."""

    def __init__(self, history: History, program: ContextImages) -> None:
        self._history, self._program = history, program
        self.stores, self.loads = MemoryWrites(), MemoryWrites()
        known = [it for it in history.accesses if it.position is not None and it.address is not None and it.kind != CSR]
        known.sort(key=_position)
        for access in known:
            if is_store(access):
                _add_writes(self.stores, access, access.value if access.kind == STORE else None)
            if is_load(access):
                _add_writes(self.loads, access, access.value if access.kind == LOAD and not access.failed else None)
        self._storing = Counter(_position(access) for access in known if access.kind in _STORING)
        self._loading = Counter(_position(access) for access in known if is_load(access))
        self._unknown = UnknownAddresses(array("Q"), array("Q"))
        self.examined = 0
        """The position up to which `unknown` says all: a short trace may stand for any number of instructions."""
        self._most = _POSITIONS[0] + _POSITIONS[1] * len(history.accesses)

    def nearest(
        self, position: int, address: int, size: int, *, forward: bool, stores: bool, loads: bool
    ) -> AccessedBytes | None:
        """Return the first access to any of some bytes at or after a position, or the last one before it."""
        kinds = [self.stores] * stores + [self.loads] * loads
        each = (it.nearest(position, address, size, forward=forward) for it in kinds)
        found = [AccessedBytes(it.group, max(it.address, address)) for it in each if it is not None]
        if forward:
            return min(found, default=None)
        return max(found, key=lambda access: (access.position, -access.address), default=None)

    def put_into(self, content: list[int | None], position: int, address: int, memory: ProgramMemory) -> None:
        """Put what the instruction before a position stored or loaded, and the one there loads, into the bytes at an
        address, as far as these are in *memory*.
        """
        before, size = max(position - 1, 0), len(content)
        for access in (*self._known_loads(before), *self.stores.stores_of(before), *self._known_loads(position)):
            for at in range(max(access.address, address), min(access.address + access.size, address + size)):
                if at in memory:
                    content[at - address] = byte_of(access, at)

    def _known_loads(self, position: int) -> Iterator[Store]:
        return (load for load in self.loads.stores_of(position) if load.value is not None)

    def lacks(self, position: int, *, loads: bool) -> bool:
        """Return whether the trace lacks an address of what the instruction at a position stores, or loads, too."""
        unknown = self.unknown()
        if position >= self.examined or not (self._storing[position] or self._loading[position]):
            return True
        return any(within(it, position, position + 1) for it in (unknown.stores, *([unknown.loads] * loads)))

    def unknown(self, progress: Progress = silent) -> UnknownAddresses:
        """Return where unknown bytes are accessed. What *progress* ends continues at the next call."""
        end = min(len(self._history), self._most)
        known: dict[Image, Mapping[int, tuple[int, int] | None]] = {}
        for begin, stop, image in image_pieces(self._history, self._program, self.examined, end):
            progress("examining loads and stores (instructions)", begin, end)
            if image not in known:
                known[image] = Computed(partial(_counts, image=image), 0)
            self._examine(begin, stop, known[image])
        return self._unknown

    def _examine(self, begin: int, stop: int, counts: Mapping[int, tuple[int, int] | None]) -> None:
        for position, pc in enumerate(self._history.pcs(begin, stop), begin):
            if made := counts[pc]:
                stores, loads = made
                if self._storing[position] < stores:
                    self._unknown.stores.append(position)
                if self._loading[position] < loads:
                    self._unknown.loads.append(position)
        self.examined = stop


def byte_of(store: Store, address: int) -> int | None:
    """Return a byte of an access, None if its value is not known."""
    return None if store.value is None else store.value >> 8 * (address - store.address) & 0xFF


def within(positions: Sequence[int], first: int, last: int) -> Sequence[int]:
    """Return those positions, of some in order, that are from *first* to *last* - 1."""
    return positions[bisect_left(positions, first) : bisect_left(positions, last)]


def _position(access: MemoryAccess) -> int:
    assert access.position is not None
    return access.position


def _add_writes(writes: MemoryWrites, access: MemoryAccess, value: int | None) -> None:
    assert access.address is not None
    for begin in range(0, max(access.size, 1), _LARGEST):
        size = min(access.size - begin, _LARGEST)
        part = None if value is None else value >> 8 * begin & (1 << 8 * size) - 1
        writes.add(_position(access), access.address + begin, size, part)


def _counts(pc: int, image: Image) -> tuple[int, int] | None:
    """Return how many stores and loads the instruction at an address makes, None for none; `_ANY_NUMBER`: any."""
    found = reaches_at(pc, image, _STORING | _LOADING)
    if not found:
        return None
    times = len(found) if found[0].times else _ANY_NUMBER
    return times * (found[0].kind in _STORING), times * (found[0].kind in _LOADING)
