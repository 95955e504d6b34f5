"""The calls active in the pieces of a history that are shared: which, and which steps made them.

A piece is opened when a query needs a position in it, and only where the call stack changes in it. Offsets count
instructions from the start of a piece; the state at an offset is that before the instruction there runs.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import StackOperation
from rvtrace_gdb.decode.calls.pieces.summaries import Summaries, Summary
from rvtrace_gdb.decode.calls.stacks.frame import DEPTH_AT_MOST, Frame, Frames, Waiting
from rvtrace_gdb.decode.calls.stacks.owners import NOBODY, StackOwners
from rvtrace_gdb.decode.calls.stacks.stack import CallStacks
from rvtrace_gdb.decode.history.history import Path, RepeatPath

HIGHEST = 1 << 62
"""A level above all others."""


class StackLevel(NamedTuple):
    """Call stacks, the level of the function that runs, the number of the stretch in which it does, and their
    owners.
    """

    stack: Frame | None
    level: int
    waiting: Waiting
    stretch: int
    owners: StackOwners = NOBODY

    def calls(self, frames: Frames) -> CallStacks:
        """Return the call stacks, to apply operations to them."""
        return CallStacks(frames, self.stack, self.level, self.waiting, self.owners)


def lowest_in(lows: Sequence[int], number: int) -> int:
    """Return the lowest level in the stretch with this number, counted from the first one of *lows*."""
    return lows[number] if 0 <= number < len(lows) else HIGHEST


class _PartPiece(NamedTuple):
    """A piece of a part, from offset *begin* on.

    It has the lowest levels in the step that leads there, the call stacks after that step, and, if they change in the
    piece, what is *inside*, and the lowest levels there: one for each stretch.
    """

    begin: int
    step_lows: Sequence[int]
    at: StackLevel
    inside: "PartFrames | None"
    lows: Sequence[int]

    def low_on_the_way(self, stretch: int) -> int:
        """Return the lowest level in a stretch in the step that leads there."""
        return lowest_in(self.step_lows, stretch - self.at.stretch + len(self.step_lows) - 1)

    def low(self, stretch: int) -> int:
        """Return the lowest level in a stretch inside."""
        return lowest_in(self.lows, stretch - self.at.stretch)


class PartFrames:
    """A part of the history that runs with these call stacks. *count* is the number of its instructions."""

    def __init__(self, frames: Frames, summaries: Summaries, summary: Summary, at: StackLevel) -> None:
        self.count = len(summary.part)
        self._frames, self._summaries, self._summary, self._begin = frames, summaries, summary, at
        self._stretch = at.stretch  # after the pieces so far
        self._pieces: list[_PartPiece] = []
        self._begins: list[int] = []

    def stacks_at(self, offset: int) -> StackLevel:
        """Return the call stacks before the instruction at *offset* runs."""
        piece = self._piece(offset)
        if piece.inside is None or offset == piece.begin:
            return piece.at
        return piece.inside.stacks_at(offset - piece.begin)

    def called(self, level: int, stretch: int, offset: int) -> int | None:
        """Return the offset of the instruction after which the function at *level* made a call, in a stretch, that is
        still active at *offset*, or at the end of the stretch.

        Returns None if the call was made before the part, or by the step that leads into it.
        """
        for piece in self._back_from(offset):
            if piece.inside is not None and piece.begin < offset and piece.low(stretch) <= level:
                found = piece.inside.called(level, stretch, min(offset - piece.begin, piece.inside.count - 1))
                if found is not None:
                    return piece.begin + found
            if piece.low_on_the_way(stretch) <= level:
                return piece.begin - 1
        return None

    def _piece(self, offset: int) -> _PartPiece:
        """Return the piece that contains an offset."""
        if not self._pieces:
            self._open_pieces()
        return self._pieces[bisect_right(self._begins, offset) - 1]

    def _back_from(self, offset: int) -> Iterator[_PartPiece]:
        """Yield the pieces from the one with *offset* back to the first one."""
        if not self._pieces:
            self._open_pieces()
        for number in range(bisect_right(self._begins, offset) - 1, -1, -1):
            yield self._pieces[number]

    def _open_pieces(self) -> None:
        part = self._summary.part
        calls = self._begin.calls(self._frames)
        if isinstance(part, tuple):
            self._add_piece(0, (), calls, None)
            for offset, (pc, to) in enumerate(pairwise(part), 1):
                edge = self._summaries.edges.step(pc, to)
                if edge.operations:
                    self._add_piece(offset, apply_operations(calls, edge.operations), calls, None)
        elif isinstance(part, Path):
            self._open_path(self._summaries.children(part), calls)
        self._begins = [piece.begin for piece in self._pieces]

    def _open_path(self, children: list[Summary], calls: CallStacks) -> None:
        before: Summary | None = None
        begin = 0
        for child in children:
            edge = None if before is None else self._summaries.between(before, child)
            lows = apply_operations(calls, edge.operations) if edge is not None and edge.operations else ()
            if lows or child.begins or not self._pieces or self._pieces[-1].inside is not None:
                self._add_piece(begin, lows, calls, child)
            begin += len(child.part)
            before = child

    def _add_piece(self, begin: int, step_lows: Sequence[int], calls: CallStacks, child: Summary | None) -> None:
        """Add a piece, and apply it to *calls*."""
        self._stretch += max(len(step_lows) - 1, 0)
        at = StackLevel(calls.stack, calls.level, calls.waiting, self._stretch, calls.owners)
        if child is None or not child.begins:
            self._pieces.append(_PartPiece(begin, step_lows, at, None, ()))
        else:
            inside = part_frames(self._frames, self._summaries, child, at)
            lows = apply_operations(calls, child.operations)
            self._stretch += len(lows) - 1
            self._pieces.append(_PartPiece(begin, step_lows, at, inside, lows))


class _RepeatFrames(PartFrames):
    """A repetition. Its pieces are the first rounds, up to the one after which all are the same."""

    def __init__(self, frames: Frames, summaries: Summaries, summary: Summary, at: StackLevel) -> None:
        super().__init__(frames, summaries, summary, at)
        assert isinstance(summary.part, RepeatPath)
        self._round = summaries.summary_of(summary.part.path)
        self._again = summaries.between(self._round, self._round).operations
        self._unit = len(summary.part.path)
        self._calls = at.calls(frames)
        self._steady = False

    def _piece(self, offset: int) -> _PartPiece:
        return self._numbered(offset // self._unit)

    def _back_from(self, offset: int) -> Iterator[_PartPiece]:
        number = offset // self._unit
        yield self._numbered(number)
        if number:
            yield self._numbered(number - 1)
        for earlier in range(min(number - 2, len(self._pieces) - 1), -1, -1):
            yield self._pieces[earlier]

    def _numbered(self, number: int) -> _PartPiece:
        while number >= len(self._pieces) and not self._steady:
            self._open_round()
        piece = self._pieces[min(number, len(self._pieces) - 1)]
        return piece if piece.begin == number * self._unit else piece._replace(begin=number * self._unit)

    def _open_round(self) -> None:
        number = len(self._pieces)
        lows: Sequence[int] = ()
        if number > DEPTH_AT_MOST:  # as `CallStacks` has it
            self._calls = CallStacks(self._frames, owners=self._calls.owners)
            lows, self._steady = (HIGHEST, 0), True
        elif number:
            lows = apply_operations(self._calls, self._again)
        self._add_piece(number * self._unit, lows, self._calls, self._round)
        if number > 1 and self._pieces[-1].at == self._pieces[-2].at:
            self._pieces.pop()
            self._steady = True


def apply_operations(calls: CallStacks, operations: tuple[StackOperation, ...]) -> list[int]:
    """Apply these operations; return the lowest levels meanwhile, of each stretch."""
    calls.lows = [calls.level]
    calls.do(operations)
    return calls.lows


def part_frames(frames: Frames, summaries: Summaries, summary: Summary, at: StackLevel) -> PartFrames:
    """Return the `PartFrames` of a part that runs with these call stacks."""
    kind = _RepeatFrames if isinstance(summary.part, RepeatPath) else PartFrames
    return kind(frames, summaries, summary, at)
