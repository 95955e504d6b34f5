"""The functions that ran, numbered, each with its level.

They are found without visiting every instruction. A history shares the pieces it consists of, so each piece is analyzed
once, and so is its effect on a call stack (`decode.calls.states`). What remains is one look-up for each entry. The
different steps taken are stored for each span of entries, so a search of the whole history need not go through the
entries again (`decode/search.py`).
"""

import gc
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from operator import itemgetter
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.decode.calls.edges import PLAIN
from rvtrace_gdb.decode.calls.interrupted import with_places
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.calls.stacks.kept_stacks import KeptStacks
from rvtrace_gdb.decode.calls.stacks.owners import OwnerTurns
from rvtrace_gdb.decode.calls.stacks.stack import CallStacks
from rvtrace_gdb.decode.calls.stacks.stretches import Stretches
from rvtrace_gdb.decode.calls.states import (
    NEVER,
    CallState,
    CallStateKey,
    CallStep,
    HistoryEntries,
    PieceBegin,
    States,
    Tally,
    Unit,
    traps_of,
)
from rvtrace_gdb.decode.history.history import GAP, Event, History, PathPart, RepeatPath
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.support.errors import LongWork, Progress, silent

if TYPE_CHECKING:
    from rvtrace_gdb.decode.counting import NumberedParts

_BLOCK = 1024  # entries between stacks that are kept
_SPAN = 64  # blocks that are counted together
_PROGRESS_INTERVAL = 1 << 3  # blocks between two calls of the progress
_STRETCH = itemgetter(1)


class FunctionRun(NamedTuple):
    """A function that ran at positions *begin* to *end* - 1: until it called, returned, or was interrupted.

    *pc* is its first instruction there, GAP for a gap. *level* is the number of its callers on its stack, as far as
    they are visible. *kind* is how it came to run.
    """

    number: int
    begin: int
    end: int
    pc: int
    level: int
    kind: StackOperationKind


