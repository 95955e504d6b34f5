"""How often instructions ran: against counting them one by one, and branches, traps and gaps by hand."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.coverage import branch_outcomes, counts, function_entries
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, History, Path, RepeatPath
from rvtrace_gdb.decode.search import ExecutionSearch, entries_of
from rvtrace_gdb.support.errors import Cancelled
from tests.decode.history.test_history import NOTHING, built, flat
from tests.decode.kernel.loops import LOOPS, with_and_without_kernel
from tests.decode.test_search import BRANCH, CALL, HANDLER, LEAVE, WAIT, WAITED, program, ran
from tests.helpers.amounts import each_seed, some_of
from tests.helpers.event_facts import lost

loop = pytest.fixture(with_and_without_kernel, scope="module", autouse=True, params=LOOPS)

addresses = st.integers(0, 5)
tuples = st.lists(addresses, min_size=1, max_size=5).map(tuple)
paths = st.recursive(
    st.lists(tuples, min_size=1, max_size=4).map(Path),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(Path)
        | st.tuples(inner, tuples).map(Path)
        | st.tuples(inner, st.integers(1, 5)).map(lambda pair: RepeatPath(*pair))
    ),
    max_leaves=5,
)
runs = st.lists(st.tuples(paths, st.integers(1, 12)), max_size=12)


def history_of(pieces: list[tuple[Path | RepeatPath, int]], gaps: set[int]) -> tuple[History, list[int]]:
    """Pieces so many times each, some followed by a gap, and the addresses as they come."""
    builder = HistoryBuilder()
    pcs: list[int] = []
    for i, (path, times) in enumerate(pieces):
        for _ in range(times):
            builder.append(path)
            pcs += flat(path)
        if i in gaps and pcs and pcs[-1] != GAP:
            builder.gap(EventKind.LOSS, i, lost())
            pcs.append(GAP)
    return builder.finish(NOTHING), pcs


def one_by_one(pcs: list[int]) -> tuple[Counter[int], Counter[tuple[int, int]]]:
    return (
        Counter(pc for pc in pcs if pc != GAP),
        Counter((before, pc) for before, pc in pairwise(pcs) if GAP not in (before, pc)),
    )


@settings(derandomize=True, max_examples=some_of(300, share=10), deadline=None)
@given(runs, st.sets(st.integers(0, 11), max_size=3))
def test_as_one_by_one(pieces: list[tuple[Path | RepeatPath, int]], gaps: set[int]) -> None:
    history, pcs = history_of(pieces, gaps)
    for calls in (None, CallHistory(history, program())):
        found = counts(history, calls=calls)
        assert (found.ran, found.steps) == one_by_one(pcs)
    assert found.gaps == pcs.count(GAP) == history.gaps


@settings(derandomize=True, max_examples=some_of(300, share=10), deadline=None)
@given(runs, st.sets(st.integers(0, 11), max_size=3), st.lists(st.integers(0, 300), max_size=6))
def test_stretches_as_one_by_one(
    pieces: list[tuple[Path | RepeatPath, int]], gaps: set[int], borders: list[int]
) -> None:
    """Nothing leads from one stretch to the next, even if they touch."""
    history, pcs = history_of(pieces, gaps)
    borders = sorted(min(border, len(pcs)) for border in borders)
    stretches = [range(*pair) for pair in pairwise(borders)][:: 1 + len(borders) % 2]
    found = counts(history, stretches)
    expected = [one_by_one(pcs[stretch.start : stretch.stop]) for stretch in stretches]
    assert found.ran == sum((ran_there for ran_there, _ in expected), Counter())
    assert found.steps == sum((steps for _, steps in expected), Counter())
    assert found.gaps == sum(pcs[stretch.start : stretch.stop].count(GAP) for stretch in stretches)


def test_shared_parts_of_all_depths() -> None:
    """Deeply nested: each path has the two before it, so that the instructions grow as Fibonacci's numbers do."""
    built_so_far: list[Path] = [Path([(1, 2)]), Path([(3,), (2, 3)])]
    for _ in range(60):
        built_so_far.append(Path(built_so_far[-2:]))
    history = built(built_so_far[-1], built_so_far[0])
    first, second = Counter({1: 1, 2: 1}), Counter({3: 2, 2: 1})
    for _ in range(60):
        first, second = second, first + second
    found = counts(history)
    assert found.ran == second + Counter({1: 1, 2: 1}) and found.ran[3] > 10**12
    assert sum(found.ran.values()) == len(history) == sum(found.steps.values()) + 1


