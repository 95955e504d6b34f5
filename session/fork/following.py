"""An unchanged fork along the history that it was made from: how far they agree, and why it leaves it.

A fork is not told of interrupts: those that the trace shows are taken where it shows them. Everything else the
fork does by itself, and each instruction is compared with the one that was traced.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import Trap, TrapKind
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.semantics.encodings import Operation
from rvtrace_gdb.session.fork.fork import ForkedHart
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.transport.simulated.hart.block import BlockPart, HartBlock
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from rvtrace_gdb.transport.simulated.partial.stops import PASSED, HartStop, StopCause
from rvtrace_gdb.transport.simulated.partial.unknown import UNKNOWN

END, LOST, OTHER_PATH, NO_TRAP = "end", "lost", "other-path", "no-trap"
"""Why a fork is not followed further, besides the reasons of `StopCause`: it came to the end of what is followed; the
trace is lost there; it runs another instruction than was traced; the trace has a trap there, which the fork does not
take.
"""
_PIECE = 1 << 16
_TRAPPING = ("ecall", "ebreak", "illegal")


class Left(NamedTuple):
    """Where a fork leaves the trace. *reason*: one of those above, or of `StopCause`.

    position     of the instruction that the fork does not execute as traced; the end: behind the last one
    interrupts   how many of the trace were taken on the way; *exceptions*: how many the fork took by itself
    passed       how many reads of devices were passed over
    stores       how many stores to devices led nowhere
    pc           where the fork went instead, None: nowhere
    stop         why the fork does not execute it, None: it would
    """

    reason: str
    position: int
    interrupts: int
    exceptions: int
    passed: int
    stores: int
    pc: int | None = None
    stop: HartStop | None = None


class _Parted(Exception):
    """The fork left the trace. *position*: that of `Left`."""

    def __init__(self, reason: str, position: int, pc: int | None = None, stop: HartStop | None = None) -> None:
        super().__init__(reason)
        self.reason, self.position, self.pc, self.stop = reason, position, pc, stop


class ForkFollower:
    """Follows a fork along its history, up to position *stop*, or to where it leaves it.

    *through_devices*: it is not left at reads of devices; what they read is what the past knows of it.
    """

    def __init__(self, fork: ForkedHart, stop: int, *, through_devices: bool = False) -> None:
        self._fork, self._hart = fork, fork.hart
        self._history: History = fork.selected.history
        self._stop, self._through = min(stop, len(self._history)), through_devices
        self._position = fork.position
        self._interrupts = self._exceptions = self._passed = 0
        self._retired: list[HartItem] = []

    def follow(self, progress: Progress) -> Left:
        """Return where the fork leaves the trace. Raises what *progress* raises."""
        self._hart.retired = self._retired
        begin = self._position
        try:
            for cut in self._cuts():
                while self._position < cut:
                    self._advance(min(cut - self._position, _PIECE))
                    progress("following the trace (instructions)", self._position - begin, self._stop - begin)
                self._pass_events()
            return self._left(_Parted(END, self._stop))
        except _Parted as parted:
            return self._left(parted)

    def _left(self, parted: _Parted) -> Left:
        return Left(
            parted.reason, parted.position, self._interrupts, self._exceptions, self._passed,
            self._hart.data.device_stores, parted.pc, parted.stop,
        )  # fmt: skip

    def _cuts(self) -> Iterator[int]:
        """Yield the positions before which something happens besides the instructions, and the end."""
        history, last = self._history, self._fork.position
        events = history.events_between(last + 1, self._stop)
        at = {event.position for event in events if _matters(event)}
        gaps = (position for position in history.gap_positions if last < position < self._stop)
        yield from sorted({*at, *gaps, self._stop})

    def _advance(self, most: int) -> None:
        """Execute at most so many instructions, and compare them."""
        traps, stop = self._hart.traps, None
        try:
            self._hart.advance(most)
        except HartStop as error:
            stop = error
        self._compare()
        if stop is not None:
            self._pass_stop(stop)
        elif self._hart.traps > traps:
            self._leave_at_trap()

    def _compare(self) -> None:
        """Compare what has retired with what was traced, and go on behind it."""
        ran = tuple(chain.from_iterable(map(_pcs, self._retired)))
        self._retired.clear()
        if not ran:
            return
        traced = tuple(self._history.pcs(self._position, self._position + len(ran)))
        if ran != traced:
            at = next(n for n, (own, other) in enumerate(zip(ran, traced, strict=False)) if own != other)
            raise _Parted(OTHER_PATH, self._position + at, ran[at])
        self._position += len(ran)

    def _pass_stop(self, stop: HartStop) -> None:
        """Pass over a read of a device, if they are, and over what did not trap: the trace would have it."""
        if stop.reason is StopCause.DEVICE_READ and self._through:
            self._read_device(stop)
            return
        if stop.reason in PASSED - {StopCause.DEVICE_READ}:
            self._hart.advance(1, over=stop.reason)
            self._compare()
            return
        raise _Parted(stop.reason, self._position, None, stop)

    def _read_device(self, stop: HartStop) -> None:
        """Let an instruction read what it read in the past."""
        hart, operation = self._hart, self._next_operation()
        hart.advance(1, over=stop.reason)
        self._passed += 1
        self._compare()
        if operation.rd and not operation.name.startswith("f"):
            known = self._fork.past.integers(self._position)
            hart.x[operation.rd] = known.get(operation.rd, UNKNOWN)

    def _next_operation(self) -> Operation:
        return self._hart.operation_at(self._hart.pc)

    def _leave_at_trap(self) -> None:
        """Leave the trace where the fork takes an exception that is not in it."""
        raise _Parted(OTHER_PATH, self._position, self._hart.pc)

    # -- what the trace shows besides instructions

    def _pass_events(self) -> None:
        """Do what happens in the trace before the instruction that is next."""
        position, history = self._position, self._history
        if position >= self._stop:
            return
        if history.pc(position) == GAP:
            raise _Parted(LOST, position)
        for event in history.events_between(position, position + 1):
            if isinstance(event.fact, Trap):
                self._take(event.fact, history.pc(position) if event.next_pc is None else event.next_pc)

    def _take(self, trap: Trap, handler: int) -> None:
        """Take a trap of the trace: an exception by executing the instruction, an interrupt as the trace has it."""
        if trap.kind is TrapKind.EXCEPTION or (trap.may_be_exception and self._next_operation().name in _TRAPPING):
            self._take_exception(handler)
            return
        self._interrupts += 1
        is_certain = trap.kind is TrapKind.INTERRUPT
        self._hart.interrupt(trap.cause, handler, is_certain=is_certain)

    def _take_exception(self, handler: int) -> None:
        hart, traps = self._hart, self._hart.traps
        try:
            hart.advance(1)
        except HartStop as stop:
            if stop.cause is None:
                raise _Parted(stop.reason, self._position, None, stop) from None
            hart.trap(stop.cause, handler)
        if hart.traps == traps:
            raise _Parted(NO_TRAP, self._position, hart.pc)
        self._retired.clear()
        self._exceptions += 1


def _pcs(item: HartItem) -> Sequence[int]:
    if isinstance(item, HartBlock):
        return item.pcs
    return item.block.pcs[: item.n] if isinstance(item, BlockPart) else ()


def _matters(event: Event) -> bool:
    return isinstance(event.fact, Trap)
