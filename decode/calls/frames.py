"""The calls active at any position of a history, innermost first, and where each was made: for backtraces.

A call that is active at some level was made where that level was last reached. The lowest level in each block of
entries is known, so only the block in which the call was made is searched.

Inside the shared pieces of a history, `PartFrames` finds the active calls, and the steps that made them. A piece is
opened when a query needs a position in it, and only where the call stack changes in it. Offsets count instructions from
the start of a piece; the state at an offset is that before the instruction there runs.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.stack import DEPTH_AT_MOST, UNKNOWN, Calls, Frame, Frames, Kind, Operation
from rvtrace_gdb.decode.calls.states import NEVER, Step, Summaries, Summary
from rvtrace_gdb.decode.history.history import GAP, History, Path, RepeatPath

HIGHEST = 1 << 62
"""A level above all others."""


class StackLevel(NamedTuple):
    """A call stack, and the level of the function that runs."""

    stack: Frame | None
    level: int


class _Piece(NamedTuple):
    """A piece of a part, from offset *begin* on.

    It has the lowest level in the step that leads there, the call stack after that step, and, if the stack changes in
    the piece, what is *inside*, and the lowest level there. A lowest level is NEVER if the stack was unknown at some
    time.
    """

    begin: int
    step_low: int
    at: StackLevel
    inside: "PartFrames | None"
    low: int


class PartFrames:
    """A part of the history that runs with this call stack. *count* is the number of its instructions."""

    def __init__(self, frames: Frames, summaries: Summaries, summary: Summary, at: StackLevel) -> None:
        self.count = len(summary.part)
        self._frames, self._summaries, self._summary, self._begin = frames, summaries, summary, at
        self._pieces: list[_Piece] = []
        self._begins: list[int] = []

    def at(self, offset: int) -> StackLevel:
        """Return the call stack before the instruction at *offset* runs."""
        piece = self._piece(offset)
        if piece.inside is None or offset == piece.begin:
            return piece.at
        return piece.inside.at(offset - piece.begin)

    def called(self, level: int, offset: int) -> int | None:
        """Return the offset of the instruction after which the function at *level* made a call that is still active at
        *offset*.

        Returns None if the call was made before the part, or by the step that leads into it.
        """
        for piece in self._back_from(offset):
            if piece.inside is not None and piece.begin < offset and piece.low <= level:
                found = piece.inside.called(level, min(offset - piece.begin, piece.inside.count - 1))
                if found is not None:
                    return piece.begin + found
            if piece.step_low <= level:
                return piece.begin - 1
        return None

    def _piece(self, offset: int) -> _Piece:
        """Return the piece that contains an offset."""
        if not self._pieces:
            self._open()
        return self._pieces[bisect_right(self._begins, offset) - 1]

    def _back_from(self, offset: int) -> Iterator[_Piece]:
        """Yield the pieces from the one with *offset* back to the first one."""
        if not self._pieces:
            self._open()
        for number in range(bisect_right(self._begins, offset) - 1, -1, -1):
            yield self._pieces[number]

    def _open(self) -> None:
        part = self._summary.part
        calls = Calls(self._frames, *self._begin)
        if isinstance(part, tuple):
            self._add(0, HIGHEST, calls, None)
            for offset, (pc, to) in enumerate(pairwise(part), 1):
                edge = self._summaries.edges.step(pc, to)
                if edge.operations:
                    self._add(offset, apply_operations(calls, edge.operations), calls, None)
        elif isinstance(part, Path):
            self._open_path(self._summaries.children(part), calls)
        self._begins = [piece.begin for piece in self._pieces]

    def _open_path(self, children: list[Summary], calls: Calls) -> None:
        before: Summary | None = None
        begin = 0
        for child in children:
            edge = None if before is None else self._summaries.between(before, child)
            low = apply_operations(calls, edge.operations) if edge is not None and edge.operations else HIGHEST
            if low < HIGHEST or child.begins or not self._pieces or self._pieces[-1].inside is not None:
                self._add(begin, low, calls, child)
            begin += len(child.part)
            before = child

    def _add(self, begin: int, step_low: int, calls: Calls, child: Summary | None) -> None:
        """Add a piece, and apply it to *calls*."""
        at = StackLevel(calls.stack, calls.level)
        if child is None or not child.begins:
            self._pieces.append(_Piece(begin, step_low, at, None, HIGHEST))
        else:
            inside = part_frames(self._frames, self._summaries, child, at)
            self._pieces.append(_Piece(begin, step_low, at, inside, apply_operations(calls, child.operations)))


class _RepeatFrames(PartFrames):
    """A repetition. Its pieces are the first rounds, up to the one after which all are the same."""

    def __init__(self, frames: Frames, summaries: Summaries, summary: Summary, at: StackLevel) -> None:
        super().__init__(frames, summaries, summary, at)
        assert isinstance(summary.part, RepeatPath)
        self._round = summaries.of(summary.part.path)
        self._again = summaries.between(self._round, self._round).operations
        self._unit = len(summary.part.path)
        self._calls = Calls(frames, *at)
        self._steady = False

    def _piece(self, offset: int) -> _Piece:
        return self._numbered(offset // self._unit)

    def _back_from(self, offset: int) -> Iterator[_Piece]:
        number = offset // self._unit
        yield self._numbered(number)
        if number:
            yield self._numbered(number - 1)
        for earlier in range(min(number - 2, len(self._pieces) - 1), -1, -1):
            yield self._pieces[earlier]

    def _numbered(self, number: int) -> _Piece:
        while number >= len(self._pieces) and not self._steady:
            self._open_round()
        piece = self._pieces[min(number, len(self._pieces) - 1)]
        return piece if piece.begin == number * self._unit else piece._replace(begin=number * self._unit)

    def _open_round(self) -> None:
        number, low = len(self._pieces), HIGHEST
        if number > DEPTH_AT_MOST:  # as `Calls` has it
            self._calls = Calls(self._frames)
            low, self._steady = NEVER, True
        elif number:
            low = apply_operations(self._calls, self._again)
        self._add(number * self._unit, low, self._calls, self._round)
        if number > 1 and self._pieces[-1].at == self._pieces[-2].at:
            self._pieces.pop()
            self._steady = True


def apply_operations(calls: Calls, operations: tuple[Operation, ...]) -> int:
    """Apply these operations; return the lowest level meanwhile, NEVER if the stack was unknown at some time."""
    calls.lows = [calls.level]
    calls.do(operations)
    return calls.lows[0] if len(calls.lows) == 1 else NEVER


def part_frames(frames: Frames, summaries: Summaries, summary: Summary, at: StackLevel) -> PartFrames:
    """Return the `PartFrames` of a part that runs with this call stack."""
    kind = _RepeatFrames if isinstance(summary.part, RepeatPath) else PartFrames
    return kind(frames, summaries, summary, at)


_BLOCKS = 8  # that are kept
_SPAN = 64  # blocks whose lowest level is known together


class CallFrame(NamedTuple):
    """The frame of an active function.

    pc        where it is, or where it will resume
    function  its start address, UNKNOWN without a symbol
    level     the same from its call to its return: that of its caller + 1, or, after a tail call, that of the function
              it replaced. Only differences are meaningful; they are not known across gaps
    call      the position of the instruction after which it was left: a call, or the last one before a trap
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
        self._opened: dict[int, tuple[int, PartFrames]] = {}

    def number(self, position: int) -> int:
        """Return the number of the step to the entry that contains a position, or that ends there."""
        return min(bisect_right(self.begins, position), len(self.taken)) - 1

    def step(self, position: int) -> Step:
        """Return the step to the entry that contains a position, or that ends there."""
        return self.taken[self.number(position)]

    def at(self, position: int) -> StackLevel:
        """Return the call stack before the instruction at *position* runs."""
        number = self.number(position)
        if position == self.begins[-1]:
            state = self.taken[number].state
            return StackLevel(state.stack, state.level)
        return self._inside(number)[1].at(position - self.begins[number])

    def called(self, level: int, position: int) -> int | None:
        """Return the same as `Inside.called`, for positions. None: before the block."""
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

    def _inside(self, number: int) -> tuple[int, PartFrames]:
        """Return the entry at the end of a step, and the lowest level on the way into it."""
        found = self._opened.get(number)
        if found is None:
            origin, unit = self.taken[number].origin, self.taken[number].unit
            calls = Calls(self._frames, origin.stack, origin.level)
            low = apply_operations(calls, unit.edge.operations) if unit.edge.operations else HIGHEST
            summary = unit.summaries.of(unit.part)
            inside = part_frames(self._frames, unit.summaries, summary, StackLevel(calls.stack, calls.level))
            found = self._opened[number] = low, inside
        return found


class CallFrames:
    """The active calls in *history*, whose functions are *calls*."""

    def __init__(self, history: History, calls: CallHistory) -> None:
        self._history, self._calls = history, calls
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
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
        block = self._block(self._calls.block_at(position))
        edges = block.step(position).unit.summaries.edges
        calls, low = Calls(self._calls.frames, *block.at(position)), HIGHEST
        if at_end and pc is not None:
            low = apply_operations(calls, edges.step(self._history.pc(position - 1), pc).operations)
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
        """Return where the function at some level made the call that is active at a position."""
        number = self._calls.block_at(position)
        found = self._block(number).called(level, position)
        while found is None and (number := self._lower(number, level)) >= 0:
            block = self._block(number)
            found = block.called(level, block.begins[-1])
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

    def _block(self, number: int) -> _Block:
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = _Block(self._calls.frames, *self._calls.taken_in(number))
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return block


def _waiting(frame: Frame | None) -> Iterator[Frame]:
    """Yield the calls that have not returned, down to the first one whose return address is unknown."""
    while frame is not None:
        if frame.kind is not Kind.TAIL:
            if frame.back == UNKNOWN:
                return
            yield frame
        frame = frame.below
