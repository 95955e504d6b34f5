"""The calls under way at any position of a history, innermost first, and where each was made: for backtraces.

A call that is under way at some level was made where that level was reached last. For each block of entries the lowest
level is known, so that only the block in which the call was made is gone through.

Inside the shared pieces of a history, `Inside` says what runs with which calls under way, and which of the steps made a
call. A piece is opened when somebody asks for a place in it, and only where the call stack changes in it. Offsets are
instructions from the start of a piece; the state at an offset is that before the instruction there runs.
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


class At(NamedTuple):
    """A call stack and the level of the function that runs."""

    stack: Frame | None
    level: int


class _Piece(NamedTuple):
    """Of a part, from offset *begin* on: the lowest level in the step that leads there, what is under way behind that
    step, and, if the stack changes in it, what is *inside*, and the lowest level there. A lowest level is NEVER if the
    stack was not known at some time.
    """

    begin: int
    step_low: int
    at: At
    inside: "Inside | None"
    low: int


class Inside:
    """A part of the history that runs with these calls under way. *count*: its instructions."""

    def __init__(self, frames: Frames, summaries: Summaries, summary: Summary, at: At) -> None:
        self.count = len(summary.part)
        self._frames, self._summaries, self._summary, self._begin = frames, summaries, summary, at
        self._pieces: list[_Piece] = []
        self._begins: list[int] = []

    def at(self, offset: int) -> At:
        """What is under way before the instruction at *offset* runs."""
        piece = self._piece(offset)
        if piece.inside is None or offset == piece.begin:
            return piece.at
        return piece.inside.at(offset - piece.begin)

    def called(self, level: int, offset: int) -> int | None:
        """The offset of the instruction behind which a call was made that is still under way at *offset*, by what was
        at *level*. None: it was made before the part, or by what leads into it.
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
        """The piece that has an offset."""
        if not self._pieces:
            self._open()
        return self._pieces[bisect_right(self._begins, offset) - 1]

    def _back_from(self, offset: int) -> Iterator[_Piece]:
        """The pieces from that with *offset* back to the first one."""
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
                    self._add(offset, done(calls, edge.operations), calls, None)
        elif isinstance(part, Path):
            self._open_path(self._summaries.children(part), calls)
        self._begins = [piece.begin for piece in self._pieces]

    def _open_path(self, children: list[Summary], calls: Calls) -> None:
        before: Summary | None = None
        begin = 0
        for child in children:
            edge = None if before is None else self._summaries.between(before, child)
            low = done(calls, edge.operations) if edge is not None and edge.operations else HIGHEST
            if low < HIGHEST or child.begins or not self._pieces or self._pieces[-1].inside is not None:
                self._add(begin, low, calls, child)
            begin += len(child.part)
            before = child

    def _add(self, begin: int, step_low: int, calls: Calls, child: Summary | None) -> None:
        """Another piece; *calls* is taken along."""
        at = At(calls.stack, calls.level)
        if child is None or not child.begins:
            self._pieces.append(_Piece(begin, step_low, at, None, HIGHEST))
        else:
            inside = inside_of(self._frames, self._summaries, child, at)
            self._pieces.append(_Piece(begin, step_low, at, inside, done(calls, child.operations)))


class _Rounds(Inside):
    """A repetition. Its pieces are the first rounds, up to that after which all are the same."""

    def __init__(self, frames: Frames, summaries: Summaries, summary: Summary, at: At) -> None:
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
            low = done(self._calls, self._again)
        self._add(number * self._unit, low, self._calls, self._round)
        if number > 1 and self._pieces[-1].at == self._pieces[-2].at:
            self._pieces.pop()
            self._steady = True


def done(calls: Calls, operations: tuple[Operation, ...]) -> int:
    """Does these; the lowest level meanwhile, NEVER if the stack was not known at some time."""
    calls.lows = [calls.level]
    calls.do(operations)
    return calls.lows[0] if len(calls.lows) == 1 else NEVER


def inside_of(frames: Frames, summaries: Summaries, summary: Summary, at: At) -> Inside:
    """A part that runs with these calls under way."""
    kind = _Rounds if isinstance(summary.part, RepeatPath) else Inside
    return kind(frames, summaries, summary, at)


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
