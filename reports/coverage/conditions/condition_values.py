"""Which values the conditions of decisions had together, each time one was evaluated: the test vectors of MC/DC.

A decision may be evaluated inside another evaluation of itself, where a condition calls a function: evaluations are
kept on a stack. As different pieces of a history are few, what one does to the evaluations under way is remembered:
each entry of the history takes one look-up, as for calls (`decode/calls/states.py`).

Two conditions of a decision are compared as clang does: a condition is covered if it alone differs between two
evaluations that had different results, where conditions that were not evaluated do not count.

Source: clang, `llvm/lib/ProfileData/Coverage/CoverageMapping.cpp`, and "Source-based Code Coverage".
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP, AnyPath, PathPart, RepeatPath
from rvtrace_gdb.reports.coverage.conditions.matching import CodeDecision, ConditionBranch
from rvtrace_gdb.reports.coverage.conditions.source_text import TRUE
from rvtrace_gdb.support.errors import Progress, silent

_BLOCK = 1 << 16  # entries between two calls of the progress
UNDER_WAY_AT_MOST = 16
_DECIDED = -1
"""In place of the next condition: the result is known, and the branch of the last condition follows that."""


class Vector(NamedTuple):
    """The *values* of the conditions in an evaluation, None of those that were not evaluated, and its *result*."""

    values: tuple[bool | None, ...]
    result: bool


def covered_conditions(vectors: Collection[Vector], number: int) -> list[bool]:
    """Return of each of a *number* of conditions whether it decided a result by itself."""
    found = [False] * number
    for one, other in combinations(vectors, 2):
        if one.result != other.result:
            pairs = zip(one.values, other.values, strict=True)
            differ = [at for at, values in enumerate(pairs) if None not in values and values[0] != values[1]]
            if len(differ) == 1:
                found[differ[0]] = True
    return found


class DecisionEvaluation(NamedTuple):
    """An evaluation of a decision that is under way: the *next* condition, and the values so far."""

    decision: int
    next: int
    values: tuple[bool | None, ...]


class EvaluationState(NamedTuple):
    """*last*: the branch that ran last, whose outcome is not known yet, None if another instruction did."""

    last: int | None = None
    under_way: tuple[DecisionEvaluation, ...] = ()


class EvaluationCounter:
    """Collects the vectors of some decisions, and those of which an evaluation was not seen as a whole. *one_stack*:
    the program never changed its stack, so that what was begun last ends first.

    What tells whether other evaluations under way, that were begun before, would have made a difference:

    searched   the conditions (decision, number) of which an evaluation was looked for
    missed     those of which none was found
    is_ambiguous  whether it depended on *one_stack* which one was found
    most       how many were under way at once
    """

    def __init__(self, decisions: Sequence[CodeDecision], *, one_stack: bool) -> None:
        self._decisions, self._one_stack = decisions, one_stack
        self.vectors: list[set[Vector]] = [set() for _ in decisions]
        self.doubtful: set[int] = set()
        self.searched: set[tuple[int, int]] = set()
        self.missed: set[tuple[int, int]] = set()
        self.is_ambiguous = False
        self.most = 0
        self._conditions: dict[int, tuple[int, int, ConditionBranch]] = {
            branch.pc: (number, at, branch)
            for number, decision in enumerate(decisions)
            for at, branch in enumerate(decision.branches)
        }
        self._states: dict[EvaluationState, int] = {}
        self._all: list[EvaluationState] = []
        self._after: dict[tuple[int, int], int] = {}
        self._kept: dict[int, PathPart] = {}  # so that their ids stay theirs

    def add(self, entries: Sequence[AnyPath], progress: Progress = silent) -> None:
        """Add all that ran. Raises what *progress* raises."""
        self.end(self.go_on(EvaluationState(), entries, progress))

    def begin(self, before: int) -> EvaluationState:
        """Return the state behind the instruction *before*, if no evaluation is under way."""
        return EvaluationState(before if before in self._conditions else None)

    def go_on(
        self, state_before: EvaluationState, entries: Sequence[AnyPath], progress: Progress = silent
    ) -> EvaluationState:
        """Add what ran from a state on, and return the state behind it. Raises what *progress* raises."""
        self.most = max(self.most, len(state_before.under_way))
        state = self._state_number(state_before)
        after = self._after
        for number, entry in enumerate(entries):
            if not number % _BLOCK:
                progress("evaluating conditions (parts)", number, len(entries))
            following = after.get((state, id(entry)))
            state = self._after_part(state, entry) if following is None else following
        return self._all[state]

    def end(self, state: EvaluationState) -> None:
        """Add that nothing more ran."""
        self._drop(state.under_way)
        if state.last is not None:
            self.doubtful.add(self._conditions[state.last][0])

    def go_on_one_by_one(self, state: EvaluationState, pcs: Iterable[int]) -> EvaluationState:
        """Add instructions from a state on, and return the state behind them."""
        return self._instructions(state, pcs)

    def telling(self, before: int, pcs: Iterable[int]) -> Iterator[int]:
        """Yield those of consecutive instructions behind one *before* that change states; all others do not."""
        follows = before in self._conditions
        for pc in pcs:
            if follows or pc == GAP or pc in self._conditions:
                yield pc
            follows = pc in self._conditions

    def _state_number(self, state: EvaluationState) -> int:
        if state not in self._states:
            self._states[state] = len(self._all)
            self._all.append(state)
        return self._states[state]

    def _after_part(self, state: int, part: PathPart) -> int:
        """Return the state after a part, which is remembered."""
        key = state, id(part)
        found = self._after.get(key)
        if found is None:
            self._kept[id(part)] = part
            found = self._after[key] = self._after_inside(state, part)
        return found

    def _after_inside(self, state: int, part: PathPart) -> int:
        if isinstance(part, tuple):
            return self._state_number(self._instructions(self._all[state], part))
        if isinstance(part, RepeatPath):
            return self._after_rounds(state, part)
        for piece in part.parts:
            if piece:
                state = self._after_part(state, piece)
        return state

    def _after_rounds(self, state: int, part: RepeatPath) -> int:
        """Return the state after a path that is repeated: from the first state that comes again on, they repeat."""
        states: dict[int, int] = {}  # the round before which each state was, in order
        while state not in states and len(states) < part.times:
            states[state] = len(states)
            state = self._after_part(state, part.path)
        if len(states) == part.times:
            return state
        first = states[state]
        return list(states)[first + (part.times - first) % (len(states) - first)]

    def _instructions(self, state: EvaluationState, pcs: Iterable[int]) -> EvaluationState:
        for pc in pcs:
            if state.last is not None:
                state = self._outcome(state, state.last, pc)
            if pc == GAP:
                self._drop(state.under_way)
                state = EvaluationState()
            elif pc in self._conditions:
                state = state._replace(last=pc)
        return state

    def _outcome(self, state: EvaluationState, branch: int, pc: int) -> EvaluationState:
        """Return the state after a branch of which it is known where it led."""
        number, at, condition = self._conditions[branch]
        under_way = list(state.under_way)
        evaluation = self._taken_out(under_way, number, at)
        if evaluation is not None and evaluation.next == _DECIDED:
            return EvaluationState(None, tuple(under_way))
        if evaluation is None or pc not in (condition.target, condition.follows):  # begun elsewhere, or a trap came
            self.doubtful.add(number)
            return EvaluationState(None, tuple(under_way))
        value = (pc == condition.target) == condition.true_taken
        edges = self._decisions[number].source.edges[at]
        following = edges.true if value else edges.false
        values = (*evaluation.values[:at], value, *evaluation.values[at + 1 :])
        is_last = at == len(evaluation.values) - 1
        if following < 0:
            self.vectors[number].add(Vector(values, following == TRUE))
            if self._decisions[number].joined and not is_last:
                under_way.append(DecisionEvaluation(number, _DECIDED, values))
        else:
            under_way.append(DecisionEvaluation(number, following, values))
        self.most = max(self.most, len(under_way))
        if len(under_way) > UNDER_WAY_AT_MOST:
            self._drop(under_way[:1])
            del under_way[0]
        return EvaluationState(None, tuple(under_way))

    def _taken_out(self, under_way: list[DecisionEvaluation], number: int, at: int) -> DecisionEvaluation | None:
        """Take the evaluation out to which a condition belongs; the first condition begins one."""
        if not at:
            return DecisionEvaluation(number, 0, (None,) * len(self._decisions[number].branches))
        self.searched.add((number, at))
        fitting = [place for place, it in enumerate(under_way) if self.is_fitting(it, number, at)]
        if not fitting:
            self.missed.add((number, at))
            return None
        if len({under_way[place] for place in fitting}) > 1:
            self.is_ambiguous = True
            if not self._one_stack:
                return None
        return under_way.pop(fitting[-1])

    def is_fitting(self, evaluation: DecisionEvaluation, number: int, at: int) -> bool:
        """Return whether condition *at* of the decision *number* may go on with an evaluation."""
        nexts = (at, _DECIDED) if at == len(self._decisions[number].branches) - 1 else (at,)
        return evaluation.decision == number and evaluation.next in nexts

    def _drop(self, under_way: Iterable[DecisionEvaluation]) -> None:
        self.doubtful.update(it.decision for it in under_way)
