"""The functions that ran, numbered, each with its level, and how often what ran: found without going through the
instructions.

A history shares the pieces it is made of, so each is looked at once (`summaries`), and so is what it does to a call
stack (`states`). What is left is one look-up for each entry. Which different steps were taken is kept for each span of
entries: whoever looks for something in the whole history need not go through them again (`decode/search.py`).
"""

import gc
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import PLAIN, Kind
from rvtrace_gdb.decode.calls.entries import Entries, traps_of
from rvtrace_gdb.decode.calls.stack import Calls
from rvtrace_gdb.decode.calls.states import NEVER, State, States, Step, Unit, walk
from rvtrace_gdb.decode.history import GAP, History
from rvtrace_gdb.decode.streams import Program
from rvtrace_gdb.support.progress import Progress, silent

_BLOCK = 1024  # entries between stacks that are kept
_SPAN = 64  # blocks that are counted together
_TOLD = 1 << 3  # blocks from one word about progress to the next
_BEGINS, _LOW = attrgetter("begins"), attrgetter("low")


class Function(NamedTuple):
    """A function that ran at positions *begin* to *end* - 1: until it called, returned, or was interrupted.

    *pc* its first instruction there, GAP for a gap. *level*: how many callers it has in the stretch between two gaps,
    as far as that shows them. *kind*: how it came to run.
    """

    number: int
    begin: int
    end: int
    pc: int
    level: int
    kind: Kind


class Tally(NamedTuple):
    """The different steps taken in a span of the history, and how many times each of them."""

    steps: tuple[Step, ...]
    times: Sequence[int]