class CallHistory:
    """The functions that ran in *history*, numbered from 1. If *progress* is None, call `go_on` to find them.

    *tallies*: of all spans, which are some tens of thousands of entries each; *different_steps*: the steps by number.
    *lowest*: the lowest level in each block of entries, NEVER if more than one stack ran in it. *frames*: the frames of
    all calls. *stretches*: which stack ran when. *mismatched*: the steps with a return that does not go where its call
    came from.
    """

    def __init__(
        self,
        history: History,
        program: Program,
        progress: Progress | None = silent,
        *,
        begin: PieceBegin | None = None,
        traps: dict[int, list[Event]] | None = None,
        turns: OwnerTurns = (),
    ) -> None:
        """*begin*, *traps*: of a piece of a history (`decode.calls.pieces.numbered`): where it begins, and its traps
        with their places. *turns*: of the owners of call stacks, where they are known.
        """
        self.history = history
        begins = (position for position, _ in turns)
        self._traps = with_places(history, program, traps_of(history), begins) if traps is None else traps
        self._entries = HistoryEntries(history, program, self._traps, turns)
        states = self._states = States(self._entries.images)
        self.frames = states.frames
        self.mismatched, self.different_steps = states.mismatched, states.steps
        self.tallies: list[Tally] = []
        self.lowest = array("q")
        self._checkpoints: list[tuple[CallState, int]] = []
        self._begins = array("Q", [0])  # how many functions begin before each block
        self.stretches = Stretches()
        self._first = self._state = states.first if begin is None else states.begin(begin)
        from rvtrace_gdb.decode.calls.walks import walk_of  # only where there is a history

        self._walk = walk_of(states, _kernel())
        self._numbered: NumberedParts | None = None
        self._positions = array("Q", map(history.position_of, range(0, len(self._entries), _BLOCK)))
        if progress is not None:
            self.go_on(progress)

    def __len__(self) -> int:
        return self._begins[-1]

    def stacks_at(self, entry: int) -> KeptStacks:
        """Return the call stacks before the entry with a number."""
        block = entry // _BLOCK
        state = self._checkpoints[block][0] if block < len(self._checkpoints) else self._state
        if entry % _BLOCK:
            state = self._walk.steps(state, self._entries.between(block * _BLOCK, entry))[-1].state
        return KeptStacks.of_stacks(state.stack, state.level, state.waiting)

    @property
    def images(self) -> Sequence[Image]:
        """The programs that ran, by the numbers that states have (`CallState.program`)."""
        return self._entries.images

    def image_at(self, position: int) -> Image:
        """Return the program that runs at a position."""
        return self._entries.image_at(position)

    def program_at(self, position: int) -> int:
        """Return the number in `images` of the program that runs at a position."""
        return self._entries.program_at(position)

    def trap_at(self, position: int) -> str:
        """Return the text that the trace gives for the trap before *position*."""
        traps = self._traps.get(position)
        return traps[-1].text if traps else ""

    def traps_at(self, position: int) -> list[Event]:
        """Return the traps before *position*, each in the handler of the one before."""
        return self._traps.get(position, [])

    def functions(self, begin: int, end: int) -> Iterator[FunctionRun]:
        """Yield the functions numbered *begin* to *end* - 1."""
        begin, end = max(begin, 1), min(end, len(self) + 1)
        if begin >= end:
            return
        found = islice(self._from(begin), end - begin + 1)
        last: FunctionRun | None = None
        for function in found:
            if last is not None:
                yield last._replace(end=function.begin)
            last = function
        if last is not None and last.number < end:
            yield last._replace(end=len(self.history))

    def functions_before(self, position: int) -> int:
        """Return how many functions begin before a position."""
        block = self.block_at(position)
        if block < 0 or block >= len(self._begins) - 1:
            return len(self)
        return self._begins[block] + sum(1 for it in self._in_block(block, 0) if it.begin < position)

    def functions_in(self, block: int) -> list[FunctionRun]:
        """Return the functions that begin in a block of entries, without their numbers and ends."""
        return list(self._in_block(block, 0))

    def steps(self, progress: Progress = silent) -> Counter[CallStep]:
        """Return how often each step was taken. Raises what *progress* raises."""
        return LongWork(self.step_pieces).result(progress)

    def step_pieces(self) -> Generator[tuple[str, int, int | None], None, Counter[CallStep]]:
        """Return the same as `steps`, after work in pieces."""
        taken: Counter[CallStep] = Counter()
        for number, tally in enumerate(self.tallies):
            yield "adding up (parts)", number, len(self.tallies)
            for step, times in zip(tally.steps, tally.times, strict=True):
                taken[self.different_steps[step]] += times
        return taken

    def steps_between(self, positions: range, progress: Progress = silent) -> Counter[CallStep]:
        """Return how often each step was taken at some consecutive positions. Entries of which only a part is there are
        cut (`piece`). Raises what *progress* raises.
        """
        taken: Counter[CallStep] = Counter()
        last = self.block_at(positions.stop - 1) if len(positions) else -1
        for block in range(self.block_at(positions.start), last + 1):
            progress("adding up (parts)", block, last + 1)
            begin, steps = self.taken_in(block)
            end = self._positions[block + 1] if block < len(self._positions) - 1 else len(self.history)
            if positions.start <= begin and end <= positions.stop:
                taken.update(steps)
                continue
            for step in steps:
                count = step.unit.part.count
                first, stop = max(positions.start - begin, 0), min(positions.stop - begin, count)
                if first < stop:
                    taken[self.piece(step, first, stop)] += 1
                begin += count
        return taken

    def numbered_parts(self, progress: Progress = silent) -> "NumberedParts | None":
        """Return the parts of what the steps lead to, for the kernel; None without it. Raises what *progress*
        raises.
        """
        module = _kernel()
        if module is None:
            return None
        from rvtrace_gdb.decode.counting import NumberedParts  # only where something is counted

        if self._numbered is None:
            self._numbered = NumberedParts(module, self.different_steps)
        self._numbered.follow(progress)
        return self._numbered

    def block_at(self, position: int) -> int:
        """Return the block of entries that contains a position, which may be the end of the history; -1 if that is
        empty.
        """
        return bisect_right(self._positions, position) - 1

    def begin_of(self, block: int) -> int:
        """Return the position at which a block of entries begins; the end of the history for the one after the last."""
        return self._positions[block] if block < len(self._positions) else len(self.history)

    def taken_in(self, block: int) -> tuple[int, list[CallStep]]:
        """Return the position at which a block of entries begins, and the steps taken in it."""
        return self._positions[block], self._block_steps(block, self._checkpoints[block][0])

    def piece(self, step: CallStep, begin: int, end: int) -> CallStep:
        """Return the step to instructions *begin* to *end* - 1 of what a step leads to, in the calls that are under way
        there.
        """
        return self._states.piece(step, begin, end)

    def stretch_at(self, block: int) -> int:
        """Return the stretch in which a block of entries begins."""
        return self._checkpoints[block][1]

    def block_of(self, stretch: int) -> int:
        """Return the last block of entries in which a stretch runs."""
        return bisect_right(self._checkpoints, stretch, key=_STRETCH) - 1

    def span_at(self, position: int) -> int:
        """Return the span that contains a position."""
        return self.block_at(position) // _SPAN

    def taken_in_span(self, span: int) -> tuple[int, list[CallStep]]:
        """Return the position at which a span begins, and the steps taken in it."""
        blocks = range(span * _SPAN, min((span + 1) * _SPAN, len(self._checkpoints)))
        steps = chain.from_iterable(self._block_steps(block, self._checkpoints[block][0]) for block in blocks)
        return self._positions[blocks.start], list(steps)

    def _block_steps(self, block: int, state: CallState) -> list[CallStep]:
        return self._walk.steps(state, self._entries.between(block * _BLOCK, (block + 1) * _BLOCK))

    def go_on(self, progress: Progress = silent) -> None:
        """Process all entries, from where it was interrupted. Raises only what *progress* raises."""
        blocks = len(self._positions)
        with _all_kept():
            for block in range(len(self._checkpoints), blocks):
                if block % _PROGRESS_INTERVAL == 0:
                    progress("finding calls (parts)", block, blocks)
                try:
                    self._look_at(block, last=block == blocks - 1)
                except BaseException:  # in the middle: out of memory
                    self._forget_entries()
                    raise

    def _forget_entries(self) -> None:
        """Start again, with no entry processed."""
        self.tallies.clear()
        self._checkpoints.clear()
        self._walk.tally()
        self.lowest, self._begins, self.stretches, self._state = array("q"), array("Q", [0]), Stretches(), self._first

    def _look_at(self, block: int, *, last: bool) -> None:
        keys = self._entries.between(block * _BLOCK, (block + 1) * _BLOCK)
        state, begins, low = self._walk.count(self._state, keys)
        stretch = self.stretches.last
        self._note_lows(low, keys)
        self._checkpoints.append((self._state, stretch))
        self._state = state
        self._begins.append(self._begins[-1] + begins)
        if block % _SPAN == _SPAN - 1 or last:
            self.tallies.append(self._walk.tally())

    def _note_lows(self, low: int, keys: list[CallStateKey]) -> None:
        self.lowest.append(low)
        if low != NEVER:
            self.stretches.note(low)
            return
        for step in self._walk.steps(self._state, keys):
            self.stretches.note(step.lows[0])
            if step.names is not None:
                self.stretches.go_on(step.lows, step.names)

    def _from(self, number: int) -> Iterator[FunctionRun]:
        """Yield all functions from *number* on; their ends are not known yet."""
        while number <= len(self):
            block = bisect_right(self._begins, number - 1) - 1
            for function in self._in_block(block, number - 1 - self._begins[block]):
                yield function._replace(number=number)
                number += 1

    def _in_block(self, block: int, skip: int) -> Iterator[FunctionRun]:
        state, stretch = self._checkpoints[block]
        position = self._positions[block]
        for step in self._block_steps(block, state):
            unit = step.unit
            if skip >= unit.begins:
                skip -= unit.begins
            else:
                yield from self._in_unit(unit, state, stretch, position, skip)
                skip = 0
            stretch += len(step.lows) - 1
            position += len(unit.part)
            state = step.state

    def _in_unit(self, unit: Unit, state: CallState, stretch: int, position: int, skip: int) -> Iterator[FunctionRun]:
        calls = state.calls(self.frames)
        edge = unit.edge
        calls.do(edge.operations)
        if edge is not PLAIN and edge.begins:
            if not skip:
                yield self._function_run(calls, stretch, position, unit.summaries.summary_of(unit.part).first)
            skip = max(skip - 1, 0)
        for begin in unit.summaries.begins(unit.part, calls, skip):
            yield self._function_run(calls, stretch, position + begin.offset, begin.to)

    def _function_run(self, calls: CallStacks, stretch: int, position: int, pc: int) -> FunctionRun:
        level = 0 if pc == GAP else self.stretches.depth(stretch + len(calls.lows) - 1, calls.level)
        return FunctionRun(0, position, position, pc, level, calls.kind)


