"""The coverage of a history that is read in pieces, by whomever, and put together in their order.

How often instructions ran and steps were made adds up: the step to the first instruction of a piece counts in that
piece. What may have run in gaps is found out when all of them are known, and so is what conditions were where
evaluations go on from piece to piece (`conditions/piece_conditions.py`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.pieces.numbered import PieceHistory
from rvtrace_gdb.decode.coverage import ExecutionCounts
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.coverage.conditions.counting import ElfDecisions, has_one_stack, put_conditions
from rvtrace_gdb.reports.coverage.conditions.piece_conditions import (
    ConditionsBegin,
    JoinedConditions,
    PieceConditions,
    piece_conditions,
)
from rvtrace_gdb.reports.coverage.counting import of_images, stretches
from rvtrace_gdb.reports.coverage.gaps import GapFacts, gap_facts, maybe_ran_by
from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage
from rvtrace_gdb.support.errors import Progress, silent


class PieceCoverage(NamedTuple):
    """What ran in a piece.

    counts     of each program, by a context in which it ran
    last       the last instruction, GAP for a gap; None if nothing ran
    one_stack  the program did not change its stack
    conditions  of the decisions of each file
    """

    counts: list[tuple[ProgramContext, ExecutionCounts]]
    facts: GapFacts
    gaps: int
    last: int | None
    one_stack: bool
    conditions: list[PieceConditions]


class CoveredPiece(NamedTuple):
    """A piece of which the coverage is to be found out: some *positions* of the history of *calls*, which ends with
    them. *last*: nothing comes after it; *overwritten*: older trace than that of its history was lost.
    """

    calls: CallHistory
    history: PieceHistory
    program: ContextImages
    positions: range
    last: bool
    overwritten: bool

    def coverage(self, decisions: Sequence[ElfDecisions], progress: Progress = silent) -> PieceCoverage:
        """Return what ran. Raises what *progress* raises."""
        history, positions = self.history, self.positions
        overwritten = self.overwritten and not positions.start
        facts = gap_facts(history, self.program, positions, overwritten=overwritten, goes_on=not self.last)
        return PieceCoverage(
            self._counts(progress),
            facts,
            sum(position in positions for position in history.gap_positions),
            history.pc(positions.stop - 1) if positions else None,
            has_one_stack(self.calls),
            [piece_conditions(of.copies, history, positions, history.before, None, progress) for of in decisions],
        )

    def _counts(self, progress: Progress) -> list[tuple[ProgramContext, ExecutionCounts]]:
        history, positions = self.history, self.positions
        found: list[tuple[ProgramContext, ExecutionCounts]] = []
        for image, places in stretches(history, self.program, positions).items():
            if places:
                counted = coverage.counts(history, places, progress)
                if places[0].start == positions.start and self._goes_on_with(image):
                    counted = coverage.add_counts(counted, self._first_step())
                found.append((history.context_at(places[0].start), counted))
        return found

    def _goes_on_with(self, image: Image) -> bool:
        """Whether the same program ran before the piece."""
        first = self.positions.start
        return first > 0 and self.program.image_of(self.history.context_at(first - 1)) is image

    def _first_step(self) -> ExecutionCounts:
        """Return how often the step to the first instruction was made, with a trap in between or without."""
        history, first = self.history, self.positions.start
        source, target = history.before, history.pc(first)
        steps = {} if GAP in (source, target) else {(source, target): 1}
        resumed: dict[tuple[int, int], int] = {}
        trapped: dict[int, int] = {}
        for step in coverage.interrupted_steps(history, silent, [range(first, first + 1)]):
            resumed[step.source, step.handler] = -1
            if step.hit is not None:
                trapped[step.hit] = 1
                if step.is_resumed:
                    resumed[step.source, step.hit] = resumed.get((step.source, step.hit), 0) + 1
        return ExecutionCounts({}, steps, resumed, trapped)


CountAgain = Callable[[int, list[ConditionsBegin]], list[PieceConditions]]
"""Returns what the conditions were in the piece with a number, from what is known at its beginning."""


class JoinedCoverage:
    """The coverage of a hart's history, of which the pieces are added in order.

    counts  what ran of each program
    facts   what tells what may have run in gaps, but for the end of the history
    """

    def __init__(self, program: ContextImages) -> None:
        self._program = program
        self.counts: dict[Image, ExecutionCounts] = {program.base: ExecutionCounts({}, {}, {}, {})}
        self.facts = GapFacts()
        self._gaps = 0
        self._last: int | None = None
        self._one_stack = True
        self._conditions: dict[int, list[PieceConditions]] = {}

    def add(self, number: int, piece: PieceCoverage) -> None:
        """Add the next piece, which has a *number* among all."""
        for context, counted in piece.counts:
            image = self._program.image_of(context)
            before = self.counts.get(image)
            self.counts[image] = counted if before is None else coverage.add_counts(before, counted)
        self.facts.add(piece.facts)
        self._gaps += piece.gaps
        self._last = self._last if piece.last is None else piece.last
        self._one_stack &= piece.one_stack
        self._conditions[number] = piece.conditions

    def coverages(
        self, decisions: Sequence[ElfDecisions], again: CountAgain, progress: Progress = silent
    ) -> list[ProgramCoverage]:
        """Return the coverage of each program. Raises what *progress* and *again* raise."""
        if self._last not in (None, GAP):
            self.facts.untold.add(self._last)
        found = of_images(self.counts, maybe_ran_by(self.facts, self._program, progress), self._gaps)
        several = self.facts.is_several
        joined = [JoinedConditions(of.copies, one_stack=self._one_stack) for of in decisions]
        for number, piece in self._conditions.items() if not several else ():
            begins = [it.begin for it in joined]
            fits = [it.add(conditions) for it, conditions in zip(joined, piece, strict=True)]
            if not all(fits):
                known = again(number, begins)
                for it, was_added, conditions in zip(joined, fits, known, strict=True):
                    if not was_added:
                        it.add_known(conditions)
        for of, it in zip(decisions, joined, strict=True):
            it.end()
            put_conditions(found, of, it.counter, several=several)
        return found
