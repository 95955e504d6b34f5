"""The calls active at any position of a history, innermost first, and where each was made: for backtraces.

A call that is active at some level was made where that level was last reached on its stack. The lowest levels of the
stretches in which a stack ran are known, and so is that in each block of entries, so only the block in which the call
was made is searched, and in it what is `decode.calls.pieces.frames`.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.edges import StackOperation
from rvtrace_gdb.decode.calls.pieces.frames import (
    HIGHEST,
    PartFrames,
    StackLevel,
    apply_operations,
    lowest_in,
    part_frames,
)
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, Frame, Frames, StackOperationKind
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.history.history import GAP, History

_BLOCKS = 8  # that are kept
_SPAN = 64  # blocks whose lowest level is known together


class CallFrame(NamedTuple):
    """The frame of an active function.

    pc        where it is, or where it will resume
    function  its start address, UNKNOWN without a symbol
    level     the same from its call to its return: that of its caller + 1, or, after a tail call, that of the function
              it replaced. Only differences are meaningful, and only on one stack
    call      the position of the instruction after which it was left: a call, or the last one before a trap
    kind      CALL or TRAP: how it was left; BEGIN for the function that runs
    stack     the number of its stack. One that the history has lost sight of gets a new number
    """

    pc: int
    function: int
    level: int
    call: int | None
    kind: StackOperationKind
    stack: int = 0


class _CallPlace(NamedTuple):
    """A place where a call was made, and the stretch that runs there."""

    position: int
    stretch: int


class _FrameSegment(NamedTuple):
    """Frames of one stack from *top* on. Levels are *raised* by so many, and so are those without tail calls."""

    top: Frame | None
    stack: int
    stretch: int
    raised: int
    rank_raised: int


class _EntryBlock:
    """The steps of a block of entries, which begin at positions *begins*, the first one in a stretch."""

    def __init__(self, frames: Frames, stretch: int, begin: int, taken: list[CallStep]) -> None:
        self.taken = taken
        self.stretch = stretch
        self.begins = list(accumulate((step.unit.part.count for step in taken), initial=begin))
        self._stretches = list(accumulate((len(step.lows) - 1 for step in taken), initial=stretch))
        self._frames = frames
        self._opened: dict[int, tuple[list[int], PartFrames]] = {}

    def number(self, position: int) -> int:
        """Return the number of the step to the entry that contains a position, or that ends there."""
        return min(bisect_right(self.begins, position), len(self.taken)) - 1

    def step(self, position: int) -> CallStep:
        """Return the step to the entry that contains a position, or that ends there."""
        return self.taken[self.number(position)]

    def stacks_at(self, position: int) -> StackLevel:
        """Return the call stacks before the instruction at *position* runs."""
        number = self.number(position)
        if position == self.begins[-1]:
            state = self.taken[number].state
            return StackLevel(state.stack, state.level, state.waiting, self._stretches[-1], state.owners)
        return self._inside(number)[1].stacks_at(position - self.begins[number])

    def called(self, level: int, stretch: int, position: int) -> int | None:
        """Return the same as `PartFrames.called`, for positions. None: before the block."""
        last = self.number(position)
        for number in range(last, -1, -1):
            step = self.taken[number]
            if step.low > level and number < last:  # most
                continue
            before = self._stretches[number]
            if number < last and lowest_in(step.lows, stretch - before) > level:
                continue
            lows, inside = self._inside(number)
            begin = self.begins[number]
            found = inside.called(level, stretch, min(position - begin, inside.count - 1))
            if found is not None:
                return begin + found
            if lowest_in(lows, stretch - before) <= level:
                return begin - 1
        return None

    def _inside(self, number: int) -> tuple[list[int], PartFrames]:
        """Return the lowest levels on the way into the entry at the end of a step, and the entry."""
        found = self._opened.get(number)
        if found is None:
            origin, unit = self.taken[number].origin, self.taken[number].unit
            calls, stretch = origin.calls(self._frames), self._stretches[number]
            lows = apply_operations(calls, unit.edge.operations) if unit.edge.operations else []
            last = stretch + max(len(lows) - 1, 0)
            at = StackLevel(calls.stack, calls.level, calls.waiting, last, calls.owners)
            inside = part_frames(self._frames, unit.summaries, unit.summaries.summary_of(unit.part), at)
            found = self._opened[number] = lows, inside
        return found


class CallFrames:
    """The active calls in *history*, whose functions are *calls*."""

    def __init__(self, history: History, calls: CallHistory) -> None:
        self._history, self._calls = history, calls
        self._blocks: OrderedDict[int, _EntryBlock] = OrderedDict()
        lowest = calls.lowest
        self._lowest = [min(lowest[begin : begin + _SPAN]) for begin in range(0, len(lowest), _SPAN)]

    def frames(self, position: int, first: int = 0, pc: int | None = None) -> Iterator[CallFrame]:
        """Yield the frames before the instruction at *position* runs, innermost first, without the *first* ones. A gap
        has none.

        At the end of the history everything has run, and *pc* is where the program is then; without it the pc of the
        first frame is UNKNOWN, and the effect of the last instruction on the stack is left out. The frames end where
        the history does not show the caller, or the return address. Raises IndexError.
        """
        at_end = position == len(self._history)
        here = (UNKNOWN if pc is None else pc) if at_end else self._history.pc(position)
        if not len(self._history) or (here == GAP and not at_end):
            return
        block = self._entry_block(self._calls.block_at(position))
        edges = block.step(position).unit.summaries.edges
        at, low = block.stacks_at(position), HIGHEST
        if at_end and pc is not None:
            at, low = self._behind(at, edges.step(self._history.pc(position - 1), pc).operations)
        segments = self._segments(at)
        stack, stretch = segments[-1].stack, at.stretch if at.stretch >= 0 else segments[0].stretch
        if not first:
            level = _rank(at.stack, at.level) + segments[0].rank_raised
            yield CallFrame(here, edges.functions.start_of(here), level, None, StackOperationKind.BEGIN, stack)
        waiting = ((segment, frame) for segment in segments for frame in _waiting(segment.top))
        for number, (segment, frame) in enumerate(waiting, 1):
            if number < first:
                continue
            found = None
            if low <= frame.level:
                call: int | None = position - 1
            else:
                low = HIGHEST
                found = self._called(frame.level + segment.raised, stretch, position)
                call = None if found is None else found.position
            if found is not None:  # older calls were made there, or before
                position, stretch = found.position + 1, found.stretch
            level = frame.rank - 1 + segment.rank_raised
            yield CallFrame(frame.back, frame.function, level, call, frame.kind, stack)

    def top(self, position: int) -> Frame | None:
        """Return the innermost of the calls that are active before the instruction at a position runs: the same object
        wherever the same calls are. Jumps to other functions (`StackOperationKind.TAIL`) are among them. Raises
        IndexError.
        """
        return self._entry_block(self._calls.block_at(position)).stacks_at(position).stack

    def _behind(self, at: StackLevel, operations: tuple[StackOperation, ...]) -> "tuple[StackLevel, int]":
        """Return the call stacks after operations at the end of the history, and the lowest level on the way."""
        calls, stretch = at.calls(self._calls.frames), at.stretch
        lows = apply_operations(calls, operations)
        if len(lows) > 1:
            stretch = -1 - calls.names.now[0]
        return StackLevel(calls.stack, calls.level, calls.waiting, stretch), lows[-1]

    def _segments(self, at: StackLevel) -> "list[_FrameSegment]":
        """Return the parts of a stack: one, or more where it was known only later which stack went on."""
        stretches, top = self._calls.stretches, at.stack
        stack = stretches.stacks[at.stretch] if at.stretch >= 0 else stretches.named(-1 - at.stretch)
        found = [_FrameSegment(top, stack, stretches.newest_of(stack) if at.stretch < 0 else at.stretch, 0, 0)]
        while (told := stretches.told.get(stack)) is not None:
            doubt = None if top is None else top.doubt
            choice = None if doubt is None else next((it for it in doubt.choices if it.waited is told.waited), None)
            if doubt is None or choice is None:
                break
            higher = _rank(choice.stack, choice.level) - doubt.rank
            found = [it._replace(raised=it.raised + told.raised, rank_raised=it.rank_raised + higher) for it in found]
            stack, top = told.stack, choice.stack
            found.append(_FrameSegment(top, stack, 0, 0, 0))
        return found

    def _called(self, level: int, stretch: int, position: int) -> _CallPlace | None:
        """Return where the function at some level made the call that is active in a stretch, or at a position in it."""
        stretches = self._calls.stretches
        while stretch >= 0:
            low = level - stretches.raised(stretch)
            if stretches.lows[stretch] <= low:
                found = self._called_in(low, stretch, position)
                if found is not None:
                    return _CallPlace(found, stretch)
            stretch = stretches.previous[stretch]
        return None

    def _called_in(self, level: int, stretch: int, position: int) -> int | None:
        number = min(self._calls.block_at(position), self._calls.block_of(stretch))
        block = self._entry_block(number)
        found = block.called(level, stretch, min(position, block.begins[-1]))
        while found is None and block.stretch == stretch and (number := self._lower(number, level)) >= 0:
            block = self._entry_block(number)
            found = block.called(level, stretch, block.begins[-1])
        return found

    def _lower(self, block: int, level: int) -> int:
        """Return the last block before one in which a level was reached, -1 if there is none."""
        number = block - 1
        while number >= 0:
            if number % _SPAN == _SPAN - 1 and self._lowest[number // _SPAN] > level:
                number -= _SPAN
            elif self._calls.lowest[number] > level:
                number -= 1
            else:
                break
        return number

    def _entry_block(self, number: int) -> _EntryBlock:
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = _EntryBlock(
                self._calls.frames, self._calls.stretch_at(number), *self._calls.taken_in(number)
            )
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return block


def _waiting(frame: Frame | None) -> Iterator[Frame]:
    """Yield the calls that have not returned, down to the first one whose return address is unknown."""
    while frame is not None:
        if frame.kind is not StackOperationKind.TAIL:
            if frame.back == UNKNOWN or frame.kind is StackOperationKind.DOUBT:
                return
            yield frame
        frame = frame.below


def _rank(top: Frame | None, level: int) -> int:
    """Return the level of the function that runs, if tail calls replaced their callers."""
    return level if top is None else top.rank