def _kernel() -> ModuleType | None:
    from rvtrace_gdb.decode.kernel.loading import kernel  # only where there is a history

    return kernel()


@contextmanager
def _all_kept() -> Iterator[None]:
    """Suspend the garbage collector: everything created is kept, and the search for garbage would take a third of the
    time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()




def addresses(history: History, begin: int, end: int) -> set[int]:
    """Return the addresses at positions *begin* to *end* - 1. Parts that occur several times are visited once."""
    found: set[int] = set()
    seen: set[int] = set()
    for part, first, last in history.pieces(begin, end):
        _add_addresses(part, first, last, found, seen)
    found.discard(GAP)
    return found


def _add_addresses(part: PathPart, first: int, last: int, addresses: set[int], seen: set[int]) -> None:
    """Add the addresses of instructions *first* to *last* - 1 of a part."""
    whole = first == 0 and last == len(part)
    if whole:
        if id(part) in seen:
            return
        seen.add(id(part))
    if isinstance(part, tuple):
        addresses.update(part[first:last])
    elif isinstance(part, RepeatPath):
        _add_rounds(part, first, last, addresses, seen)
    else:
        position = 0
        for inner in part.parts:
            begin, end = max(first - position, 0), min(last - position, len(inner))
            if begin < end:
                _add_addresses(inner, begin, end, addresses, seen)
            position += len(inner)


def _add_rounds(part: RepeatPath, first: int, last: int, addresses: set[int], seen: set[int]) -> None:
    unit = part.path.count
    if last - first >= unit:
        _add_addresses(part.path, 0, unit, addresses, seen)
        return
    begin, end = first % unit, first % unit + last - first
    _add_addresses(part.path, begin, min(end, unit), addresses, seen)
    if end > unit:
        _add_addresses(part.path, 0, end - unit, addresses, seen)
