"""The nearest instruction at one of some addresses: what a search of the list of all addresses finds."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import GAP, Path, RepeatPath
from rvtrace_gdb.decode.history.reverse_search import AddressSearch, OutsideRange, gaps_between
from rvtrace_gdb.support.errors import Cancelled
from tests.decode.calls.call_histories import history_of
from tests.helpers.amounts import some_of

PCS = st.lists(st.sampled_from([2, 4, 6, 8, 10, 40, 44, 48, 96]), min_size=1, max_size=120)


def expected(pcs: list[int], position: int, direction: int, addresses: frozenset[int] | OutsideRange) -> int | None:
    order = range(position + 1, len(pcs)) if direction > 0 else range(position - 1, -1, -1)
    return next((k for k in order if pcs[k] in addresses), None)


def with_gaps(pcs: list[int], rng: random.Random) -> list[int]:
    """Never first, and never two in a row, as in every history."""
    pcs = list(pcs)
    for k in range(1, len(pcs)):
        if pcs[k - 1] != GAP and rng.random() < 0.05:
            pcs[k] = GAP
    return pcs


@given(PCS, st.frozensets(st.sampled_from([2, 6, 40, 44, 96, 100]), max_size=3), st.integers(0, 1 << 30))
@settings(max_examples=some_of(400), deadline=None)
def test_as_a_search_of_the_list(pcs: list[int], addresses: frozenset[int], seed: int) -> None:
    rng = random.Random(seed)
    unit, times = rng.randrange(len(pcs)), rng.choice([1, 1, 9, 40])
    pcs = with_gaps(pcs[:unit] + pcs[unit : unit + 3] * times + pcs[unit:], rng)
    nearest = AddressSearch(history_of(pcs, rng=rng))
    for position in range(len(pcs) + 1):
        for direction in (1, -1):
            found = expected(pcs, position, direction, addresses)
            assert nearest.find(position, direction, addresses) == found
            farthest = rng.randrange(len(pcs))
            is_near = found is not None and (farthest - found) * direction >= 0
            limited = nearest.find(position, direction, addresses, farthest=farthest)
            assert limited == found if is_near else limited in (None, found)


@given(PCS, st.integers(0, 50), st.integers(0, 60), st.integers(0, 1 << 30))
@settings(max_examples=some_of(200), deadline=None)
def test_the_first_outside_of_a_range(pcs: list[int], start: int, size: int, seed: int) -> None:
    rng = random.Random(seed)
    pcs = with_gaps(pcs * rng.choice([1, 9]), rng)
    nearest, outside = AddressSearch(history_of(pcs, rng=rng)), OutsideRange(start, start + size)
    for position in range(len(pcs) + 1):
        for direction in (1, -1):
            assert nearest.find(position, direction, outside) == expected(pcs, position, direction, outside)


def long_history(rounds: int) -> tuple[list[int], AddressSearch]:
    """Nested repetitions, and many entries of few kinds with a rare one among them."""
    rng = random.Random(1)
    loop = RepeatPath(Path([(0x10, 0x12), RepeatPath(Path([(0x14,), (0x16, 0x18)]), 5)]), 7)
    kinds: list[Path | RepeatPath] = [Path([(0x20, 0x22, 0x24)]), Path([(0x30, 0x32), (0x20, 0x22, 0x24)]), loop]
    rare = Path([(0x20, 0x22, 0x24), (0x40, 0x42), (0x30, 0x32)])
    builder = HistoryBuilder()
    for k in range(rounds):
        builder.append(rare if k in (rounds // 3, rounds // 3 + 1, rounds - 5) else rng.choice(kinds))
    history = builder.finish(Accounting(0, 0, 0, 0))
    return list(history.pcs()), AddressSearch(history)


def test_far_ones() -> None:
    pcs, nearest = long_history(20000)
    rng = random.Random(2)
    for _ in range(some_of(300)):
        position, direction = rng.randint(0, len(pcs)), rng.choice([1, -1])
        addresses = frozenset(rng.sample([0x14, 0x18, 0x40, 0x42, 0x50], 2))
        ahead = pcs[position + 1 :] if direction > 0 else pcs[:position][::-1]
        places = [ahead.index(address) for address in addresses if address in ahead]
        found = position + direction * (1 + min(places)) if places else None
        assert nearest.find(position, direction, addresses) == found


def test_huge_repetitions_are_not_walked() -> None:
    inner = Path([(0x10, 0x12), (0x14,)])
    loop = RepeatPath(Path([RepeatPath(inner, 1 << 40), (0x16,)]), 1 << 10)
    builder = HistoryBuilder()
    builder.append(loop)
    builder.append(Path([(0x20,)]))
    history = builder.finish(Accounting(0, 0, 0, 0))
    nearest, round_length = AddressSearch(history), 3 * (1 << 40) + 1
    last = len(history) - 1
    assert nearest.find(0, 1, frozenset([0x20])) == last
    assert nearest.find(0, 1, frozenset([0x16])) == round_length - 1
    assert nearest.find(last, -1, frozenset([0x14])) == last - 2
    assert nearest.find(round_length, -1, frozenset([0x14])) == round_length - 2
    assert nearest.find(round_length - 1, 1, frozenset([0x16])) == 2 * round_length - 1
    assert nearest.find(0, 1, frozenset([0x18])) is None
    assert nearest.find(5 * round_length, -1, OutsideRange(0x10, 0x16)) == 5 * round_length - 1


def test_gaps_are_never_found_and_end_ranges() -> None:
    nearest = AddressSearch(history_of([2, 4, GAP, 2, 4]))
    assert nearest.find(4, -1, frozenset([GAP])) is None
    assert nearest.find(0, 1, OutsideRange(0, 100)) == 2


def test_progress_can_cancel_it() -> None:
    pcs, nearest = long_history(30000)

    def cancel(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    for direction, position in ((1, 0), (-1, len(pcs))):
        with pytest.raises(Cancelled):
            nearest.find(position, direction, frozenset([0x50]), cancel)
        assert nearest.find(position, direction, frozenset([0x50])) is None


def test_gaps_on_the_way() -> None:
    history = history_of([2, GAP, 4, 6, GAP, 8, GAP, 10])
    assert gaps_between(history, 2, 3).passed == 0
    for start, end, count, first in ((0, 7, 3, 1), (7, 0, 3, 6), (2, 5, 1, 4), (5, 0, 2, 4), (8, 6, 0, None)):
        found = gaps_between(history, start, end)
        assert (found.passed, found.first and found.first.position) == (count, first)
