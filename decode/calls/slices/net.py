"""What is left of the calls in a short part of a history: what it does to the functions that run before and after it.

Most calls begin and end in it, and are only counted, with the function in which they were made.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind

ENTERING = frozenset({StackOperationKind.CALL, StackOperationKind.TAIL, StackOperationKind.TRAP})
"""How a function is entered that is one level above its caller."""


IN_GAP = -5
"""What runs in a gap: no function. It is neither GAP nor UNKNOWN, which are the same number."""
_NO_FUNCTION = -4
"""The function that goes on when another one is entered at the same level: none."""


class FunctionBegin(NamedTuple):
    """From *position* on a function runs that starts at *function* (UNKNOWN without a symbol, IN_GAP in a gap), at a
    *level*. *kind*: how it came to run. *stretch*: of the call history.
    """

    position: int
    function: int
    level: int
    kind: StackOperationKind
    stretch: int


class SummedCalls(NamedTuple):
    """*calls* that began and ended from *position* up to *end*, above the function at *level*. What was above it before
    has ended, too.
    """

    position: int
    end: int
    level: int
    calls: int
    stretch: int


CallItem = FunctionBegin | SummedCalls


class Net(NamedTuple):
    """What a short part does: *items*, at positions from its start; *calls*: how many there are in it; *low*: the
    lowest level in it; *function*: the one that was running before. *pure*: nothing that was running before ends in it,
    and nothing that begins in it is left. *moves*: more than one stack runs in it.
    """

    items: tuple[CallItem, ...]
    calls: int
    low: int
    function: int
    pure: bool
    moves: bool


def calls_in(items: Iterable[CallItem]) -> int:
    """Return how many calls there are in items."""
    return sum(item.calls if isinstance(item, SummedCalls) else item.kind in ENTERING for item in items)


def net_of(items: Sequence[CallItem], level: int, function: int) -> Net:
    """Return what is left of the items of a part, before which *function* was running at a *level*."""
    calls = calls_in(items)
    low = min((item.level for item in items), default=level)
    if any(item.stretch or (isinstance(item, FunctionBegin) and item.function == IN_GAP) for item in items):
        return Net(tuple(items), calls, low, function, False, True)
    builder = NetBuilder(level, function)
    builder.add_all(items, 0)
    left = builder.remaining()
    return Net(left, calls, low, function, all(isinstance(item, SummedCalls) for item in left), False)


class _OpenCall:
    """A function that began at *position*, and what was counted in it; or the one that was running before."""

    __slots__ = ("begin", "calls", "counted", "end", "function", "kind", "level", "position")

    def __init__(self, position: int, function: int, level: int, kind: StackOperationKind, counted: int) -> None:
        self.position, self.function, self.level, self.kind, self.counted = position, function, level, kind, counted
        self.calls = self.begin = self.end = 0

    def sum_up(self, calls: int, begin: int, end: int) -> None:
        """Count calls that began and ended in it."""
        if not self.calls:
            self.begin = begin
        self.calls, self.end = self.calls + calls, end

    def summed(self) -> list[CallItem]:
        """Return what was counted in it, and forget that."""
        if not self.calls:
            return []
        found = SummedCalls(self.begin, self.end, self.level, self.calls, 0)
        self.calls = 0
        return [found]


class NetBuilder:
    """The stack of functions in a part, as far as they begin in it."""

    def __init__(self, level: int, function: int) -> None:
        self._base = _OpenCall(0, function, level, StackOperationKind.BEGIN, 0)
        self._open: list[_OpenCall] = []
        self._items: list[CallItem] = []

    def add_all(self, items: Iterable[CallItem], position: int) -> None:
        """Go on with items whose positions count from *position*."""
        for item in items:
            if isinstance(item, SummedCalls):
                self._sum_up(item, position)
            else:
                self._begin_function(item, position)

    def _begin_function(self, item: FunctionBegin, position: int) -> None:
        """Go on with the next function that begins to run."""
        begin, function, level, kind, _ = item
        entering, here = kind in ENTERING, self._open[-1] if self._open else self._base
        if here is not self._base and (
            here.level > level or (here.level == level and (entering or here.function != function))
        ):
            here = self._end_above(level, position + begin, _NO_FUNCTION if entering else function)
        if level > here.level:
            self._open.append(_OpenCall(position + begin, function, level, kind, int(entering)))
        elif entering or level < here.level or function != here.function:
            self._items += self._base.summed()  # what was running before has ended
            self._items.append(FunctionBegin(position + begin, function, level, kind, 0))
            self._base = _OpenCall(position + begin, function, level, kind, 0)

    def _sum_up(self, item: SummedCalls, position: int) -> None:
        """Go on with calls that are only counted."""
        begin, end, level, calls, _ = item
        here = self._open[-1] if self._open else self._base
        if here is not self._base and here.level > level:
            here = self._end_above(level, position + begin, None)
        if here.level > level:  # what was running before has ended
            self._items += [*self._base.summed(), SummedCalls(position + begin, position + end, level, calls, 0)]
        else:
            here.sum_up(calls, position + begin, position + end)

    def remaining(self) -> tuple[CallItem, ...]:
        """Return what is left at the end."""
        self._items += self._base.summed()
        for call in self._open:
            self._items.append(FunctionBegin(call.position, call.function, call.level, call.kind, 0))
            self._items += call.summed()
        return tuple(self._items)

    def _end_above(self, level: int, position: int, function: int | None) -> _OpenCall:
        """End the calls that cannot go on when *function* runs at a *level*, and return the one that goes on. None: the
        one that runs there goes on.
        """
        while self._open:
            top = self._open[-1]
            if top.level < level or (top.level == level and function in (None, top.function)):
                return top
            ended = self._open.pop()
            calls = ended.counted + ended.calls
            if calls:
                into = self._open[-1] if self._open else self._base
                into.sum_up(calls, ended.position, position)
        return self._base
