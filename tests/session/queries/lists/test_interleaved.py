"""All harts' histories as one list: against sorting every instruction, and histories too long for that."""

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.session.queries.lists.interleaved import HartRange, Interleaved
from rvtrace_gdb.session.queries.lists.pages import PageSelection, RangeError
from rvtrace_gdb.session.selected_history import HistoryNumber
from tests.decode.history.test_hart_order import history

Place = tuple[int, int]
"""(hart, number in its history)."""


def naive(harts: dict[int, History]) -> list[Place]:
    """Each instruction's time worked out by itself, then a sort."""
    keyed = []
    for hart, own in harts.items():
        stamps = dict(own.times)
        now, known = (own.times[0][1] if own.times else 0), bool(own.times)
        for position in range(len(own)):
            now = max(now, stamps.get(position, now))
            keyed.append((not known, now, hart, position + 1))
    return [(hart, number) for _, _, hart, number in sorted(keyed)]


def places(runs: list[HartRange]) -> list[Place]:
    return [(run.hart, number) for run in runs for number in range(run.begin, run.end)]


_histories = st.lists(st.tuples(st.none() | st.integers(0, 30), st.integers(0, 4)), max_size=8).map(
    lambda steps: history(*steps)
)
_harts = st.dictionaries(st.integers(0, 5), _histories, max_size=4)


@given(_harts)
def test_the_order_is_that_of_sorting_everything(harts: dict[int, History]) -> None:
    found = Interleaved(harts)
    expected = naive(harts)
    assert len(found) == len(expected)
    assert places(list(found.runs(1, len(found) + 1))) == expected


@given(_harts, st.integers(1, 60), st.integers(0, 60))
def test_any_part_is_a_part_of_the_whole(harts: dict[int, History], begin: int, count: int) -> None:
    """With the numbers in the list, and in as few pieces as there can be."""
    found = list(Interleaved(harts).runs(begin, begin + count))
    assert places(found) == naive(harts)[begin - 1 : begin - 1 + count]
    numbers = [run.number + k for run in found for k in range(run.end - run.begin)]
    assert numbers == list(range(begin, begin + len(numbers)))
    assert all(one.hart != other.hart for one, other in pairwise(found))


@given(_harts)
def test_where_a_row_of_a_hart_is_in_the_list(harts: dict[int, History]) -> None:
    found = Interleaved(harts)
    for number, (hart, own) in enumerate(naive(harts), 1):
        assert found.number(HistoryNumber(hart, own)) == number
        if own == len(harts[hart]):
            assert found.number(HistoryNumber(hart, own + 1)) == number + 1, "behind its last one"


TWO = {0: history((10, 3), (40, 2)), 1: history((20, 4), (30, 1), (50, 6))}


def test_a_place_of_a_hart_stands_for_a_number() -> None:
    found = Interleaved(TWO)
    assert found.select("1:5", 4) == PageSelection(8, 12)
    assert found.select("1:5,0:4", 4) == PageSelection(8, 10)
    assert found.select("0:4, +2", 4) == PageSelection(9, 11)
    for args, error in {
        "2:1": "hart 2 is not in this trace, which has harts 0, 1",
        "0:0": "Range out of bounds: numbers of hart 0 go from 1 to 5.",
        "1:0": "Range out of bounds: numbers of hart 1 go from 1 to 11.",
        "0:6": "Range out of bounds: numbers of hart 0 go from 1 to 5.",
        "0:": "Junk after argument: :.",
        "0:4x": "Junk after argument: :4x.",
    }.items():
        with pytest.raises(RangeError) as raised:
            found.select(args, 4)
        assert str(raised.value) == error


def test_what_is_not_known_of_the_order_is_said_once() -> None:
    untimed, timed, nothing = history((None, 4)), history((9, 1)), history()
    assert Interleaved({0: timed, 1: timed, 2: nothing}).notes() == []
    assert Interleaved({0: untimed, 2: nothing}).notes() == [], "there is nothing to order"
    some = Interleaved({0: untimed, 1: timed, 2: nothing})
    assert some.notes() == ["note:     hart 0 has no timestamps and comes last"] and some.notes() == []
    [note] = Interleaved({0: untimed, 1: untimed}).notes()
    assert note == "note:     the trace has no timestamps: one hart after the other, which is not the order in time"


def test_long_histories_are_not_merged_before_a_page_is_shown() -> None:
    """400 million instructions of four harts with a million times: seconds to merge, a page is some milliseconds."""
    harts = {hart: long_history(hart) for hart in range(4)}
    begin = process_time()
    found = Interleaved(harts)
    assert len(found) == 400_000_000
    for args in ("", "-", "200000000", "3:100000000,-10", "1,10"):
        selection = found.select(args, 10)
        assert sum(run.end - run.begin for run in found.runs(selection.begin, selection.end)) == 10
    assert process_time() - begin < 1


def long_history(hart: int) -> History:
    """A time each 400 instructions; the harts' clocks do not tick together."""
    builder, part = HistoryBuilder(), Path((tuple(range(0, 1600, 4)),))
    for moment in range(250_000):
        builder.time(10 * moment + hart)
        builder.append(part)
    return builder.finish(Accounting(0, 0, 0, 0))