class CallHistory:
    """The functions that ran in *history*, numbered from 1. Where *progress* is None they are yet to be found: `go_on`.

    *tallies*: of all spans, which are some tens of thousands of entries each. *lowest*: the lowest level in each block
    of entries, NEVER where the stack was not known at some time. *frames*: the calls under way anywhere.
    """

    def __init__(self, history: History, program: Program, progress: Progress | None = silent) -> None:
        self.history = history
        self._traps = traps_of(history)
        self._entries = Entries(history, program, self._traps)
        states = States(self._entries.images)
        self.frames = states.frames
        self.tallies: list[Tally] = []
        self.lowest = array("q")
        self._checkpoints: list[tuple[State, int]] = []
        self._begins = array("Q", [0])  # how many functions begin before each block
        self._lows = [0]
        self._first = self._state = states.first
        self._counted: Counter[Step] = Counter()  # of the span so far
        self._positions = array("Q", map(history.position_of, range(0, len(self._entries), _BLOCK)))
        if progress is not None:
            self.go_on(progress)

    def __len__(self) -> int:
        return self._begins[-1]

    def trap_at(self, position: int) -> str:
        """What the trace says of the trap before *position*."""
        traps = self._traps.get(position)
        return traps[-1].text if traps else ""

    def functions(self, begin: int, end: int) -> Iterator[Function]:
        """Those numbered *begin* to *end* - 1."""
        end = min(end, len(self) + 1)
        found = islice(self._from(max(begin, 1)), end - max(begin, 1) + 1)
        last: Function | None = None
        for function in found:
            if last is not None:
                yield last._replace(end=function.begin)
            last = function
        if last is not None and last.number < end:
            yield last._replace(end=len(self.history))

    def steps(self, progress: Progress = silent) -> Counter[Step]:
        """How often each step was taken. *progress* may raise."""
        taken: Counter[Step] = Counter()
        for number, tally in enumerate(self.tallies):
            progress("adding up (parts)", number, len(self.tallies))
            for step, times in zip(tally.steps, tally.times, strict=True):
                taken[step] += times
        return taken

    def block_at(self, position: int) -> int:
        """Which block of entries has a position, which may be the end of the history; -1 for an empty one."""
        return bisect_right(self._positions, position) - 1

    def taken_in(self, block: int) -> tuple[int, list[Step]]:
        """Where a block of entries begins, and the steps that were taken in it."""
        return self._positions[block], self._taken(block, self._checkpoints[block][0])

    def span_at(self, position: int) -> int:
        """Which span has a position."""
        return self.block_at(position) // _SPAN

    def taken_in_span(self, span: int) -> tuple[int, list[Step]]:
        """As `taken_in`, of a span."""
        blocks = range(span * _SPAN, min((span + 1) * _SPAN, len(self._checkpoints)))
        steps = chain.from_iterable(self._taken(block, self._checkpoints[block][0]) for block in blocks)
        return self._positions[blocks.start], list(steps)

    def _taken(self, block: int, state: State) -> list[Step]:
        return walk(state, self._entries.between(block * _BLOCK, (block + 1) * _BLOCK))

    def go_on(self, progress: Progress = silent) -> None:
        """Through all entries, from where it was interrupted. Raises only what *progress* raises."""
        blocks = len(self._positions)
        with _all_kept():
            for block in range(len(self._checkpoints), blocks):
                if block % _TOLD == 0:
                    progress("finding calls (parts)", block, blocks)
                try:
                    self._look_at(block, last=block == blocks - 1)
                except BaseException:  # in the middle: out of memory
                    self._forget()
                    raise

    def _forget(self) -> None:
        """Nothing was looked at yet."""
        self.tallies.clear()
        self._checkpoints.clear()
        self._counted.clear()
        self.lowest, self._begins, self._lows, self._state = array("q"), array("Q", [0]), [0], self._first

    def _look_at(self, block: int, *, last: bool) -> None:
        taken = self._taken(block, self._state)
        self._checkpoints.append((self._state, len(self._lows) - 1))
        self._state = taken[-1].state
        self._begins.append(self._begins[-1] + sum(map(_BEGINS, taken)))
        self._note_lows(taken)
        self._counted.update(taken)
        if block % _SPAN == _SPAN - 1 or last:
            self.tallies.append(Tally(tuple(self._counted), array("I", self._counted.values())))
            self._counted.clear()

    def _note_lows(self, taken: list[Step]) -> None:
        low = min(map(_LOW, taken))
        self.lowest.append(low)
        if low != NEVER:
            self._lows[-1] = min(low, self._lows[-1])
            return
        for step in taken:
            self._lows[-1] = min(step.lows[0], self._lows[-1])
            self._lows += step.lows[1:]

    def _from(self, number: int) -> Iterator[Function]:
        """All from *number* on; their ends are not known yet."""
        while number <= len(self):
            block = bisect_right(self._begins, number - 1) - 1
            for function in self._in_block(block, number - 1 - self._begins[block]):
                yield function._replace(number=number)
                number += 1

    def _in_block(self, block: int, skip: int) -> Iterator[Function]:
        state, stretch = self._checkpoints[block]
        position = self._positions[block]
        for step in self._taken(block, state):
            unit = step.unit
            if skip >= unit.begins:
                skip -= unit.begins
            else:
                yield from self._in_unit(unit, state, stretch, position, skip)
                skip = 0
            stretch += len(step.lows) - 1
            position += len(unit.part)
            state = step.state

    def _in_unit(self, unit: Unit, state: State, stretch: int, position: int, skip: int) -> Iterator[Function]:
        calls = Calls(self.frames, state.stack, state.level)
        edge = unit.edge
        calls.do(edge.operations)
        if edge is not PLAIN and edge.begins:
            if not skip:
                yield self._function(calls, stretch, position, unit.summaries.of(unit.part).first)
            skip = max(skip - 1, 0)
        for begin in unit.summaries.begins(unit.part, calls, skip):
            yield self._function(calls, stretch, position + begin.offset, begin.to)

    def _function(self, calls: Calls, stretch: int, position: int, pc: int) -> Function:
        level = 0 if pc == GAP else calls.level - self._lows[stretch + len(calls.lows) - 1]
        return Function(0, position, position, pc, level, calls.kind)


@contextmanager
def _all_kept() -> Iterator[None]:
    """What is made is kept: looking for garbage would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
