"""The functions that ran, numbered, each with its level: found without going through the instructions.

A history shares the pieces it is made of, so each is looked at once (`summaries`). What it does to the call stack is
remembered with the stack, too: going through a whole history is then one look-up for each entry.
"""

import gc
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate, islice
from operator import attrgetter, getitem
from typing import NamedTuple

from decode.calls.edges import PLAIN, Edge, Edges, Kind, Operation
from decode.calls.entries import Entry, entries_of, traps_of
from decode.calls.stack import Calls, Frame, Frames
from decode.calls.summaries import Summaries
from decode.history import GAP, History
from decode.streams import Program
from support.progress import Progress, silent

_BLOCK = 256  # entries between stacks that are kept
_TOLD = 1 << 6  # blocks from one word about progress to the next
_STATES_AT_MOST = 1 << 18
_COUNT, _BEGINS, _LOW = attrgetter("count"), attrgetter("begins"), attrgetter("low")
NOTHING = -2
"""Before the first instruction there is none."""
NEVER = -1 << 62
"""A level below all others."""
_BEGIN = Edge(True, (Operation(Kind.BEGIN),))


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


Key = int | tuple[int, int, int, tuple[tuple[int | None, int | None], ...]]
"""What runs next: the id of an entry; with the programs it and the entry before it are in, and the traps before it."""


class Unit:
    """An entry and the step into it. *begins*: how many functions begin in it."""

    __slots__ = ("begins", "edge", "operations", "part", "summaries")

    def __init__(self, part: Entry, edge: Edge, summaries: Summaries) -> None:
        self.part, self.edge, self.summaries = part, edge, summaries
        summary = summaries.of(part)
        self.begins = edge.begins + summary.begins
        self.operations = edge.operations + summary.operations


class State(dict[Key, "Step"]):
    """A call stack between two entries, the *last* instruction before, and the steps taken from there by *take*."""

    __slots__ = ("_take", "last", "level", "stack")

    def __init__(self, stack: Frame | None, level: int, last: int, take: "Callable[[State, Key], Step]") -> None:
        super().__init__()
        self.stack, self.level, self.last, self._take = stack, level, last, take

    def __missing__(self, key: Key) -> "Step":
        step = self[key] = self._take(self, key)
        return step


class Step(dict[Key, "Step"]):
    """What comes of a unit in a state, and the steps that were taken after this one. Compared by identity.

    lows  as in `Calls`; *known*: the stack always was. *low*: the lowest level, NEVER if the stack was not known then
    """

    __slots__ = ("begins", "known", "low", "lows", "origin", "state", "unit")
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__

    def __init__(self, origin: State, unit: Unit, state: State, lows: list[int]) -> None:
        super().__init__()
        self.origin, self.unit, self.state, self.lows = origin, unit, state, lows
        self.known = len(lows) == 1
        self.low = lows[0] if self.known else NEVER
        self.begins = unit.begins

    def __missing__(self, key: Key) -> "Step":
        step = self[key] = self.state[key]
        return step


