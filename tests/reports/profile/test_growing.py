"""Profiles of histories that arrive in pieces: each figure is what a walk over the instructions finds."""

from collections import Counter
from collections.abc import Iterator

import pytest

from rvtrace_gdb.decode.history.builder import HistoryPiece, IncrementalBuilder
from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause
from rvtrace_gdb.decode.history.history import GAP, Path
from rvtrace_gdb.reports.profile.growing import GrowingProfile
from tests.decode.calls.test_call_history_properties import Case
from tests.decode.kernel.loops import LOOPS, with_and_without_kernel
from tests.helpers.amounts import each_seed
from tests.reports.profile.test_random_executions import place, steps_of

loop = pytest.fixture(with_and_without_kernel, scope="module", autouse=True, params=LOOPS)
LOST = Loss(LossCause.SKIPPED, (8, "not a message"))


def pieces(case: Case, builder: IncrementalBuilder) -> Iterator[HistoryPiece]:
    """The execution as a decoder tells it, taken away at random moments."""
    path: list[int] = []
    paths: dict[tuple[int, ...], Path] = {}

    def told() -> None:
        if path:
            builder.append(paths.setdefault(tuple(path), Path((tuple(path),))))
            path.clear()

    for position, pc in enumerate(case.pcs):
        if position in case.chains or pc == GAP or case.rng.random() < 0.2:
            told()
        for epc, handler in case.chains.get(position, ()):
            trap = next(event for event in case.events if event.position == position)
            builder.event(EventKind.TRAP, position, trap.fact, last_pc=epc, next_pc=handler)
        if case.rng.random() < 0.1:
            told()
            yield builder.take()
        if pc == GAP:
            builder.gap(EventKind.LOSS, position, LOST)
            builder.resume(case.pcs[position + 1], position + 1)
        else:
            path.append(pc)
    told()
    yield builder.take(last=True)


@each_seed(range(300), share=20)
def test_counts(seed: int) -> None:
    case = Case(seed)
    growing = GrowingProfile(case.image)
    for piece in pieces(case, IncrementalBuilder()):
        growing.add(3, piece)
    profile = growing.profile
    ran = [pc for pc in case.pcs if pc != GAP]
    (totals,) = profile.harts
    assert (totals.hart, totals.instructions, totals.gaps) == (3, len(ran), len(case.pcs) - len(ran))
    assert profile.ran == Counter(map(place, ran))
    assert profile.steps == +steps_of(case, range(len(case.pcs)))
    assert sum(tally.times for tally in profile.traps.values()) == len(case.events)
    assert sum(tally.times for cause, tally in profile.gaps.items() if cause.lost) == len(case.pcs) - len(ran)


def test_memory_is_that_of_the_code_that_ran() -> None:
    """The same execution again and again adds no counter."""
    case, builder = Case(7), IncrementalBuilder()
    growing = GrowingProfile(case.image)
    sizes = []
    for _ in range(4):
        path = Path((tuple(pc for pc in case.pcs if pc != GAP),))
        for _ in range(5):
            builder.append(path)
            growing.add(0, builder.take())
        profile = growing.profile
        sizes.append((len(profile.ran), len(profile.steps), len(profile.code), len(profile.programs)))
    assert len(set(sizes)) == 1
    assert profile.instructions == 20 * len(path)
