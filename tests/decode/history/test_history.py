"""The history: positions, gaps and events, and that a billion instructions are not a burden."""

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import GAP, History, Path, RepeatPath
from tests.helpers.amounts import LONG, some_of
from tests.helpers.event_facts import STARTS, STOPS, SYNCHRONIZED, lost

NOTHING = Accounting(0, 0, 0, 0)


def built(*paths: Path | RepeatPath) -> History:
    builder = HistoryBuilder()
    for path in paths:
        builder.append(path)
    return builder.finish(NOTHING)


parts = st.lists(st.lists(st.integers(0, 1 << 64), min_size=1, max_size=5).map(tuple), min_size=1, max_size=4)
paths = st.recursive(
    parts.map(Path),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(Path)
        | st.tuples(parts.map(Path), st.integers(1, 20)).map(lambda pair: RepeatPath(*pair))
    ),
    max_leaves=5,
)


def flat(path: Path | RepeatPath) -> list[int]:
    """The addresses of a path, the slow way."""
    if isinstance(path, RepeatPath):
        return flat(path.path) * path.times
    return [pc for part in path.parts for pc in (part if isinstance(part, tuple) else flat(part))]


@settings(derandomize=True, max_examples=some_of(200), deadline=None)
@given(st.lists(st.tuples(paths, st.integers(1, 12)), max_size=20), st.data())
def test_every_way_to_read_a_history_gives_the_same(
    runs: list[tuple[Path | RepeatPath, int]], data: st.DataObject
) -> None:
    history = built(*[path for path, times in runs for _ in range(times)])
    expected = [pc for path, times in runs for _ in range(times) for pc in flat(path)]
    assert len(history) == history.instructions == len(expected)
    assert list(history.pcs()) == expected
    assert [history.pc(i) for i in range(len(expected))] == expected
    start, stop = data.draw(st.integers(0, len(expected) + 3)), data.draw(st.integers(0, len(expected) + 3))
    assert list(history.pcs(start, stop)) == expected[start:stop]


def test_positions_outside_are_an_error() -> None:
    history = built(Path([(1, 2, 3)]))
    for i in (-1, 3):
        with pytest.raises(IndexError):
            history.pc(i)
    assert list(built().pcs()) == []


def test_a_gap_is_one_position_with_its_cause() -> None:
    builder = HistoryBuilder()
    builder.event(EventKind.SYNC, 0, STARTS, next_pc=0x10)
    builder.append(Path([(0x10, 0x12)]))
    builder.gap(EventKind.OVERFLOW, 7, lost("messages lost"))
    builder.gap(EventKind.LOSS, 9, lost("bytes skipped"))
    builder.resume(0x40, 12)
    builder.event(EventKind.SYNC, 12, SYNCHRONIZED, next_pc=0x40)
    builder.append(Path([(0x40, 0x42)]))
    history = builder.finish(NOTHING)
    assert list(history.pcs()) == [0x10, 0x12, GAP, 0x40, 0x42]
    assert (len(history), history.instructions, history.gaps) == (5, 4, 1)
    assert history.gap_at(2) == (2, EventKind.OVERFLOW, 7, lost("messages lost"), 0x12, 0x40, 9, None)
    assert [(e.position, e.kind) for e in history.events] == [
        (0, EventKind.SYNC),
        (2, EventKind.OVERFLOW),
        (2, EventKind.LOSS),
        (3, EventKind.SYNC),
    ]
    assert [e.offset for e in history.events_between(2, 3)] == [7, 9]
    for i in (1, 3):
        with pytest.raises(LookupError):
            history.gap_at(i)


def test_what_is_lost_before_the_first_instruction_is_an_event_and_no_position() -> None:
    builder = HistoryBuilder()
    builder.gap(EventKind.LOSS, 0, lost("noise"))
    builder.resume(0x10, 4)
    builder.append(Path([(0x10,)]))
    history = builder.finish(NOTHING)
    assert list(history.pcs()) == [0x10]
    assert history.events[0][:3] == (0, EventKind.LOSS, 0)
    assert history.gaps == 0


def test_a_stop_becomes_a_gap_only_when_tracing_goes_on_elsewhere() -> None:
    builder = HistoryBuilder()
    builder.append(Path([(0x10,)]))
    builder.event(EventKind.TRACE_OFF, 5, STOPS)
    builder.resume(0x12, 6)
    builder.event(EventKind.TRACE_ON, 6, STARTS)
    builder.append(Path([(0x12,)]))
    builder.event(EventKind.TRACE_OFF, 7, STOPS)
    builder.add_gap()
    builder.resume(0x80, 9)
    builder.append(Path([(0x80,)]))
    history = builder.finish(NOTHING)
    assert list(history.pcs()) == [0x10, 0x12, GAP, 0x80]
    assert history.gap_at(2)[2:] == (7, STOPS, 0x12, 0x80, 9, None)


def test_very_many_instructions_in_memory() -> None:
    """A loop whose messages repeat with a period of three, as branch history does when it does not fit the loop."""
    rng = random.Random(0)
    loop = [Path([tuple(rng.randrange(1 << 32) * 2 for _ in range(97))] * n) for n in (3, 4, 3)]
    in_round = [pc for path in loop for pc in flat(path)]
    instructions = 10**9 if LONG else 10**8
    rounds = instructions // len(in_round)
    tracemalloc.start()
    builder = HistoryBuilder()
    for _ in range(rounds // 1000):
        for path in loop * 1000:
            builder.append(path)
        builder.flush()
    history = builder.finish(NOTHING)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert history.instructions > 0.999 * instructions
    assert peak < instructions // 5
    for i in (0, 1, 969, 970, 12_345_678, instructions // 1000 * 999):
        assert history.pc(i) == in_round[i % len(in_round)]
    middle = instructions // 2 + 11
    assert list(history.pcs(middle, middle + 5)) == [in_round[i % len(in_round)] for i in range(middle, middle + 5)]


def test_equal_repetitions_are_one_object() -> None:
    """Who looks at each different entry once has one of them to look at, however often a loop ran so long."""
    loop, rest = Path([(1, 2)]), Path([(3,)])
    entries = built(*[loop] * 9, rest, *[loop] * 9, rest, *[loop] * 8).entries
    assert entries[0] is entries[2] and entries[0].count == 18 and entries[4].count == 16
