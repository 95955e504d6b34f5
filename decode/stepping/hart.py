"""The decoder of one hart, as far as it is the same in N-Trace and E-Trace: reports, losses, and the memory of steps.

Only a few percent of the messages in a real trace are distinct, and a step depends only on its state, the message, and
few other things, such as the top of the call stack. So each state keeps the steps taken from it. If a step pops return
addresses from the stack, it is found through one `Fork` for each of them. A hot loop costs one look-up per message,
however many instructions the message stands for. The number of remembered steps is limited; dropping them costs time,
but does not change the result.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Generic, Self, TypeVar, final

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, Resumable, attributes, set_attributes, unpacked
from rvtrace_gdb.decode.history.events import (
    Accounting,
    ContextChange,
    EventKind,
    Fact,
    Loss,
    LossCause,
    Note,
    NoteCause,
    Start,
    Trap,
)
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program.csrs import UNKNOWN_THREAD, ProgramContext
from rvtrace_gdb.decode.stepping.control_flow import CallEffect, Stack, pushed
from rvtrace_gdb.decode.stepping.reports import LostBytes, Report

MEMO_LIMIT = 1 << 17
"""The greatest number of remembered steps (about 0.6 KB each; larger steps count as several)."""

DEEPEST = 64  # return addresses that a remembered step pops at most; steps with more are too rare for as many forks
_ONE_STEP = 64  # pointers
_LONGEST = 1 << 60  # instructions of a history; only noise reports more


Remembered = TypeVar("Remembered")
"""What a format remembers of a message: its `Step`, or what leads to it."""


@final
class Fork(dict[int | None, "Remembered | Fork[Remembered]"], Generic[Remembered]):
    """The remembered steps of a message that depends on the call stack, by the return address on top of the stack.

    *counted* has the same meaning as in the `Step` of N-Trace.
    """

    __slots__ = ("counted",)

    def __init__(self, counted: bool) -> None:
        super().__init__()
        self.counted = counted


class StepMemory:
    """Remembers steps. *forget*: drops all of them; *limit*: their greatest number, 0: none."""

    def __init__(self, forget: Callable[[], None], limit: int) -> None:
        self._forget = forget
        self._limit = limit
        self._size = 0  # in steps of usual size

    def count(self, steps: int) -> bool:
        """Count steps that were taken, and return whether they may be remembered.

        At the limit, which also holds for the states if no steps are remembered, everything is dropped.
        """
        self._size += steps
        if self._size <= (self._limit or MEMO_LIMIT):
            return self._limit > 0
        self._forget()
        self._size = 0
        return False

    @staticmethod
    def size(message: bytes, path: Path | None, calls: CallEffect | None) -> int:
        """Return the size of a step in units of a usual step."""
        pointers = len(message) // 8 + (len(path.parts) if path is not None else 0)
        if calls is not None:
            pointers += len(calls.taken) + len(calls.left)
        return 1 + pointers // _ONE_STEP

    @staticmethod
    def add(steps: dict[Any, Any], key: Any, step: Any, calls: CallEffect | None, *, counted: bool = False) -> None:
        """Remember a step in *steps*, through a fork for each return address that it pops.

        A step that pops very many is not remembered.
        """
        taken = calls.taken if calls is not None else ()
        if len(taken) > DEEPEST:
            return
        for address in taken:
            fork = steps.get(key)
            if not isinstance(fork, Fork):
                fork = steps[key] = Fork(counted)
            steps, key = fork, address
        steps[key] = step


_COUNTS = ("_stopped", "_lost_at", "_total", "_idle", "_unused")


def _return_addresses(stack: Stack) -> list[int]:
    """Return the addresses of a call stack, the one on top last."""
    addresses: list[int] = []
    while stack is not None:
        addresses.append(stack[0])
        stack = stack[1]
    return addresses[::-1]


class HartDecoder(Resumable, ABC):
    """Decodes the messages of one hart.

    builder        collects the history
    stop_at_error  whether decoding stops at the first loss
    """

    def __init__(self, builder: HistoryBuilder | None, *, stop_at_error: bool) -> None:
        self._builder = builder or HistoryBuilder()
        self._stop_at_error = stop_at_error
        self._stack: Stack = None
        self._stopped = False
        self._lost_at = -1  # the offset of the last loss
        self._loss: Fact | None = None  # the last one of the flow, unless the hart's place is known again
        self._now: int | None = None  # the time of the message that is decoded, as far as an event of the hart needs it
        self._total = self._idle = self._unused = 0  # bytes

    @abstractmethod
    def lose(self, lost: LostBytes) -> None:
        """Handle bytes that are not a message: the flow is lost. At the start of a wrapped buffer this is not
        reported.
        """

    def duplicate(self) -> Self:
        """Return a decoder that is where this one is. They share the steps they remember; one may end the trace while
        the other waits.
        """
        other = copy(self)
        other._builder = self._builder.duplicate()
        return other

    def checkpoint(self) -> Checkpoint:
        """Return what another decoder needs to go on from here. Raises NoCheckpoint."""
        parts = {"builder": self._builder.checkpoint(), "stack": _return_addresses(self._stack)}
        return attributes(self, *_COUNTS) | parts

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Go on where another decoder was, before anything is decoded."""
        set_attributes(self, checkpoint, *_COUNTS)
        self._stack = pushed(None, checkpoint["stack"])
        self._builder.go_on_from(checkpoint["builder"])

    def begin_like(self, checkpoint: Checkpoint) -> None:
        """Begin in the middle of a trace, with what another decoder knew of the encoder and of the context: where the
        hart is, is not known.
        """
        for _, context in unpacked(checkpoint["builder"]["contexts"])[-1:]:
            self._builder.context(context)

    @property
    def builder(self) -> HistoryBuilder:
        """The builder that collects the history."""
        return self._builder

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Whether the trace has not said that it stops here, and decoding has begun."""

    @abstractmethod
    def _change_context(self, change: Callable[[ProgramContext], ProgramContext]) -> tuple[ContextChange, int]:
        """Let another context be that of what runs from here on. Return the change, and how many instructions still run
        in the context before, which are not in the history yet.
        """

    def enter(self, thread: int | None, epoch: int, time: int | None, offset: int) -> None:
        """Go on with what an operating system says of the trace from byte *offset* on, see `StreamDecoder.enter`."""
        if self._stopped:
            return
        if time is not None:
            self._builder.time(time)
        found = None if thread == UNKNOWN_THREAD else thread
        change, after = self._change_context(
            lambda context: context._replace(epoch=epoch, scontext=context.scontext if thread is None else found)
        )
        if change.changed:
            self._report((Report(EventKind.CONTEXT, change, after=after),), offset)
        elif change.now != change.before:
            self._builder.context(change.now, after)

    @abstractmethod
    def finish(self, end: int) -> History:
        """End the trace at byte *end* and return the history."""

    def cut_off(self, lost: LostBytes) -> None:
        """Note that the trace ends in the middle of a message, which may be this hart's."""
        self.note(lost.offset, Note(NoteCause.CUT_OFF, (lost.why,)))

    def note(self, offset: int, note: Note) -> None:
        """Add a note for this trace offset to the history."""
        self._builder.event(EventKind.NOTE, offset, note)

    def _end_batch(self, last: Callable[[], int]) -> None:
        """Store what messages received together have shown. *last* returns the offset of the last of them."""
        self._builder.flush()
        if self._builder.position > _LONGEST and not self._stopped:
            self._stopped = True
            self.note(last(), Note(NoteCause.TOO_LONG, (self._builder.position,)))

    def _report_count(self, start: int, end: int, messages: int, period: int, *, missing: bool) -> None:
        """Report that *messages* between the synchronizations at these bytes are too few, or too many."""
        cause = LossCause.MESSAGES_MISSING if missing else LossCause.MESSAGES_TOO_MANY
        self._builder.missing(start, end, Loss(cause, (messages, period)))
        if self._stop_at_error:
            self.note(end, Note(NoteCause.STOPPED_AT_LOSS))
            self._stopped = True

    def _report(self, reports: Sequence[Report], offset: int) -> None:
        """Put *reports*, found at byte *offset* of the trace, into the history."""
        builder = self._builder
        for report in reports:
            if report.lost:
                self._lost_at = offset
                self._loss = report.fact
                builder.gap(report.kind, offset, report.fact)
                if self._stop_at_error:
                    self.note(offset, Note(NoteCause.STOPPED_AT_LOSS))
                    self._stopped = True
                    return
                continue
            if report.moved or report.maybe_moved:
                fact = report.fact
                builder.add_gap(fact if isinstance(fact, Start | Trap) and not report.maybe_moved else None)
            if report.resumed is not None:
                self._loss = None
                builder.resume(report.resumed, offset)
            now = self._now if report.kind is EventKind.HART_EVENT else None
            builder.event(report.kind, offset, report.fact, last_pc=report.last_pc, next_pc=report.next_pc, time=now)
            if isinstance(report.fact, ContextChange):
                builder.context(report.fact.now, report.after)

    def _finished(self) -> History:
        """Return the history of everything decoded."""
        decoded = self._total - self._idle - self._unused
        return self._builder.finish(Accounting(self._total, decoded, self._idle, self._unused))
