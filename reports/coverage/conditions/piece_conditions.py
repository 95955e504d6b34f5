"""The values of conditions in a history that is read in pieces, by whomever, and put together in their order.

Which evaluations are under way where a piece begins is not known while it is read. They matter at its beginning, or
not at all: the first instructions are therefore sent along, as far as they change anything, and followed again when
the state is known; what comes behind them is counted from the state without evaluations that are older. If older ones
are still under way there, it is known what was looked for, so that they are either left as they are, or the piece is
counted again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.coverage import stretch_entries
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.reports.coverage.conditions.condition_values import (
    UNDER_WAY_AT_MOST,
    DecisionEvaluation,
    EvaluationCounter,
    EvaluationState,
    Vector,
)
from rvtrace_gdb.reports.coverage.conditions.matching import CodeDecision
from rvtrace_gdb.support.errors import Progress, silent

HEAD = 1 << 14
"""Instructions at the beginning of a piece that are followed again."""


class ConditionsBegin(NamedTuple):
    """What is known where a piece begins: the state of the evaluations, and whether the program has *one_stack*."""

    state: EvaluationState
    one_stack: bool


class PieceConditions(NamedTuple):
    """The values of the conditions of some decisions in a piece.

    head      its first instructions that change states
    begin     the state behind them, if no evaluation was under way before; *end*: that at the end of the piece then
    vectors, doubtful, searched, missed, is_ambiguous, most  of what comes behind the head, as in `EvaluationCounter`
    has_gap   there is a gap behind the head
    """

    head: tuple[int, ...]
    begin: EvaluationState
    end: EvaluationState
    vectors: list[set[Vector]]
    doubtful: set[int]
    searched: set[tuple[int, int]]
    missed: set[tuple[int, int]]
    is_ambiguous: bool
    most: int
    has_gap: bool


def piece_conditions(
    decisions: Sequence[CodeDecision],
    history: History,
    part: range,
    before: int,
    start: ConditionsBegin | None = None,
    progress: Progress = silent,
) -> PieceConditions:
    """Return the values of conditions in a *part* of a history, behind the instruction *before*. *start*: what is known
    at its beginning. Raises what *progress* raises.
    """
    one_stack = start is None or start.one_stack
    body = EvaluationCounter(decisions, one_stack=one_stack)
    split = part.start if start is not None else min(part.start + HEAD, part.stop)
    head = tuple(body.telling(before, history.pcs(part.start, split)))
    first = EvaluationCounter(decisions, one_stack=one_stack)
    begin = start.state if start is not None else first.go_on_one_by_one(first.begin(before), head)
    rest = range(split, part.stop)
    end = body.go_on(begin, stretch_entries(history, rest), progress)
    return PieceConditions(
        head, begin, end, body.vectors, body.doubtful, body.searched, body.missed, body.is_ambiguous, body.most,
        any(gap in rest for gap in history.gap_positions),
    )  # fmt: skip


class JoinedConditions:
    """The values of the conditions of some decisions in all pieces of a history, which are added in order."""

    def __init__(self, decisions: Sequence[CodeDecision], *, one_stack: bool) -> None:
        self.counter = EvaluationCounter(decisions, one_stack=one_stack)
        self._one_stack = one_stack
        self._state = EvaluationState()

    @property
    def begin(self) -> ConditionsBegin:
        """What is known where the next piece begins."""
        return ConditionsBegin(self._state, self._one_stack)

    def add(self, piece: PieceConditions) -> bool:
        """Add the next piece; return False if it has to be counted again, from `begin` on."""
        state = self.counter.go_on_one_by_one(self._state, piece.head)
        older = self._older(state, piece)
        if older is None:
            return False
        if piece.has_gap:
            self.counter.doubtful.update(it.decision for it in older)
            older = ()
        self._add_values(piece, EvaluationState(piece.end.last, (*older, *piece.end.under_way)))
        return True

    def add_known(self, piece: PieceConditions) -> None:
        """Add the next piece, which was counted from `begin` on."""
        self._add_values(piece, piece.end)

    def end(self) -> None:
        """Add that nothing more ran."""
        self.counter.end(self._state)

    def _add_values(self, piece: PieceConditions, end: EvaluationState) -> None:
        for vectors, found in zip(self.counter.vectors, piece.vectors, strict=True):
            vectors |= found
        self.counter.doubtful |= piece.doubtful
        self._state = end

    def _older(self, state: EvaluationState, piece: PieceConditions) -> tuple[DecisionEvaluation, ...] | None:
        """Return the evaluations that are older than the piece in a state behind its head, None if they change what was
        counted behind it.
        """
        own = len(piece.begin.under_way)
        left = len(state.under_way) - own
        if left < 0 or state != piece.begin._replace(under_way=(*state.under_way[:left], *piece.begin.under_way)):
            return None
        older = state.under_way[:left]
        looked_for = piece.missed if self._one_stack else piece.searched
        fits = any(self.counter.is_fitting(it, *place) for it in older for place in looked_for)
        too_many = left > 0 and left + piece.most > UNDER_WAY_AT_MOST
        if fits or too_many or (piece.is_ambiguous and not self._one_stack):
            return None
        return older

