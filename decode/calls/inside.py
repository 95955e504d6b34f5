"""What runs with which calls under way, inside the shared pieces of a history, and which of its steps made a call.

A piece is opened when somebody asks for a place in it, and only where the call stack changes in it. Offsets are
instructions from the start of a piece; the state at an offset is that before the instruction there runs.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import Operation
from rvtrace_gdb.decode.calls.stack import DEPTH_AT_MOST, Calls, Frame, Frames
from rvtrace_gdb.decode.calls.states import NEVER
from rvtrace_gdb.decode.calls.summaries import Summaries, Summary
from rvtrace_gdb.decode.history import Path, RepeatPath

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