def test_a_billion_rounds() -> None:
    """Nothing of it is gone through one by one, and a cut of it is not either."""
    loop = RepeatPath(Path([(1, 2, 3)]), 1_000_000_000)
    history = built(loop, Path([(4,)]), loop)
    found = counts(history)
    assert found.ran == {1: 2 * 10**9, 2: 2 * 10**9, 3: 2 * 10**9, 4: 1}
    assert found.steps == {
        (1, 2): 2 * 10**9, (2, 3): 2 * 10**9, (3, 1): 2 * (10**9 - 1), (3, 4): 1, (4, 1): 1,
    }  # fmt: skip
    found = counts(history, [range(1, 3 * 10**9 - 1)])
    assert found.ran == {1: 10**9 - 1, 2: 10**9, 3: 10**9 - 1}
    assert found.steps == {(1, 2): 10**9 - 1, (2, 3): 10**9 - 1, (3, 1): 10**9 - 1}


def test_it_can_be_interrupted() -> None:
    def cancel(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        counts(built(Path([(1,)])), None, cancel)


@pytest.mark.parametrize(
    ("history", "taken", "not_taken"),
    [
        (ran((CALL, WAIT, BRANCH, WAIT, BRANCH, WAIT, BRANCH, WAITED)), 2, 1),
        (ran((WAIT, BRANCH)), 0, 0),  # where it went is not in the trace
        (ran((WAIT, BRANCH), "lost", (WAITED,)), 0, 0),
        (ran((WAIT, BRANCH), "to the handler", (HANDLER, LEAVE), (WAIT, BRANCH, WAITED)), 1, 1),
        (ran((WAIT, BRANCH), "to wait", (WAIT, BRANCH, WAITED)), 1, 1),  # the handler is where it would have gone
    ],
)
def test_branches(history: History, taken: int, not_taken: int) -> None:
    """BRANCH goes back to WAIT, or on to WAITED; traps of `ran` hit at WAIT."""
    assert branch_outcomes(counts(history), program(), BRANCH) == (taken, not_taken, WAIT, WAITED)


def test_what_is_no_branch_has_no_outcomes() -> None:
    found = counts(ran((CALL, WAIT, BRANCH)))
    for pc in (CALL, WAIT, WAITED, LEAVE, 0x10):
        assert branch_outcomes(found, program(), pc) is None


@each_seed(range(300))
def test_entries_are_those_that_a_search_finds(seed: int) -> None:
    """`trace find` looks at each place by itself, with what was before and behind it (`decode/search.py`)."""
    rng = random.Random(seed)
    pieces: list[tuple[int, ...] | str] = []
    for _ in range(rng.randrange(1, 30)):
        end = rng.choice([(WAITED,), (WAIT, BRANCH, WAITED), ()])
        pieces.append((CALL, *[WAIT, BRANCH] * rng.randrange(1, 3), *end) if rng.random() < 0.7 else (CALL,))
        if rng.random() < 0.3 and pieces[-1][-1] != WAITED:
            trap = rng.choice(["to the handler", "lost"])
            pieces += [trap, (HANDLER, LEAVE), (WAIT, BRANCH, WAITED)] if trap != "lost" else [trap]
    history, image = ran(*pieces), program()
    calls = CallHistory(history, image)
    assert counts(history, calls=calls) == counts(history)
    found = function_entries(counts(history), image, {WAIT: WAIT + 12, CALL: CALL + 8, HANDLER: HANDLER + 8})
    for function, count in found.items():
        assert count == len(ExecutionSearch(calls, entries_of(function, image))), hex(function)


def test_all_of_the_counting_can_be_watched_and_interrupted() -> None:
    """Of a whole history whose calls are known, too, and of a part of one."""
    history, _ = history_of([(Path([(1, 2, 3)]), 3), (Path([(4, 5)]), 2)], {0})
    for wanted, known in ((None, True), (None, False), ([range(1, len(history) - 1)], False)):
        labels: list[str] = []

        def note(label: str, done: int, total: int | None = None, labels: list[str] = labels) -> None:
            labels.append(label)

        counts(history, wanted, note, CallHistory(history, program()) if known else None)
        assert "counting instructions (parts)" in labels and len(set(labels)) > 1
        for patience in range(len(labels)):
            left = iter(range(patience))

            def watch(label: str, done: int, total: int | None = None, left: Iterator[int] = left) -> None:
                if next(left, None) is None:
                    raise Cancelled

            with pytest.raises(Cancelled):
                counts(history, wanted, watch, CallHistory(history, program()) if known else None)
