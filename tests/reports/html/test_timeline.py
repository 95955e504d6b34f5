"""The slices of a page's timeline: which function they say ran, against what did; and how many there are at most."""

from array import array
from base64 import b64decode
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History, Times
from rvtrace_gdb.decode.history.history import Path as CodePath
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.html import timeline
from rvtrace_gdb.reports.html.timeline import SHORT, PageRow, PageTimeline, hart_timeline
from tests.decode.history.test_history import NOTHING
from tests.helpers.event_facts import lost
from tests.reports.coverage.traced import program, retired

Slice = tuple[int, int, int, int]
"""Where it begins and ends, the number of its name, and calls in it that are not drawn."""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("timeline"))


@pytest.fixture(scope="module")
def pcs(elf: Path) -> list[int]:
    return retired(elf)


def history_of(pcs: list[int]) -> History:
    builder = HistoryBuilder()
    for start in range(0, len(pcs), 100):
        builder.append(CodePath([tuple(pcs[start : start + 100])]))
    return builder.finish(NOTHING)


def unpacked(row: PageRow, start: int = 0) -> list[Slice]:
    numbers, value, shift = list[int](), 0, 0
    for byte in b64decode(row.packed):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    found, last = list[Slice](), start
    for at in range(0, len(numbers), 4):
        gap, length, name, calls = numbers[at : at + 4]
        found.append((last + gap, last + gap + length, name, calls))
        last += gap + length
    assert len(found) == row.slices
    return found


def all_calls(made: PageTimeline) -> int:
    """How many are drawn or counted; what was not called is no call."""
    slices = [it for row in made.rows for it in unpacked(row)]
    drawn = [made.names[name][0] for _, _, name, _ in slices if name != SHORT]
    return sum(calls for _, _, _, calls in slices) + sum(name not in ("_start", "_exit") for name in drawn)


def test_the_innermost_slice_is_what_ran(elf: Path, pcs: list[int]) -> None:
    image = Image.from_elf(elf)
    made = hart_timeline(CallHistory(history_of(pcs), image), 0)
    assert (made.unit, made.begin, made.end, made.least) == ("instructions", 0, len(pcs), 0)
    shown = [""] * len(pcs)
    for row in made.rows:  # the outermost first
        for begin, end, name, _ in unpacked(row):
            shown[begin:end] = [made.names[name][0]] * (end - begin)
    names = [symbol[0] if (symbol := image.symbol(pc)) else "" for pc in pcs]
    assert shown == names


@pytest.mark.parametrize("most", [3, 20, 100])
def test_what_is_too_short_is_counted(most: int, elf: Path, pcs: list[int]) -> None:
    calls = CallHistory(history_of(pcs), Image.from_elf(elf))
    whole, coarse = hart_timeline(calls, 0), hart_timeline(calls, 0, most)
    assert sum(row.slices for row in coarse.rows) <= most < sum(row.slices for row in whole.rows)
    assert coarse.least > 1 and all_calls(coarse) == all_calls(whole) > 200
    for row in coarse.rows:
        slices = unpacked(row)
        assert all(before[1] <= after[0] for before, after in pairwise(slices))
        assert all(end - begin >= coarse.least for begin, end, name, _ in slices if name != SHORT)


def test_where_there_are_times_they_are_the_axis(elf: Path, pcs: list[int]) -> None:
    history = history_of(pcs)
    entry = next(at for at, pc in enumerate(pcs) if Image.from_elf(elf).symbol(pc) == ("main", 0))
    history.times = Times(array("Q", [0, entry, entry + 99, len(pcs) - 1]), array("Q", [1000, 5000, 6000, 9000]))
    made = hart_timeline(CallHistory(history, Image.from_elf(elf)), 0)
    assert (made.unit, made.begin, made.end) == ("ticks", 1000, 9000)
    [main] = [it for row in made.rows for it in unpacked(row, 1000) if made.names[it[2]][0] == "main"]
    assert main[:2] == (5000, 6000), "it ends between two times: at the earlier one"
    history.times = Times(array("Q", [0, entry, len(pcs) - 1]), array("Q", [1000, 500, 9000]))
    made = hart_timeline(CallHistory(history, Image.from_elf(elf)), 0)
    assert made.unit == "instructions" and "go back" in made.remarks[0]


def test_many_gaps_are_all_there(elf: Path, pcs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MARKS", 50)
    builder = HistoryBuilder()
    for start in range(0, len(pcs), 20):
        builder.append(CodePath([tuple(pcs[start : start + 20])]))
        builder.gap(EventKind.LOSS, start, lost())
    history = builder.finish(NOTHING)
    made = hart_timeline(CallHistory(history, Image.from_elf(elf)), 0)
    assert len(made.missing) <= 50 and sum(it.times for it in made.missing) == history.gaps > 500
    assert made.missing[0].begin == history.gap_positions[0]
    assert made.missing[-1].end == history.gap_positions[-1] + 1
    assert all(made.texts[it.text].startswith("lost: ") for it in made.missing)
