"""A trace that is decoded while its bytes arrive, in bounded memory: its history, without registers and memory.

The groups of each piece are looked at as those of a trace by itself, which begins with what is known: the pc, and the
last write to each register. These stand in empty groups before the piece's own, in the order they were made.
"""

from rvtrace_gdb.decode.history import HistoryBuilder
from rvtrace_gdb.decode.streams import Program
from rvtrace_gdb.decode.tandem.flow import Flow
from rvtrace_gdb.decode.tandem.index import Index
from rvtrace_gdb.decode.tandem.indexing import Indexer
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.decode.tandem.registers import Registers
from rvtrace_gdb.decode.tandem.steps import NOWHERE
from rvtrace_gdb.decode.tandem.trace import Trace

_WAITING = 1 << 16  # bytes without a group


class ArrivingDecoder:
    """Decodes a trace fed in pieces of any size; *builder* collects the history, and may be emptied between pieces.

    *stop_at_error*: up to the first loss.
    """

    def __init__(
        self,
        program: Program,
        parameters: Parameters,
        builder: HistoryBuilder,
        *,
        wrapped: bool = False,
        stop_at_error: bool = False,
    ) -> None:
        self._trace = Trace(parameters, wrapped=wrapped)
        self._index = Index(self._trace)
        self._indexer = Indexer(self._index)
        self._flow = Flow(self._index, program, builder=builder, stop_at_error=stop_at_error)
        self._base = self._first = self._before = 0
        self._state = self._indexer.state

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        self._trace.feed(data)
        if len(self._trace) > self._first or len(self._trace.data) > _WAITING:
            self._forget(self._follow(more=True))

    def finish(self) -> None:
        """The end of the trace."""
        self._trace.finish()
        self._follow(more=False)
        self._flow.finish()

    def _follow(self, *, more: bool) -> int:
        """Before which group it ended: those behind it wait for more."""
        self._indexer.renew(self._index, self._state)
        self._indexer.run(self._first, len(self._trace))
        if not more:
            self._indexer.finish()
        pcs = self._index.pcs[:]  # as the groups tell them, believed or not
        waits = more and len(self._trace.data) <= _WAITING
        stop = self._flow.follow(self._first, more=more, waits=waits)
        self._state = self._indexer.state if stop == len(pcs) else (pcs[stop - 1], self._indexer.state[1])
        return stop

    def _forget(self, stop: int) -> None:
        """What the next pieces do not need: they begin with group *stop*, which is looked at again with them."""
        old, self._index = self._index, Index(self._trace)
        keep = max(_carry(old.registers, self._index.registers, stop), 1)
        self._base += self._trace.forget(stop, keep)
        self._index.pcs.extend([NOWHERE] * keep)
        self._index.retired.extend(bytes(keep))
        self._first, self._before = keep, self._before + stop - keep
        self._flow.renew(self._index, self._base, self._before)


def _carry(old: Registers, new: Registers, stop: int) -> int:
    """Tells *new* the last writes before group *stop* to each register in *old*; in how many groups they are now."""
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