class CallHistory:
    """The functions that ran in *history*, numbered from 1."""

    def __init__(self, history: History, program: Program, progress: Progress = silent) -> None:
        self._history = history
        self._traps = traps_of(history)
        found = entries_of(history, program, self._traps)
        self._entries, self._stretches = found.all, found.stretches
        self._parts = dict(zip(map(id, self._entries), self._entries, strict=True))
        self._begun = [stretch.begin for stretch in self._stretches]
        self._traps_at = {
            i: tuple((trap.last_pc, trap.next_pc) for trap in chain) for i, chain in sorted(found.at.items())
        }
        self._marked = list(self._traps_at)
        self.frames = Frames()
        self._states: dict[tuple[int, int, int], State] = {}
        self._units: dict[tuple[int, Key], Unit] = {}
        self._summaries: dict[tuple[int, int], Summaries] = {}
        self._checkpoints: list[tuple[State, int]] = []
        self._begins = array("Q", [0])  # how many functions begin before each block
        self._positions = array("Q", [0])
        self._lows = [0]
        self.lowest = array("q")
        """The lowest level in each block of entries, NEVER where the stack was not known at some time."""
        with _all_kept():
            self._run(progress)

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
            yield last._replace(end=len(self._history))

    def steps(self) -> Counter[Step]:
        """How often each step was taken."""
        taken: Counter[Step] = Counter()
        for block in range(len(self._checkpoints)):
            taken.update(self._taken(block))
        return taken

    def block_at(self, position: int) -> int:
        """Which block of entries has a position, which may be the end of the history; -1 for an empty one."""
        return min(bisect_right(self._positions, position), len(self._checkpoints)) - 1

    def taken_in(self, block: int) -> tuple[int, list[Step]]:
        """Where a block of entries begins, and the steps that were taken in it."""
        return self._positions[block], self._taken(block)

    def _taken(self, block: int) -> list[Step]:
        return _walk(self._checkpoints[block][0], self._keys(block * _BLOCK))

    def _keys(self, begin: int) -> list[Key]:
        """Of a block of entries."""
        entries = self._entries[begin : begin + _BLOCK]
        keys: list[Key] = list(map(id, entries))
        end = begin + len(keys)
        if len(self._stretches) > 1:
            for i in range(begin, end):
                keys[i - begin] = self._key(i)
        for i in self._marked[bisect_left(self._marked, begin) : bisect_left(self._marked, end)]:
            keys[i - begin] = self._key(i)
        return keys

    def _key(self, i: int) -> Key:
        number = bisect_right(self._begun, i) - 1
        before = bisect_right(self._begun, i - 1) - 1 if i else number
        traps = self._traps_at.get(i, ())
        return (id(self._entries[i]), number, before, traps) if number or before or traps else id(self._entries[i])

    def _unit(self, last: int, key: Key) -> Unit:
        """What runs next, after an instruction, NOTHING for the first entry."""
        unit = self._units.get((last, key))
        if unit is None:
            part, number, before, traps = (key, 0, 0, ()) if isinstance(key, int) else key
            summaries, entry = self._of_program(number, number), self._parts[part]
            edges = summaries.edges if number == before else self._of_program(number, before).edges
            if last == NOTHING:
                edge = _BEGIN
            elif traps:
                edge = edges.trapped(last, traps)
            else:
                edge = edges.step(last, summaries.of(entry).first)
            unit = self._units[last, key] = Unit(entry, edge, summaries)
        return unit

    def _of_program(self, number: int, before: int) -> Summaries:
        """Of what runs in a stretch's program, after what ran in another's."""
        image, other = (self._stretches[n].image for n in (number, before))
        known = self._summaries.get((id(image), id(other)))
        if known is None:
            after = None if image is other else self._of_program(before, before).edges
            known = self._summaries[id(image), id(other)] = Summaries(Edges(image, after))
        return known

    def _run(self, progress: Progress) -> None:
        """Through all entries."""
        state = self._state(None, 0, NOTHING)
        for begin in range(0, len(self._entries), _BLOCK):
            if begin // _BLOCK % _TOLD == 0:
                progress("calls", self._positions[-1], len(self._history))
            self._checkpoints.append((state, len(self._lows) - 1))
            taken = _walk(state, self._keys(begin))
            state = taken[-1].state
            self._count(taken)
            self._begins.append(self._begins[-1] + sum(map(_BEGINS, taken)))
            self._positions.append(self._positions[-1] + sum(map(_COUNT, self._entries[begin : begin + _BLOCK])))

    def _count(self, taken: list[Step]) -> None:
        found: Iterable[Step] = set(taken)
        self.lowest.append(min(map(_LOW, found)))
        if self.lowest[-1] == NEVER:
            found = taken  # in order
        for step in found:
            if step.lows[0] < self._lows[-1]:
                self._lows[-1] = step.lows[0]
            self._lows += step.lows[1:]

    def _step(self, state: State, key: Key) -> Step:
        unit = self._unit(state.last, key)
        calls = Calls(self.frames, state.stack, state.level)
        calls.do(unit.operations)
        following = self._state(calls.stack, calls.level, unit.part.last)
        return Step(state, unit, following, calls.lows)

    def _state(self, stack: Frame | None, level: int, last: int) -> State:
        key = (id(stack), level, last)
        state = self._states.get(key)
        if state is None or state.stack is not stack:
            if len(self._states) >= _STATES_AT_MOST:
                self._states.clear()
            state = self._states[key] = State(stack, level, last, self._step)
        return state

    def _from(self, number: int) -> Iterator[Function]:
        """All from *number* on; their ends are not known yet."""
        while number <= len(self):
            block = bisect_right(self._begins, number - 1) - 1
            for function in self._in_block(block, number - 1 - self._begins[block]):
                yield function._replace(number=number)
                number += 1

    def _in_block(self, block: int, skip: int) -> Iterator[Function]:
        state, stretch = self._checkpoints[block]
        position, begin = self._positions[block], block * _BLOCK
        for step in _walk(state, self._keys(begin)):
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


def _walk(state: State, keys: list[Key]) -> list[Step]:
    """The steps from a state on. The loop is that of `accumulate`: a step knows those after it as a state does."""
    first = state[keys[0]]
    return list(accumulate(keys[1:], getitem, initial=first))
