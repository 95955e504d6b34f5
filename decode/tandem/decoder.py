"""From the bytes of a tandem trace to the history, its accesses, and the state of the hart at any moment of it.

The loads, stores, atomic operations and CSR instructions of a trace (`TandemAccesses`) are created on demand: which
groups have one is found once, the rest is in the trace.

`IncrementalDecoder` decodes a trace while its bytes arrive, in bounded memory: its history, without registers and
memory. The groups of each piece are processed like those of a trace by itself, which begins with what is known: the pc,
and the last write to each register. These are in empty groups before the piece's own, in the order in which they were
made.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import overload

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import EventKind, Loss
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import PRIVILEGE
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import (
    ATOMIC,
    CSR,
    LOAD,
    STORE_FAILURE,
    MemoryAccess,
    Reach,
    reach,
)
from rvtrace_gdb.decode.tandem.effects import NOWHERE, GroupEffects
from rvtrace_gdb.decode.tandem.group_grammar import plan_of
from rvtrace_gdb.decode.tandem.history_builder import TandemHistoryBuilder
from rvtrace_gdb.decode.tandem.index import Index
from rvtrace_gdb.decode.tandem.indexer import Indexer, index_of
from rvtrace_gdb.decode.tandem.memory import Store
from rvtrace_gdb.decode.tandem.protocol import (
    FPR_END,
    GPR,
    AdditionalState,
    AmoData,
    Element,
    FullRegister,
    IncrementalRegister,
    IncrementalRegisterOr,
    Instr,
    StateId,
    TandemParameters,
)
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, RegisterWrites
from rvtrace_gdb.decode.tandem.state import StoresAt, TandemState
from rvtrace_gdb.decode.tandem.trace import PIECE, TraceGroups
from rvtrace_gdb.support.errors import Progress, silent

_SC = 0b00011


class TandemAccesses(Sequence[MemoryAccess]):
    """The accesses, one for each instruction that retired and accesses something.

    *groups*: the history's, by position; *gaps*: those of these positions that are gaps, whose groups belong to others,
    or to none.
    """

    def __init__(self, index: Index, groups: "array[int]", gaps: Iterable[int] = ()) -> None:
        self._index, self._groups, self._gaps = index, groups, frozenset(gaps)
        self._reaches = Computed(partial(reach, xlen=index.trace.parameters.xlen))

    @cached_property
    def _positions(self) -> "array[int]":
        """The positions that have an access."""
        trace, retired, reaches, gaps = self._index.trace, self._index.retired, self._reaches, self._gaps
        plans = [plan_of(shape) for shape in trace.automaton.shapes]
        found = array("I")
        for position, group in enumerate(self._groups):
            if position in gaps or not retired[group]:
                continue
            plan = plans[trace.shapes[group]]
            if plan is None:
                word = next(element.word for element in trace.elements(group) if isinstance(element, Instr))
            else:
                word = plan.unpack(trace.data, trace.offsets[group])[plan.word]
            if reaches[word] is not None:
                found.append(position)
        return found

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, key: int) -> MemoryAccess: ...
    @overload
    def __getitem__(self, key: slice) -> list[MemoryAccess]: ...
    def __getitem__(self, key: int | slice) -> MemoryAccess | list[MemoryAccess]:
        if isinstance(key, slice):
            return [self._access(position) for position in self._positions[key]]
        return self._access(self._positions[key])

    def __iter__(self) -> Iterator[MemoryAccess]:
        return map(self._access, self._positions)

    def access_at(self, position: int) -> MemoryAccess | None:
        """Return the access of the instruction at a position, if one retired there; None: it accesses nothing."""
        if position in self._gaps:
            return None
        elements = self._index.trace.elements(self._groups[position])
        word = next((element.word for element in elements if isinstance(element, Instr)), None)
        return None if word is None or self._reaches[word] is None else self._access(position)

    def _access(self, position: int) -> MemoryAccess:
        trace, group = self._index.trace, self._groups[position]
        seen = GroupEffects(group, trace.elements(group), trace.parameters, self._index.registers, loose=False)
        assert seen.instr is not None
        found = self._reaches[seen.instr.word]
        assert found is not None
        access = MemoryAccess(
            found.kind,
            found.size,
            found.operation,
            offset=trace.offsets[group],
            after=position,
            sync=0,
            position=position,
        )
        return self._of_csr(access, found, seen) if found.kind == CSR else self._of_memory(access, seen)

    def _of_csr(self, access: MemoryAccess, reach: Reach, seen: GroupEffects) -> MemoryAccess:
        """Return the access to a CSR. Its value is the new one if the group has it, otherwise the one read."""
        written = {element.regno: element.value for element in seen.elements if isinstance(element, FullRegister)}
        return access._replace(address=reach.number, value=written.get(reach.number, seen.rd))

    def _of_memory(self, access: MemoryAccess, seen: GroupEffects) -> MemoryAccess:
        addresses = seen.states(StateId.EFFECTIVE_ADDRESS) or seen.states(StateId.PHYSICAL_ADDRESS)
        size = access.size or (seen.data[0][0] if seen.data else 0)
        stored = seen.data[0][1] if seen.data else None
        loaded = _destination(seen) if size else None
        loaded = None if loaded is None else loaded & (1 << 8 * size) - 1
        access = access._replace(address=addresses[0] if addresses else None, size=size)
        if access.kind == LOAD:
            return access._replace(value=loaded)
        if access.kind == ATOMIC:
            is_operand = self._index.trace.parameters.dialect.amo_data is AmoData.OPERAND
            return access._replace(value=loaded, operand=stored if is_operand else None)
        assert seen.instr is not None
        if seen.instr.word & 0x7F == 0x2F and seen.instr.word >> 27 == _SC and seen.rd:
            return access._replace(kind=ATOMIC, operation=STORE_FAILURE, value=stored)
        return access._replace(value=stored)


def _destination(seen: GroupEffects) -> int | None:
    """Return the new value of the register that an instruction loaded."""
    registers = (element for element in seen.elements if isinstance(element, FullRegister))
    return next((element.value for element in registers if GPR < element.regno < FPR_END), None)


class TandemHistory(History):
    """A history whose trace has registers and memory at every position: *tandem*."""

    has_code = has_all_accesses = True
    tandem: "DecodedTandem"


def tandem_of(history: History) -> "DecodedTandem | None":
    """Return the tandem trace that a history comes from, None for other formats."""
    return history.tandem if isinstance(history, TandemHistory) else None


class DecodedTandem:
    """A decoded trace.

    trace    its groups
    index    what they did
    history  the instructions that retired; the state belongs to its positions
    """

    def __init__(
        self,
        trace: TraceGroups,
        program: Program,
        progress: Progress = silent,
        *,
        stop_at_error: bool = False,
        index: Index | None = None,
    ) -> None:
        """*index* is that of the trace, if it exists already."""
        self.trace = trace
        self.index = index_of(trace, progress) if index is None else index
        flow = TandemHistoryBuilder(self.index, program, progress, stop_at_error=stop_at_error)
        self.history = flow.build(TandemHistory)
        self._groups = flow.groups
        self.history.accesses = TandemAccesses(self.index, flow.groups, self.history.gap_positions)
        self.history.tandem = self

    def group_of(self, position: int) -> int:
        """Return the group of the instruction at a position of the history; for a gap, the group after it. The end of
        the history has the number of groups.
        """
        if position < len(self._groups):
            return self._groups[position]
        return len(self.trace)

    @property
    def group_places(self) -> "array[int]":
        """The groups of the instructions by position; for a gap, the group after it."""
        return self._groups

    def position_of(self, group: int) -> int:
        """Return the position of the first instruction that is not before a group."""
        return bisect_left(self._groups, group)

    def before(self, position: int) -> TandemState:
        """Return the state before the instruction at a position: what a debugger shows that stopped there."""
        group = self.group_of(position)
        after_gap = position > 0 and self.group_of(position - 1) == group
        return TandemState(self.index, group - 1, lost=after_gap)

    def after(self, group: int) -> TandemState:
        """Return the state after a group; -1: before the first one."""
        return TandemState(self.index, min(group, len(self.trace) - 1))

    def changed(self, group: int) -> dict[int, int | None]:
        """Return the registers, and the privilege mode, that a group reports, by number, with their values after it."""
        numbers = (_register_number(element) for element in self.trace.elements(group))
        after = self.after(group)
        return {regno: after.register(regno) for regno in numbers if regno is not None}

    def stored(self, group: int) -> list[tuple[int, Store]]:
        """Return the stores of a group, each with its address space (see `decode.tandem.registers.space_of`)."""
        return [(space, store) for space, writes in self.index.memory.items() for store in writes.stores_of(group)]

    def stores(self, address: int, size: int, *, position: int | None = None) -> list[Store]:
        """Return all stores to any of some bytes, in order; the addresses in the result may be physical ones.

        *position*: the address is one that loads and stores have there; None: it is a physical one.
        """
        place = self._stores_at(address, position)
        return place.writes.all_to(place.address, size)

    def next_store(self, position: int, address: int, size: int, *, forward: bool = True) -> Store | None:
        """Return the nearest store to any of some bytes, made at or after a position, or before it.

        The address is valid at that position. Bytes that cross the end of a page are assumed to be contiguous.
        """
        place = self._stores_at(address, position)
        return place.writes.nearest(self.group_of(position), place.address, size, forward=forward)

    def _stores_at(self, address: int, position: int | None) -> StoresAt:
        if position is None:
            return TandemState(self.index, len(self.trace) - 1).place(address, space=PHYSICAL)
        return self.before(position).place(address)


def _register_number(element: Element) -> int | None:
    """Return the number of the register that an element is about, None without one."""
    if isinstance(element, FullRegister | IncrementalRegister | IncrementalRegisterOr):
        return element.regno
    is_mode = isinstance(element, AdditionalState) and element.identifier == StateId.PRIVILEGE_MODE
    return PRIVILEGE if is_mode else None


def decode(
    data: bytes,
    program: Program,
    parameters: TandemParameters,
    *,
    wrapped: bool = False,
    stop_at_error: bool = False,
    progress: Progress = silent,
) -> DecodedTandem:
    """Return a whole decoded trace. *wrapped*: it comes from a ring buffer that wrapped, oldest byte first.

    Decoding never fails, whatever the bytes: the history says what cannot be read. *stop_at_error*: everything after
    the first loss is part of that loss. Raises only what *progress* raises.
    """
    return ResumableDecoding(data, program, parameters, wrapped=wrapped, stop_at_error=stop_at_error).result(progress)


class ResumableDecoding:
    """A decoding of a whole trace that may be interrupted: what was read and indexed until then is kept."""

    def __init__(
        self, data: bytes, program: Program, parameters: TandemParameters, *, wrapped: bool, stop_at_error: bool
    ) -> None:
        self._data, self._program, self._parameters, self._wrapped = data, program, parameters, wrapped
        self._stop_at_error = stop_at_error
        self._trace = TraceGroups(parameters, wrapped=wrapped)
        self._read = 0
        self._index: Index | None = None
        self._complete: DecodedTandem | None = None

    def result(self, progress: Progress) -> DecodedTandem:
        """Return the trace. Raises only what *progress* raises, and resumes there at the next call."""
        if self._complete is None:
            self._complete = self._of_all(progress)
        loss = next((event for event in self._complete.history.events if event.kind is EventKind.LOSS), None)
        if not self._stop_at_error or loss is None:
            return self._complete
        trace = TraceGroups.from_bytes(self._data[: loss.offset], self._parameters, progress, wrapped=self._wrapped)
        assert isinstance(loss.fact, Loss)
        trace.give_up(self._data[loss.offset :], loss.fact)
        return DecodedTandem(trace, self._program, progress, stop_at_error=True)

    def _of_all(self, progress: Progress) -> DecodedTandem:
        total = len(self._data)
        while self._read < total:
            progress("reading", self._read, total)
            piece = self._data[self._read : self._read + PIECE]
            self._trace.feed(piece)
            self._read += len(piece)
        if self._index is None:
            self._trace.finish()
            self._index = index_of(self._trace, progress)
        return DecodedTandem(self._trace, self._program, progress, index=self._index)


_WAITING = 1 << 16  # bytes without a group


class IncrementalDecoder:
    """A decoder of a trace that is fed in pieces of any size; *builder* collects the history, and may be emptied
    between pieces.

    *stop_at_error*: decode up to the first loss.
    """

    def __init__(
        self,
        program: Program,
        parameters: TandemParameters,
        builder: HistoryBuilder,
        *,
        wrapped: bool = False,
        stop_at_error: bool = False,
    ) -> None:
        self._trace = TraceGroups(parameters, wrapped=wrapped)
        self._index = Index(self._trace)
        self._indexer = Indexer(self._index)
        self._flow = TandemHistoryBuilder(self._index, program, builder=builder, stop_at_error=stop_at_error)
        self._base = self._first = self._before = 0
        self._state = self._indexer.state

    def feed(self, data: bytes) -> None:
        """Decode the next bytes of the trace."""
        self._trace.feed(data)
        if len(self._trace) > self._first or len(self._trace.data) > _WAITING:
            self._drop_groups(self._decode_groups(more=True))

    def finish(self) -> None:
        """Decode the rest of the trace, which ends here."""
        self._trace.finish()
        self._decode_groups(more=False)
        self._flow.finish()

    def _decode_groups(self, *, more: bool) -> int:
        """Return the group before which it ended: later ones wait for more bytes."""
        self._indexer.renew(self._index, self._state)
        self._indexer.run(self._first, len(self._trace))
        if not more:
            self._indexer.finish()
        pcs = self._index.pcs[:]  # as the groups tell them, believed or not
        waits = more and len(self._trace.data) <= _WAITING
        stop = self._flow.follow(self._first, more=more, waits=waits)
        self._state = self._indexer.state if stop == len(pcs) else (pcs[stop - 1], self._indexer.state[1])
        return stop

    def _drop_groups(self, stop: int) -> None:
        """Drop what the next pieces do not need: they begin with group *stop*, which is processed again with them."""
        old, self._index = self._index, Index(self._trace)
        self._index.code = old.code
        keep = max(_carry(old.registers, self._index.registers, stop), 1)
        self._base += self._trace.forget(stop, keep)
        self._index.pcs.extend([NOWHERE] * keep)
        self._index.retired.extend(bytes(keep))
        self._first, self._before = keep, self._before + stop - keep
        self._flow.renew(self._index, self._base, self._before)


def _carry(old: RegisterWrites, new: RegisterWrites, stop: int) -> int:
    """Copy the last write before group *stop* to each register from *old* to *new*; return how many
    groups these take.
    """
    writes = [(regno, column.last(stop - 1)) for regno, column in old.columns.items()]
    lost, dirty = old.marks(stop)
    numbers = sorted({write.group for _, write in writes if write is not None} | {*lost, *dirty})
    places = {number: place for place, number in enumerate(numbers)}
    for regno, write in writes:
        if write is not None:
            new.add(places[write.group], regno, write.value)
    for number in lost:
        new.forget(places[number])
    new.dirty.extend(places[number] for number in dirty)
    return len(numbers)
