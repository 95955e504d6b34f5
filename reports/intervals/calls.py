"""The time in calls of a function: from each entry to the return of that very call, whatever ran in between.

An entry is what `trace find FUNCTION` finds. The call ends where the level of what runs on its stack falls below that
of the function: it has returned, or something that it jumped to has, or it was unwound. The index of calls knows the
lowest level in each block of entries, so where no call begins or ends nothing is looked at.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.stacks.stack import CallStacks
from rvtrace_gdb.decode.calls.states import NEVER, CallStep
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.reports.intervals.intervals import HistoryInterval, HistoryIntervals, PositionRanges, collected
from rvtrace_gdb.support.errors import Progress, silent

_EVERY = 1 << 6  # blocks between two calls of the progress


class _UnendedCall(NamedTuple):
    """A call of a group that has not ended. *begin*: None: before the history, or in a gap. *depth*: as in
    `HistoryInterval`.
    """

    begin: int | None
    level: int
    depth: int
    group: "_GroupCalls"


class _BegunFunction(NamedTuple):
    """A function that runs from *position* on. *pc*: its first instruction there; *function*: its start.

    stack, level  the stack that it runs on, and its level there
    lows          the lowest levels on the way there: of each stack that ran, in order
    """

    position: int
    pc: int
    function: int
    stack: int
    level: int
    lows: Sequence[tuple[int, int]]


class Calls(NamedTuple):
    """The calls of some functions, and the positions after each of their returns, in order: of all that returned."""

    intervals: HistoryIntervals
    returns: "array[int]"


def calls_of(
    calls: CallHistory,
    functions: Sequence[int],
    entries: "array[int]",
    progress: Progress = silent,
    part: range | PositionRanges | None = None,
) -> Calls:
    """Return the calls of the functions that begin at addresses. *entries*: where they were entered, in order; *part*:
    the intervals are those that begin in it alone. Raises what *progress* raises.
    """
    [found] = calls_of_each(calls, [functions], entries, progress, part)
    return found


def calls_of_each(
    calls: CallHistory,
    groups: Sequence[Sequence[int]],
    entries: "array[int]",
    progress: Progress = silent,
    part: range | PositionRanges | None = None,
) -> list[Calls]:
    """Return the calls of each group of functions, found at once. *entries*: of all of them, in order. Raises what
    *progress* raises.
    """
    found, blocks = _Calls(calls, groups, entries), len(calls.lowest)
    for block in range(blocks):
        if block % _EVERY == 0:
            progress("measuring calls (parts)", block, blocks)
        found.look_at(block)
    return [
        Calls(
            collected(calls.history, it.ended, cut=it.cut, began=it.began, unended=found.unended(it), part=part),
            it.returns,
        )
        for it in found.groups
    ]


class _GroupCalls:
    """The calls of a group. *ended*: those that were measured, *returns*: as in `Calls`; *cut*, *began*: as in
    `collected`.
    """

    def __init__(self) -> None:
        self.ended: list[HistoryInterval] = []
        self.returns = array("Q")
        self.cut, self.began = list[int](), list[int]()


class _Calls:
    """The calls of some *groups* of functions, found block by block."""

    def __init__(self, calls: CallHistory, groups: Sequence[Sequence[int]], entries: "array[int]") -> None:
        self._calls, self._entries = calls, entries
        self.groups = [_GroupCalls() for _ in groups]
        self._functions = {
            function: group for functions, group in zip(groups, self.groups, strict=True) for function in functions
        }
        self._next = 0  # the entry that comes next
        self._open: dict[int, list[_UnendedCall]] = {}  # by stack, the newest last
        self._lowest: dict[int, int] = {}  # by stack: the lowest level that was seen; callers above it are known

    def unended(self, group: _GroupCalls) -> list[int]:
        """Return where those of a group began that have not ended."""
        every = (one for waiting in self._open.values() for one in waiting)
        return [one.begin for one in every if one.begin is not None and one.group is group]

    def look_at(self, block: int) -> None:
        """Find the calls that begin or end in a block of entries."""
        calls = self._calls
        stretch, end = calls.stretch_at(block), calls.begin_of(block + 1)
        if self._is_quiet(stretch, calls.lowest[block], end):
            return
        position, steps = calls.taken_in(block)
        for step in steps:
            end = position + step.unit.part.count
            if not self._is_quiet(stretch, step.low, end):
                for run in self._runs(step, stretch, position):
                    self._go_to(run)
            stretch += len(step.lows) - 1
            position = end

    def _is_quiet(self, stretch: int, low: int, end: int) -> bool:
        """Return whether no call begins before the position *end*, or ends where a stretch comes down to a level."""
        if low == NEVER or (self._next < len(self._entries) and self._entries[self._next] < end):
            return False
        stretches = self._calls.stretches
        stack, low = stretches.stack_of(stretch), low + stretches.raised(stretch)
        waiting = self._open.get(stack)
        return low >= (waiting[-1].level if waiting else self._lowest.get(stack, low + 1))

    def _runs(self, step: CallStep, stretch: int, position: int) -> Iterator[_BegunFunction]:
        """Yield the functions that begin in the entry that a step leads to, and on the way there."""
        unit, at = step.unit, step.origin.calls(self._calls.frames)
        summaries = unit.summaries
        start_of = summaries.edges.functions.start_of
        at.do(unit.edge.operations)
        first = summaries.summary_of(unit.part).first
        if unit.edge.begins:
            yield self._beginning(at, stretch, position, first, start_of(first))
            stretch = _restart(at, stretch)
        for begin in summaries.begins(unit.part, at, 0):
            yield self._beginning(at, stretch, position + begin.offset, begin.to, start_of(begin.to))
            stretch = _restart(at, stretch)

    def _beginning(self, at: CallStacks, stretch: int, position: int, pc: int, function: int) -> _BegunFunction:
        stretches = self._calls.stretches
        passed = range(stretch, stretch + len(at.lows))
        levels = zip(passed, at.lows, strict=True)
        lows = [(stretches.stack_of(one), low + stretches.raised(one)) for one, low in levels]
        return _BegunFunction(position, pc, function, lows[-1][0], at.level + stretches.raised(passed[-1]), lows)

    def _go_to(self, run: _BegunFunction) -> None:
        if run.pc == GAP:
            self._cut_all()
            return
        known = self._lowest.get(run.stack)
        for stack, low in run.lows:
            waiting = self._open.get(stack)
            while waiting and waiting[-1].level > low:
                self._end(waiting.pop(), run.position)
            self._lowest[stack] = min(low, self._lowest.get(stack, low))
        if self._next < len(self._entries) and self._entries[self._next] == run.position:
            self._next += 1
            self._begin(run, run.position)  # of the function that begins at its first instruction there
        elif run.function in self._functions and (known is None or run.level < known):  # seen for the first time
            self._begin(run, None)

    def _begin(self, run: _BegunFunction, position: int | None) -> None:
        waiting = self._open.setdefault(run.stack, [])
        group = self._functions.get(run.pc) or self._functions[run.function]
        depth = next((one.depth + 1 for one in reversed(waiting) if one.group is group), 0)
        waiting.append(_UnendedCall(position, run.level, depth, group))

    def _end(self, call: _UnendedCall, position: int) -> None:
        call.group.returns.append(position)
        if call.begin is None:
            call.group.began.append(position)
        else:
            call.group.ended.append(HistoryInterval(call.begin, position, call.depth))

    def _cut_all(self) -> None:
        """In a gap anything may have returned."""
        for group in self.groups:
            group.cut += self.unended(group)
        self._open.clear()
        self._lowest.clear()


def _restart(at: CallStacks, stretch: int) -> int:
    """Let the lowest levels begin with the present one, and return the stretch that runs."""
    stretch += len(at.lows) - 1
    at.lows = [at.level]
    return stretch
