"""The profile of harts whose histories arrive in pieces, and need not end.

It has how often each instruction ran and each step was made, the traps and what is missing: what adds up over pieces.
Calls and ticks are not in it. It grows with the code that has run, not with how long that runs.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.history.builder import HistoryPiece
from rvtrace_gdb.decode.history.events import GAP_KINDS, LOSSES, EventKind, Trap
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.reports.profile.gap_tallies import cause_of
from rvtrace_gdb.reports.profile.model import CodePlace, GapTally, HartTotals, Profile, TrapCause, TrapTally
from rvtrace_gdb.reports.profile.places import CodePlaces


class _ProgramStretch(NamedTuple):
    """Positions at which one program runs."""

    positions: range
    image: Image


class GrowingProfile:
    """A profile to which pieces are added, in the order of each hart's history. *program*: what runs.

    profile  what has run so far: its figures are those of the whole history up to there
    """

    def __init__(self, program: Program) -> None:
        self.profile = Profile()
        self._program = program
        self._places = CodePlaces(self.profile)
        self._totals: dict[int, HartTotals] = {}

    def add(self, hart: int, piece: HistoryPiece) -> None:
        """Add what a hart did next."""
        before = self._totals.get(hart, HartTotals("", hart, 0, 0))
        ran, gaps = before.instructions + piece.instructions, before.gaps + piece.gaps
        self._totals[hart] = before._replace(instructions=ran, gaps=gaps)
        self.profile.harts = [self._totals[it] for it in sorted(self._totals)]
        stretches = list(_program_stretches(piece, self._program))
        for stretch in stretches:
            self._count(piece.history, stretch)
        self._take_traps_out(piece, stretches)
        for event in piece.events:
            self._add_event(event, piece)

    def _count(self, history: History, stretch: _ProgramStretch) -> None:
        """Count the instructions and the steps of a stretch, but for the step that leads to its first instruction."""
        found, places, profile = coverage.counts(history, [stretch.positions]), self._places, self.profile
        for pc, times in sorted(found.ran.items()):  # so that programs have the same numbers each time
            at = places.place(stretch.image, pc)
            if at not in profile.code:
                places.add_code(stretch.image, [pc])
            profile.ran[at] = profile.ran.get(at, 0) + times
        for (source, target), times in sorted(found.steps.items()):
            self._step(places.place(stretch.image, source), places.place(stretch.image, target), times)
        first = stretch.positions.start
        if first and GAP not in (history.pc(first - 1), history.pc(first)):
            origin = self._image_at(history, first - 1)
            source_place = places.place(origin, history.pc(first - 1))
            self._step(source_place, places.place(stretch.image, history.pc(first)), 1)

    def _take_traps_out(self, piece: HistoryPiece, stretches: list[_ProgramStretch]) -> None:
        """Take the steps that traps made out, and put those in that the program would have made without them."""
        history, places = piece.history, self._places
        for step in coverage.interrupted_steps(history, stretches=[it.positions for it in stretches]):
            before, after = (self._image_at(history, at) for at in (step.position - 1, step.position))
            source = places.place(before, step.source)
            self._step(source, places.place(after, step.handler), -1)
            if step.hit is not None and step.is_resumed:
                self._step(source, places.place(before, step.hit), 1)

    def _image_at(self, history: History, position: int) -> Image:
        return self._program.image_of(history.context_at(position))

    def _step(self, source: CodePlace, target: CodePlace, times: int) -> None:
        key, steps = (source, target), self.profile.steps
        now = steps.get(key, 0) + times
        if now:
            steps[key] = now
        else:
            steps.pop(key, None)

    def _add_event(self, event: Event, piece: HistoryPiece) -> None:
        """Count a trap, or what is missing. After the last instruction tracing has just ended."""
        profile = self.profile
        if event.kind is EventKind.TRAP and isinstance(event.fact, Trap):
            trap = TrapCause(event.fact.kind.value, event.fact.cause)
            profile.traps[trap] = profile.traps.get(trap, TrapTally()).plus(TrapTally(1))
        elif event.kind in LOSSES or (event.kind in GAP_KINDS and event.position < piece.end):
            gap = cause_of(event)
            profile.gaps[gap] = profile.gaps.get(gap, GapTally(0, 0, ())).plus(GapTally(1, 0, ()))


def _program_stretches(piece: HistoryPiece, program: Program) -> Iterator[_ProgramStretch]:
    """Yield the positions of a piece by the programs that run there."""
    history, begin = piece.history, piece.begin
    changes = sorted({position for position, _ in history.contexts if piece.begin < position < piece.end})
    for end in (*changes, piece.end):
        image = program.image_of(history.context_at(begin))
        if end == piece.end or program.image_of(history.context_at(end)) is not image:
            if begin < end:
                yield _ProgramStretch(range(begin, end), image)
            begin = end
