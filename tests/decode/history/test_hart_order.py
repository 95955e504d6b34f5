"""Histories of several harts in the order of their times."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.hart_order import HartOrder, HistoryRun, untimed
from rvtrace_gdb.decode.history.history import History, Path
from tests.helpers.event_facts import lost


def history(*steps: tuple[int | None, int]) -> History:
    """(time, or None for none; how many instructions follow)."""
    builder = HistoryBuilder()
    for time, count in steps:
        if time is not None:
            builder.time(time)
        if count:
            builder.append(Path((tuple(range(0, 4 * count, 4)),)))
    return builder.finish(Accounting(0, 0, 0, 0))


def test_pieces_come_in_the_order_of_their_times() -> None:
    """Worked out by hand: 0 runs at 10 and 40, 1 at 20 and 30 without a break, then at 50."""
    harts = {0: history((10, 3), (40, 2)), 1: history((20, 4), (30, 1), (50, 6))}
    assert list(HartOrder(harts).runs()) == [
        HistoryRun(0, 0, 3),
        HistoryRun(1, 0, 5),
        HistoryRun(0, 3, 5),
        HistoryRun(1, 5, 11),
    ]


def test_equal_times_come_in_the_order_of_the_harts() -> None:
    assert list(HartOrder({3: history((7, 1)), 1: history((7, 2))}).runs()) == [
        HistoryRun(1, 0, 2),
        HistoryRun(3, 0, 1),
    ]


def test_what_ran_before_the_first_time_belongs_to_it() -> None:
    assert list(HartOrder({0: history((None, 2), (10, 3)), 1: history((5, 1))}).runs()) == [
        HistoryRun(1, 0, 1),
        HistoryRun(0, 0, 5),
    ]


def test_a_time_that_goes_back_does_not_reorder_a_hart() -> None:
    """After a reset of its counter, for instance."""
    harts = {0: history((100, 1), (3, 1), (120, 1)), 1: history((110, 1))}
    assert list(HartOrder(harts).runs()) == [HistoryRun(0, 0, 2), HistoryRun(1, 0, 1), HistoryRun(0, 2, 3)]


def test_harts_without_times_come_last_one_after_the_other() -> None:
    harts = {0: history((None, 4)), 1: history((9, 1)), 2: history((None, 2)), 3: history()}
    assert untimed(harts) == [0, 2, 3]
    assert list(HartOrder(harts).runs()) == [HistoryRun(1, 0, 1), HistoryRun(0, 0, 4), HistoryRun(2, 0, 2)]


def test_gaps_are_positions_too() -> None:
    builder = HistoryBuilder()
    builder.time(5)
    builder.append(Path(((0, 4),)))
    builder.gap(EventKind.LOSS, 0, lost())
    builder.time(9)
    builder.append(Path(((8,),)))
    harts = {0: builder.finish(Accounting(0, 0, 0, 0)), 1: history((7, 1))}
    assert list(HartOrder(harts).runs()) == [HistoryRun(0, 0, 3), HistoryRun(1, 0, 1), HistoryRun(0, 3, 4)]


_steps = st.lists(st.tuples(st.none() | st.integers(0, 30), st.integers(0, 3)), max_size=8)
_histories = _steps.map(lambda steps: history(*steps))


@given(st.dictionaries(st.integers(0, 5), _histories, max_size=4))
def test_every_position_comes_once_and_each_hart_keeps_its_order(harts: dict[int, History]) -> None:
    found = list(HartOrder(harts).runs())
    assert all(run.begin < run.end for run in found)
    assert all(one.hart != other.hart for one, other in pairwise(found))
    for hart, own in harts.items():
        positions = [position for run in found if run.hart == hart for position in range(run.begin, run.end)]
        assert positions == list(range(len(own)))


def test_what_is_settled_ran_before_the_time_up_to_which_all_harts_are_known() -> None:
    """Hart 0 is known up to 40, hart 1 up to 30: its last time may still be replaced."""
    harts = {0: history((10, 3), (40, 2)), 1: history((20, 4), (30, 1), (50, 0))}
    assert HartOrder(harts).settled == 3 + 4
    assert HartOrder({**harts, 2: history((None, 1))}).settled == 0


def ordered(harts: dict[int, History], end: int | None = None) -> list[tuple[int, int]]:
    return [(run.hart, at) for run in HartOrder(harts).runs(0, end) for at in range(run.begin, run.end)]


@given(st.dictionaries(st.integers(0, 3), st.tuples(_steps, st.integers(0, 8)), max_size=3))
def test_what_is_settled_stays_as_histories_grow(harts: dict[int, tuple[list[tuple[int | None, int]], int]]) -> None:
    begun = {hart: history(*steps[:end]) for hart, (steps, end) in harts.items()}
    if all(map(len, begun.values())):
        settled = HartOrder(begun).settled
        grown = {hart: history(*steps) for hart, (steps, _) in harts.items()}
        assert ordered(begun, settled) == ordered(grown, settled)
