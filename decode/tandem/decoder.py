"""Bytes of a tandem trace to what they tell: the history, and everything the hart's state was at any moment of it."""

from bisect import bisect_left, bisect_right

from rvtrace_gdb.decode.events import EventKind, Loss
from rvtrace_gdb.decode.history import History
from rvtrace_gdb.decode.streams import Program
from rvtrace_gdb.decode.tandem.accesses import TandemAccesses
from rvtrace_gdb.decode.tandem.csrs import PRIVILEGE
from rvtrace_gdb.decode.tandem.flow import Flow
from rvtrace_gdb.decode.tandem.group import (
    AdditionalState,
    Element,
    FullRegister,
    IncrementalRegister,
    IncrementalRegisterOr,
)
from rvtrace_gdb.decode.tandem.index import Index
from rvtrace_gdb.decode.tandem.indexing import index_of
from rvtrace_gdb.decode.tandem.layout import State as StateId
from rvtrace_gdb.decode.tandem.memory import Store
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.decode.tandem.spaces import PHYSICAL
from rvtrace_gdb.decode.tandem.state import Place, State
from rvtrace_gdb.decode.tandem.trace import PIECE, Trace
from rvtrace_gdb.support.progress import Progress, silent

__all__ = ["Decoder", "Parameters", "Tandem", "decode"]


class Tandem:
    """A decoded trace.

    trace    its groups
    index    what they did
    history  the instructions that retired; the state belongs to its positions
    """

    def __init__(
        self,
        trace: Trace,
        program: Program,
        progress: Progress = silent,
        *,
        stop_at_error: bool = False,
        index: Index | None = None,
    ) -> None:
        """*index*: of the trace, if it is there already."""
        self.trace = trace
        self.index = index_of(trace, progress) if index is None else index
        flow = Flow(self.index, program, progress, stop_at_error=stop_at_error)
        self.history: History = flow.build()
        self._groups = flow.groups
        self.history.accesses = TandemAccesses(self.index, flow.groups, self.history.gap_positions)
        self.history.shadow = self

    def group_of(self, position: int) -> int:
        """The group of the instruction at a position of the history; of a gap the one behind it. The end has one."""
        if position < len(self._groups):
            return self._groups[position]
        return len(self.trace)

    def position_of(self, group: int) -> int:
        """The position of the first instruction that is not before a group."""
        return bisect_left(self._groups, group)

    def before(self, position: int) -> State:
        """The state before the instruction at a position: what a debugger shows that stopped there."""
        group = self.group_of(position)
        behind_gap = position > 0 and self.group_of(position - 1) == group
        return State(self.index, group - 1, lost=behind_gap)

    def after(self, group: int) -> State:
        """The state after a group; -1: before the first one."""
        return State(self.index, min(group, len(self.trace) - 1))

    def changed(self, group: int) -> dict[int, int | None]:
        """The registers a group tells, and the privilege mode, by number: what they are after it."""
        told = (_number(element) for element in self.trace.elements(group))
        after = self.after(group)
        return {regno: after.register(regno) for regno in told if regno is not None}

    def stored(self, group: int) -> list[tuple[int, Store]]:
        """What a group stored, and in which address space: see `spaces`."""
        return [(space, store) for space, writes in self.index.memory.items() for store in writes.of(group)]

    def stores(self, address: int, size: int, *, position: int | None = None) -> list[Store]:
        """All stores to one of some bytes, in order; of the result, the addresses may be physical ones.

        *position*: the address is as loads and stores have it there; None: it is a physical one.
        """
        place = self._place(address, position)
        return place.writes.all_to(place.address, size)

    def next_store(self, position: int, address: int, size: int, *, forward: bool = True) -> Store | None:
        """The nearest store to one of some bytes, made at or behind a position, or before it.

        The address is as at that position. Bytes that go over the end of a page are taken to be in a row.
        """
        place = self._place(address, position)
        return place.writes.nearest(self.group_of(position), place.address, size, forward=forward)

    def _place(self, address: int, position: int | None) -> Place:
        if position is None:
            return State(self.index, len(self.trace) - 1).place(address, space=PHYSICAL)
        return self.before(position).place(address)

    def next_register_write(self, position: int, regno: int, *, forward: bool = True) -> int | None:
        """The nearest group that writes a register, at or behind a position, or before it."""
        column = self.index.registers.columns.get(regno)
        groups = column.groups if column is not None else []
        group = self.group_of(position)
        at = bisect_left(groups, group) if forward else bisect_right(groups, group - 1) - 1
        return groups[at] if 0 <= at < len(groups) else None


def _number(element: Element) -> int | None:
    """The register an element is about."""
    if isinstance(element, FullRegister | IncrementalRegister | IncrementalRegisterOr):
        return element.regno
    is_mode = isinstance(element, AdditionalState) and element.identifier == StateId.PRIVILEGE_MODE
    return PRIVILEGE if is_mode else None


def decode(
    data: bytes,
    program: Program,
    parameters: Parameters,
    *,
    wrapped: bool = False,
    stop_at_error: bool = False,
    progress: Progress = silent,
) -> Tandem:
    """A whole trace. *wrapped*: it comes from a ring buffer that wrapped, oldest byte first.

    No bytes make it fail: what cannot be read is in the history. *stop_at_error*: all that is behind the first loss is
    part of it. Raises only what *progress* raises.
    """
    return Decoding(data, program, parameters, wrapped=wrapped, stop_at_error=stop_at_error).result(progress)


class Decoding:
    """The same when it may be interrupted: what was read and indexed until then is kept."""

    def __init__(
        self, data: bytes, program: Program, parameters: Parameters, *, wrapped: bool, stop_at_error: bool
    ) -> None:
        self._data, self._program, self._parameters, self._wrapped = data, program, parameters, wrapped
        self._stop_at_error = stop_at_error
        self._trace = Trace(parameters, wrapped=wrapped)
        self._read = 0
        self._index: Index | None = None
        self._whole: Tandem | None = None

    def result(self, progress: Progress) -> Tandem:
        """The trace. Raises only what *progress* raises, and goes on there when it is asked for again."""
        if self._whole is None:
            self._whole = self._of_all(progress)
        loss = next((event for event in self._whole.history.events if event.kind is EventKind.LOSS), None)
        if not self._stop_at_error or loss is None:
            return self._whole
        trace = Trace.of(self._data[: loss.offset], self._parameters, progress, wrapped=self._wrapped)
        assert isinstance(loss.fact, Loss)
        trace.give_up(self._data[loss.offset :], loss.fact)
        return Tandem(trace, self._program, progress, stop_at_error=True)

    def _of_all(self, progress: Progress) -> Tandem:
        total = len(self._data)
        while self._read < total:
            progress("reading", self._read, total)
            piece = self._data[self._read : self._read + PIECE]
            self._trace.feed(piece)
            self._read += len(piece)
        if self._index is None:
            self._trace.finish()
            self._index = index_of(self._trace, progress)
        return Tandem(self._trace, self._program, progress, index=self._index)


class Decoder:
    """Decodes a trace fed in pieces of any size."""

    def __init__(
        self, program: Program, parameters: Parameters, progress: Progress = silent, *, wrapped: bool = False
    ) -> None:
        self._program, self._progress = program, progress
        self._trace = Trace(parameters, wrapped=wrapped)

    def feed(self, data: bytes) -> None:
        """The next bytes of the trace."""
        self._trace.feed(data)

    def finish(self) -> Tandem:
        """The end of the trace. Raises only what *progress* raises."""
        self._trace.finish()
        return Tandem(self._trace, self._program, self._progress)
