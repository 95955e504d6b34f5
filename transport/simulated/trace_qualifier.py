"""What a hart retired, cut into what filters let through and what they do not.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace Encoder Filter Registers". A trap is part of the
trace if the instructions before and behind it are.
"""

from collections.abc import Sequence
from typing import Protocol

from rvtrace_gdb.transport.simulated.block import Accessed, HartBlock, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.hart import Retired
from rvtrace_gdb.transport.simulated.trace_filters import Filters
from rvtrace_gdb.transport.simulated.trace_hart_view import HartView
from rvtrace_gdb.transport.simulated.trace_protocol import Begin, End

_MRET = 0x3020_0073


class Port(Protocol):
    """Where it goes."""

    def begin(self, reason: Begin) -> None:
        """What is told next is traced."""

    def tell(self, retired: Sequence[Retired]) -> None:
        """This is."""

    def end(self, reason: End, pc: int) -> None:
        """Nothing more is, from *pc* on."""

    def notify(self) -> None:
        """The address of the next instruction is to be reported."""


class Qualifier:
    """Between `open` and `close` what *filters* let through goes to *port*; they follow the hart outside, too.

    `view` is where the hart was when that happened.
    """

    def __init__(self, view: HartView, port: Port, filters: Filters) -> None:
        self._view = view
        self._port = port
        self._filters = filters
        self._opened: Begin | None = None  # tracing is on, for this reason
        self._inside = False  # and filters let through what was last
        self._piece: list[Retired] = []  # is let through
        self._between: list[TrapEntry | Situation] = []  # since the last instruction
        self._accesses: dict[int, Accessed] = {}  # of the block that is told next
        self._done = 0  # instructions of the view's that it has been told have passed
        view.listen(not filters.idle, filters.sees_accesses)

    @property
    def idle(self) -> bool:
        return self._filters.idle

    def start(self) -> None:
        """The hart is listened to from here on."""
        self._view.start()
        self._between.clear()
        self._accesses.clear()

    def reset(self) -> None:
        """The hart was reset."""
        self._filters.reset()

    def open(self, reason: Begin) -> None:
        """Tracing is on."""
        self._opened = reason

    def close(self, reason: End, pc: int) -> None:
        """Tracing is off, from *pc* on."""
        if self._inside:
            self._piece += self._told(self._between)
            self._flush()
            self._port.end(reason, pc)
        self._between.clear()
        self._opened, self._inside = None, False

    def tell(self, retired: Sequence[Retired], end: int) -> None:
        """What the hart retired; it had retired *end* instructions after that."""
        self._view.enter(retired, end)
        for item in retired:
            if isinstance(item, Accessed):
                self._accesses[item.place] = item
            elif isinstance(item, TrapEntry):
                self._filters.trap(item, self._view.latest.scontext)
                self._between.append(item)
            elif isinstance(item, Situation):
                self._flush()
                self._view.changed(item)
                self._between.append(item)
            elif isinstance(item, HartBlock):
                self._block(item, item.n)
            else:
                self._block(*item)
        self._flush()
        self._view.leave()

    def _block(self, block: HartBlock, count: int) -> None:
        """The first *count* instructions of *block*."""
        begin = 0  # of what has not been dealt with
        accesses = dict(self._accesses)
        self._accesses.clear()
        where = self._view.latest
        for k in range(count):
            verdict = self._filters.judge(where.privilege, where.scontext, block.pcs[k], accesses.get(k))
            wanted = self._opened is not None and verdict.instruction
            if wanted != self._inside or (wanted and verdict.notify):
                self._take(block, begin, k, accesses)
                begin = k
                self._turn(wanted, block.pcs[k])
                if wanted and verdict.notify:
                    self._port.notify()
            self._cross()
            if not verdict.data:
                accesses.pop(k, None)
            if block.words[k] == _MRET:
                self._filters.returned()
        self._take(block, begin, count, accesses)

    def _turn(self, wanted: bool, pc: int) -> None:
        """From here on instructions are let through, or are not. The one at *pc* is the first."""
        if wanted:
            self._cross()
        self._flush()
        if wanted and not self._inside:
            assert self._opened is not None
            self._port.begin(self._opened)
            self._opened = Begin.ENABLED
        elif not wanted:
            traps = (item.epc for item in self._between if isinstance(item, TrapEntry))
            self._port.end(End.FILTERED, next(traps, pc))
        self._inside = wanted
        self._cross()

    def _cross(self) -> None:
        """What stands before the next instruction is let through as this one is."""
        if self._inside:
            self._piece += self._told(self._between)
        self._between.clear()

    def _take(self, block: HartBlock, begin: int, end: int, accesses: dict[int, Accessed]) -> None:
        """Let through *block* from its instruction *begin* to before *end*, if it is."""
        if begin == end:
            return
        if self._inside:
            if self._view.tells_accesses:
                places = range(begin, end)
                self._piece += [accesses[k]._replace(place=k - begin) for k in places if k in accesses]
            self._piece.append(_part(block, begin, end))
        self._done += end - begin

    def _told(self, items: Sequence[TrapEntry | Situation]) -> list[Retired]:
        """The protocol is told of situations only if it wants to be."""
        return [item for item in items if isinstance(item, TrapEntry) or self._view.tells_situation]

    def _flush(self) -> None:
        """All that was dealt with goes out, at the time when it had happened."""
        self._view.passed(self._done)
        self._done = 0
        if self._piece:
            self._port.tell(self._piece)
            self._piece = []


def _part(block: HartBlock, begin: int, end: int) -> Retired:
    """Instructions *begin* to before *end* of *block*."""
    if begin:
        block = HartBlock(block.pcs[begin:], block.words[begin:], block.next, block.run)
    return block if end - begin == block.n else (block, end - begin)
