"""Conditions of a history that is cut into pieces: what they are in the whole, wherever the cuts are."""

import random
from itertools import pairwise

import pytest

from rvtrace_gdb.decode.coverage import stretch_entries
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.history.history import Path as CodePath
from rvtrace_gdb.reports.coverage.conditions import piece_conditions as pieces
from rvtrace_gdb.reports.coverage.conditions.condition_values import EvaluationCounter
from rvtrace_gdb.reports.coverage.conditions.matching import CodeDecision, ConditionBranch
from rvtrace_gdb.reports.coverage.conditions.piece_conditions import JoinedConditions, piece_conditions
from rvtrace_gdb.reports.coverage.conditions.source_text import decisions
from tests.decode.calls.call_histories import history_of
from tests.helpers.amounts import some_of

TEXTS = ("a && b", "a || b && c", "(a || b) && c")


def code_of(number: int) -> CodeDecision:
    """A decision whose conditions are branches at 100 * number + 10, 20, 30, taken to 1 behind if they are true."""
    source = decisions(TEXTS[number])[0]
    pcs = range(100 * number + 10, 100 * number + 10 * len(source.conditions) + 1, 10)
    return CodeDecision(source, tuple(ConditionBranch(pc, pc + 1, pc + 2, True) for pc in pcs), False)


DECISIONS = [code_of(number) for number in range(len(TEXTS))]


def run(rng: random.Random, depth: int = 0) -> list[int]:
    """Evaluations one after another, and inside another one: where a condition calls a function, and in the handlers
    of interrupts, which also come between a branch and where it leads; with gaps.
    """
    number = rng.randrange(len(DECISIONS))
    edges, branches = DECISIONS[number].source.edges, DECISIONS[number].branches
    found, at = [7] * rng.randint(0, 2), 0
    while at >= 0:
        branch, value = branches[at], rng.random() < 0.5
        found.append(branch.pc)
        if rng.random() < 0.04:
            found += [5, *run(rng, depth + 1)] if depth < 40 else [5]
        found.append(branch.target if value else branch.follows)
        if rng.random() < 0.25 and depth < 40:
            found += run(rng, depth + 1)
        if rng.random() < 0.01:
            found.append(GAP)
            found.append(7)
        at = edges[at].true if value else edges[at].false
    return found


def joined(history: History, cuts: list[int], *, one_stack: bool) -> tuple[JoinedConditions, int]:
    """What pieces have, and how many were counted again."""
    whole, again = JoinedConditions(DECISIONS, one_stack=one_stack), 0
    for first, stop in pairwise(cuts):
        part, before = range(first, stop), history.pc(first - 1) if first else -2
        begin = whole.begin
        if not whole.add(piece_conditions(DECISIONS, history, part, before)):
            whole.add_known(piece_conditions(DECISIONS, history, part, before, begin))
            again += 1
    whole.end()
    return whole, again


@pytest.mark.parametrize("one_stack", [True, False])
@pytest.mark.parametrize("head", [0, 3, 40])
def test_random_cuts(head: int, one_stack: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "HEAD", head)
    counted_again = number = 0
    for seed in range(some_of(600, 10)):
        rng = random.Random(seed)
        outer = rng.randint(0, 3)  # evaluations that are under way until the end
        pcs = [pc for _ in range(outer) for pc in (10, 11, 7)]
        while len(pcs) < 150:
            pcs += run(rng)
        pcs += [20, 21] * rng.randint(0, outer)
        history = history_of(pcs, (), rng)
        expected = EvaluationCounter(DECISIONS, one_stack=one_stack)
        expected.add([CodePath([tuple(pcs)])])
        cuts = sorted({0, len(pcs), *(rng.randrange(len(pcs)) for _ in range(rng.randint(1, 6)))})
        found, again = joined(history, cuts, one_stack=one_stack)
        assert found.counter.vectors == expected.vectors and found.counter.doubtful == expected.doubtful, seed
        counted_again, number = counted_again + again, number + len(cuts) - 1
    assert 0 < counted_again < number


def test_older_evaluations_that_nothing_asks_for_are_carried_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that pieces of a program inside a condition of `main` are not counted again."""
    monkeypatch.setattr(pieces, "HEAD", 2)
    pcs = [10, 11, *[110, 111, 7, 110, 112, 120, 121, 130, 132] * 20, 20, 22]
    found, again = joined(history_of(pcs), [0, 50, 110, len(pcs) - 2, len(pcs)], one_stack=True)
    assert not again and not found.counter.doubtful
    assert [{vector.values for vector in it} for it in found.counter.vectors] == [
        {(True, False)}, {(True, None, None), (False, True, False)}, set(),
    ]  # fmt: skip


def test_the_entries_of_a_part_are_in_order() -> None:
    """Evaluations are followed in a RANGE, too: entries that come again come again."""
    pcs = [10, 11, 20, 21, 10, 12, 10, 11, 20, 22] * 9
    history = history_of(pcs, (), random.Random(2))
    entries = stretch_entries(history, range(3, 77))
    assert [pc for entry in entries for chunk in entry.chunks(0, entry.count) for pc in chunk] == pcs[3:77]
