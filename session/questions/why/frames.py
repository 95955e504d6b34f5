"""Which activation of a function an instruction ran in, and what maker it: without a list of instructions.

An activation is known by the instruction that maker it (the call, or the last one before a trap) and, since jumps to
other functions keep it, by the calls that are active in it.
"""

from bisect import bisect_left, bisect_right
from itertools import islice
from typing import NamedTuple

from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.calls.stacks.frame import Frame, StackOperationKind
from rvtrace_gdb.decode.history.events import Trap
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.history.reverse_search import AddressSearch, SearchedAddresses
from rvtrace_gdb.support.errors import Progress, silent

_KEPT = 1 << 16
_LEAPS_AT_MOST = 1 << 14


class Activation(NamedTuple):
    """An activation of a function. *maker*: the position of the instruction that maker it, None: before the history, or
    not known; then *level* tells one from another. *kind*: CALL or TRAP; BEGIN if it is not known. *top*: the innermost
    of the calls that are active.
    """

    maker: int | None
    kind: StackOperationKind
    top: Frame | None
    level: tuple[int, int] | None = None

    @property
    def is_jump(self) -> bool:
        """Whether another function jumped here, which the call was of."""
        return self.top is not None and self.top.kind is StackOperationKind.TAIL


class Activations:
    """The activations of a history, whose active calls are *frames*."""

    def __init__(self, history: History, frames: CallFrames) -> None:
        self._history, self._frames = history, frames
        self._search = AddressSearch(history)
        self._known: dict[int, Activation] = {}
        self._traps = sorted({it.position for it in history.events if isinstance(it.fact, Trap)} - {len(history)})

    def activation_at(self, position: int) -> Activation:
        """Return the activation in which the instruction at a position ran; at the end, that in which the last one did.
        """
        position = min(position, len(self._history) - 1)
        found = self._known.get(position)
        if found is None:
            if len(self._known) > _KEPT:
                self._known.clear()
            found = self._known[position] = self._read_activation(position)
        return found

    def _read_activation(self, position: int) -> Activation:
        if self._history.pc(position) == GAP:
            return Activation(None, StackOperationKind.BEGIN, None)
        own, *callers = islice(self._frames.frames(position), 2)
        top = self._frames.top(position)
        if not callers or callers[0].call is None:
            trapped = self._trapped(position, (top, own.stack, own.level))
            if trapped is not None:
                return Activation(trapped, StackOperationKind.TRAP, top)
            return Activation(None, StackOperationKind.BEGIN, top, (own.stack, own.level))
        return Activation(callers[0].call, callers[0].kind, top)

    def _trapped(self, position: int, here: tuple[Frame | None, int, int]) -> int | None:
        """Return the last instruction before the trap whose handler runs at a position, where the history does not show
        what it interrupted: the calls have been the same since the trap, and were others before.
        """
        at = bisect_right(self._traps, position) - 1
        trap = self._traps[at] if at >= 0 else 0
        is_since = trap > 0 and self._active_calls(trap) == here and self._active_calls(trap - 1) != here
        return trap - 1 if is_since else None

    def _active_calls(self, position: int) -> tuple[Frame | None, int, int] | None:
        """Return what tells the calls that are active at a position from others."""
        own = next(iter(self._frames.frames(position)), None)
        return None if own is None else (self._frames.top(position), own.stack, own.level)

    def is_trap(self, position: int) -> bool:
        """Return whether a trap came before the instruction at a position."""
        at = bisect_left(self._traps, position)
        return at < len(self._traps) and self._traps[at] == position

    def makers(self, position: int) -> list[tuple[int, StackOperationKind]]:
        """Return what maker the activations that are active at a position, the innermost first."""
        position = min(position, len(self._history) - 1)
        frames = self._frames.frames(position, 1)
        return [(it.call, it.kind) for it in frames if it.call is not None]

    def last(
        self, position: int, addresses: SearchedAddresses, activation: Activation, progress: Progress = silent
    ) -> int | None:
        """Return the last instruction before a position, at one of some addresses, that ran in an *activation*.
        What its callees, handlers and other tasks ran since is leapt over.
        """
        maker = activation.maker
        first = -1 if maker is None else maker
        at = self._search.find(position, -1, addresses, progress, farthest=max(first, 0))
        for _ in range(_LEAPS_AT_MOST):
            if at is None or at <= first:
                return None
            found = self.activation_at(at)
            if found == activation:
                return at
            if maker is not None and found.maker == maker:  # before a jump that replaced the function
                return None
            at = self._search.find(self._left(at, maker), -1, addresses, progress, farthest=max(first, 0))
        return None

    def _left(self, position: int, maker: int | None) -> int:
        """Return where the activation that was maker at a position was left last, for one that is active at another; or
        that position itself.
        """
        makers = [it for it, _ in self.makers(position)]
        if maker in makers:
            at = makers.index(maker)
            return makers[at - 1] + 1 if at else position
        if maker is None and makers:
            return makers[-1] + 1
        return position
