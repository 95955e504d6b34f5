"""The calls under way at any position of a history, innermost first, and where each was made: for backtraces.

A call that is under way at some level was made where that level was reached last. For each block of entries the lowest
level is known, so that only the block in which the call was made is gone through.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import UNKNOWN, Kind
from rvtrace_gdb.decode.calls.index import CallHistory
from rvtrace_gdb.decode.calls.inside import HIGHEST, At, Inside, done, inside_of
from rvtrace_gdb.decode.calls.stack import Calls, Frame, Frames
from rvtrace_gdb.decode.calls.states import Step
from rvtrace_gdb.decode.history import GAP, History

_BLOCKS = 8  # that are kept
_SPAN = 64  # blocks whose lowest level is known together


class CallFrame(NamedTuple):
    """A function under way.

    pc        where it is, or where it will go on
    function  where it starts, UNKNOWN without a symbol
    level     stays the same from its call to its return, and is that of its caller + 1; a function that a tail call led
              to has that of the one it took the place of. Only differences count; they are not known across gaps
    call      the position of the instruction behind which it was left: a call, or the last one before a trap
    kind      CALL or TRAP: how it was left; BEGIN for the function that runs
    """

    pc: int
    function: int
    level: int
    call: int | None
    kind: Kind


class _Block:
    """The steps of a block of entries, which begin at positions *begins*."""

    def __init__(self, frames: Frames, begin: int, taken: list[Step]) -> None:
        self.taken = taken
        self.begins = list(accumulate((step.unit.part.count for step in taken), initial=begin))
        self._frames = frames
        self._opened: dict[int, tuple[int, Inside]] = {}

    def number(self, position: int) -> int:
        """Of the step to the entry with a position, or that ends there."""
        return min(bisect_right(self.begins, position), len(self.taken)) - 1

    def step(self, position: int) -> Step:
        """That to the entry that has a position, or that ends there."""
        return self.taken[self.number(position)]

    def at(self, position: int) -> At:
        """What is under way before the instruction at *position* runs."""
        number = self.number(position)
        if position == self.begins[-1]:
            state = self.taken[number].state
            return At(state.stack, state.level)
        return self._inside(number)[1].at(position - self.begins[number])

    def called(self, level: int, position: int) -> int | None:
        """As `Inside.called`, of positions. None: before the block."""
        last = self.number(position)
        for number in range(last, -1, -1):
            if number < last and self.taken[number].low > level:
                continue
            low, inside = self._inside(number)
            begin = self.begins[number]
            found = inside.called(level, min(position - begin, inside.count - 1))
            if found is not None:
                return begin + found
            if low <= level:
                return begin - 1
        return None

    def _inside(self, number: int) -> tuple[int, Inside]:
        """The entry at the end of a step, and the lowest level on the way into it."""
        found = self._opened.get(number)
        if found is None:
            origin, unit = self.taken[number].origin, self.taken[number].unit
            calls = Calls(self._frames, origin.stack, origin.level)
            low = done(calls, unit.edge.operations) if unit.edge.operations else HIGHEST
            summary = unit.summaries.of(unit.part)
            inside = inside_of(self._frames, unit.summaries, summary, At(calls.stack, calls.level))
            found = self._opened[number] = low, inside
        return found


class CallFrames:
    """The calls under way in *history*, of which *calls* are the functions that ran."""

    def __init__(self, history: History, calls: CallHistory) -> None:
        self._history, self._calls = history, calls
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        lowest = calls.lowest
        self._lowest = [min(lowest[begin : begin + _SPAN]) for begin in range(0, len(lowest), _SPAN)]

    def frames(self, position: int, first: int = 0, pc: int | None = None) -> Iterator[CallFrame]:
        """Those before the instruction at *position* runs, innermost first, but for the *first* ones. None at a gap.

        At the end of the history all has run, and *pc* is where the program is then; without it the pc of the first
        frame is UNKNOWN, and what the last instruction did to the stack is left out. The frames end where the history
        does not tell who called, or where it goes on. Raises IndexError.
        """
        at_end = position == len(self._history)
        here = (UNKNOWN if pc is None else pc) if at_end else self._history.pc(position)
        if not len(self._history) or (here == GAP and not at_end):
            return
        block = self._block(self._calls.block_at(position))
        edges = block.step(position).unit.summaries.edges
        calls, low = Calls(self._calls.frames, *block.at(position)), HIGHEST
        if at_end and pc is not None:
            low = done(calls, edges.step(self._history.pc(position - 1), pc).operations)
        if not first:
            rank = calls.level if calls.stack is None else calls.stack.rank
            yield CallFrame(here, edges.functions.of(here), rank, None, Kind.BEGIN)
        for number, frame in enumerate(_waiting(calls.stack), 1):
            if number >= first:
                call = position - 1 if low <= frame.level else self._called(frame.level, position)
                yield CallFrame(frame.back, frame.function, frame.rank - 1, call, frame.kind)
                if low > frame.level and call is not None:  # older calls were made there, or before
                    position = call + 1

    def _called(self, level: int, position: int) -> int | None:
        """Where the call was made that is under way at a position, by what was at some level."""
        number = self._calls.block_at(position)
        found = self._block(number).called(level, position)
        while found is None and (number := self._lower(number, level)) >= 0:
            block = self._block(number)
            found = block.called(level, block.begins[-1])
        return found

    def _lower(self, block: int, level: int) -> int:
        """The last block before one in which a level was reached, -1: there is none."""
        number = block - 1
        while number >= 0:
            if number % _SPAN == _SPAN - 1 and self._lowest[number // _SPAN] > level:
                number -= _SPAN
            elif self._calls.lowest[number] > level:
                number -= 1
            else:
                break
        return number

    def _block(self, number: int) -> _Block:
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = _Block(self._calls.frames, *self._calls.taken_in(number))
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return block


def _waiting(frame: Frame | None) -> Iterator[Frame]:
    """The calls that something waits for, down to the first of which it is not known where it will go on."""
    while frame is not None:
        if frame.kind is not Kind.TAIL:
            if frame.back == UNKNOWN:
                return
            yield frame
        frame = frame.below
