"""Intervals of traces of a simulated hart, against what the hart itself did: two programs, interrupts, recursion,
times; and traces with a hole.
"""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.intervals import tallies
from rvtrace_gdb.reports.profile.as_json import from_json, to_json
from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.reports.profile.measured import measured_rows
from rvtrace_gdb.reports.profile.sums import sum_of
from rvtrace_gdb.rows.intervals.answer import TICKS, IntervalsAnswer
from rvtrace_gdb.session.queries.intervals.answer import Finder, MeasuredIntervals
from rvtrace_gdb.session.queries.intervals.query import IntervalQuery, PlaceQuery
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.support.errors import silent
from tests.decode.calls.call_histories import in_small_blocks
from tests.helpers.cross_compiler import EXAMPLES, compile_program, symbol_address, symbol_size
from tests.reports.coverage.traced import decoded, program, trace
from tests.reports.coverage.traced import retired as retired_pcs
from tests.reports.intervals import golden
from tests.reports.intervals.golden import Retired, interrupts, traced

small_blocks = pytest.fixture(in_small_blocks, autouse=True, scope="module")
LENGTHS = {"demo": 30_000, "latency": 30_000, "nesting": 12_000}
FUNCTIONS = {
    "demo": ("fib", "classify", "add", "main"),
    "latency": ("work", "log_word", "crc_of"),
    "nesting": ("fib", "dive", "even", "odd", "leaf", "on_timer", "on_soft", "handle", "longjmp", "try_it"),
}
NESTING = Path(__file__).parent / "nesting.c"


class Traced(NamedTuple):
    """A program that was traced, and what the hart did."""

    elf: Path
    history: History
    image: Image
    run: Sequence[Retired]

    def function(self, name: str) -> PlaceQuery:
        return PlaceQuery("execution", ExecutionQuery(name, symbol_address(self.elf, name), function=True))

    def answer(
        self, first: PlaceQuery, last: PlaceQuery | None = None, unit: str = "instructions", part: range | None = None
    ) -> IntervalsAnswer:
        images = ContextImages(self.image)
        selected = SelectedHistory(self.history, images, 0, [])
        measured = MeasuredIntervals(selected, CallHistory(self.history, images))
        return measured.answer(IntervalQuery(first, last, unit, part), silent)

    def calls(self, name: str) -> list[tuple[int, int]]:
        images = ContextImages(self.image)
        finder = Finder(CallHistory(self.history, images), images, silent)
        return [(one.begin, one.end) for one in finder.calls_of_function(self.function(name)).intervals]


@pytest.fixture(scope="module", params=FUNCTIONS)
def it(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp(request.param)
    optimized = request.param == "nesting"  # calls become jumps
    source = NESTING if optimized else EXAMPLES / f"{request.param}.c"
    elf = compile_program(folder, source, options=("-O2",) if optimized else ())
    selected, run = traced(elf, folder, LENGTHS[request.param])
    assert [one.pc for one in run] == list(selected.history.pcs())
    return Traced(elf, selected.history, selected.program.base, run)


def calls(it: Traced, name: str) -> list[tuple[int, int]]:
    """What the hart says of the calls of a function."""
    known = _KNOWN.get((it.elf, name))
    if known is None:
        longjmp = range(0)
        if name_of(it) == "nesting":
            start = symbol_address(it.elf, "longjmp")
            longjmp = range(start, start + symbol_size(it.elf, "longjmp"))
        known = golden.calls(it.run, symbol_address(it.elf, name), symbol_size(it.elf, name), longjmp)
        _KNOWN[it.elf, name] = known
    return known


_KNOWN: dict[tuple[Path, str], list[tuple[int, int]]] = {}


def name_of(it: Traced) -> str:
    return it.elf.name.partition("-")[0]


def functions_of(it: Traced) -> Sequence[str]:
    return FUNCTIONS[name_of(it)]


def test_calls(it: Traced) -> None:
    for name in functions_of(it):
        expected = calls(it, name)
        assert it.calls(name) == expected, name
        answer = it.answer(it.function(name))
        lengths = sorted(end - begin for begin, end in expected)
        assert answer.measured == len(lengths)
        if lengths:
            found = answer.lengths[0]
            assert (found.least, found.greatest, found.total) == (lengths[0], lengths[-1], sum(lengths))
            assert sum(times for _, _, times in found.histogram) == len(lengths)


def test_interrupts(it: Traced) -> None:
    expected = interrupts(it.run)
    assert expected
    answer = it.answer(PlaceQuery("interrupt"))
    lengths = [end - begin for begin, end in expected]
    assert (answer.measured, answer.lengths[0].total) == (len(expected), sum(lengths))
    worst = [(row.first - 1, row.last) for row in answer.worst]
    assert worst == sorted(expected, key=lambda one: (one[0] - one[1], one[0]))[: len(worst)]
    by_cause = it.answer(PlaceQuery("interrupt", cause=7))
    known = [event.fact for event in it.history.events if event.kind.value == "trap"]
    assert by_cause.measured == sum(getattr(fact, "cause", None) == 7 for fact in known)
    assert it.answer(PlaceQuery("interrupt", cause=11)).measured == 0


def test_times(it: Traced) -> None:
    """Wrong by the resolution at most, which is what the hart's own clock says."""
    for name in functions_of(it):
        expected = calls(it, name)
        answer = it.answer(it.function(name), unit=TICKS)
        if not expected:
            continue
        ticks = {(row.first - 1, row.last): row.ticks for row in answer.worst}
        assert ticks and answer.lengths[1].measured
        for (begin, end), found in ticks.items():
            assert found is not None
            assert abs(found - (it.run[end].time - it.run[begin].time)) <= answer.lengths[1].resolution


def test_ways(it: Traced) -> None:
    """Those are one way that retired the same instructions."""
    for name in functions_of(it):
        ways: dict[tuple[int, ...], list[int]] = {}
        for begin, end in calls(it, name):
            ways.setdefault(tuple(one.pc for one in it.run[begin:end]), []).append(begin)
        answer = it.answer(it.function(name))
        assert answer.ways == len(ways)
        found = {(row.first - 1, row.times, row.instructions) for row in answer.variations}
        assert found <= {(begins[0], len(begins), len(way)) for way, begins in ways.items()}
        assert len(found) == min(len(ways), 10)


def test_from_one_place_to_another(it: Traced) -> None:
    """From each entry to the next return from any call; and from an interrupt to the next entry."""
    for name in functions_of(it):
        every = calls(it, name)
        place = it.function(name)
        entries = [at for at, one in enumerate(it.run) if one.pc == symbol_address(it.elf, name)]
        if not every or len(it.calls(name)) != len(entries):
            continue  # a loop, or a call that does not return
        ends = sorted(end for _, end in every)
        lengths = [next(end for end in ends if end > begin) - begin for begin in entries]
        answer = it.answer(place, PlaceQuery("return", place.search))
        assert (answer.measured, answer.lengths[0].total) == (len(entries), sum(lengths))
        interrupts = [at for at, one in enumerate(it.run) if one.traps]
        waits = [next((entry - at for entry in entries if entry >= at), None) for at in interrupts]
        known = [one for one in waits if one is not None]
        answer = it.answer(PlaceQuery("trap"), place)
        assert answer.measured == len(known) and answer.open == len(waits) - len(known)
        assert not known or answer.lengths[0].total == sum(known)


def test_a_part_has_those_that_begin_in_it(it: Traced) -> None:
    """With all of their length, of calls, traps and from one place to another; three parts add up to the whole."""
    function = symbol_address(it.elf, functions_of(it)[0])
    every, place = calls(it, functions_of(it)[0]), it.function(functions_of(it)[0])
    hits = [at for at, one in enumerate(it.run) if one.pc == function]
    traced_traps = interrupts(it.run)
    queries: list[tuple[PlaceQuery, PlaceQuery | None, list[tuple[int, int]]]] = [
        (place, None, every),
        (PlaceQuery("interrupt"), None, traced_traps),
        (place, place, list(pairwise(hits)) if len(hits) == len(it.calls(place.name)) else []),
    ]
    middle = every[len(every) // 2] if every else traced_traps[len(traced_traps) // 2]
    borders = (0, middle[0] + 1, middle[1] + 7, len(it.run))
    for first, last, expected in queries:
        whole, parts = it.answer(first, last), list[IntervalsAnswer]()
        for part in (range(*ends) for ends in pairwise(borders)):
            parts.append(it.answer(first, last, part=part))
            begun = [end - begin for begin, end in expected if begin in part]
            if expected:
                assert parts[-1].measured == len(begun) and parts[-1].part == (part.start + 1, part.stop)
                assert [row.total for row in parts[-1].lengths[:1]] == [sum(begun)] * bool(begun)
        for name in ("measured", "cut", "began", "open", "again"):
            assert sum(getattr(one, name) for one in parts) == getattr(whole, name), name


def test_reports_have_the_same(it: Traced) -> None:
    """The lengths of calls and of traps, of the whole and as the sum of two parts."""
    program = CallHistory(it.history, ContextImages(it.image))
    whole, middle = hart_profile(program, intervals=True), len(it.run) // 2
    halves = (range(middle), range(middle, len(it.run)))
    parts = [hart_profile(program, positions=part, intervals=True) for part in halves]
    rows = {row.name: row.tally for row in measured_rows(whole)}
    for name in functions_of(it):
        lengths = Counter(end - begin for begin, end in calls(it, name))
        if f"calls of {name}" in rows:
            assert rows[f"calls of {name}"].instructions == lengths
            assert sum(rows[f"calls of {name}"].ticks.values()) <= sum(lengths.values())
        else:
            assert sum(lengths.values()) <= 1 or len(rows) >= tallies.FUNCTIONS
    returned = [(begin, end) for begin, end, _ in golden.returned_traps(it.run)]
    every = Counter(end - begin for begin, end in returned)
    of_traps = (Counter(tally.instructions) for name, tally in rows.items() if "calls of" not in name)
    assert sum(of_traps, Counter[int]()) == every
    assert sum(one.instructions.total for one in whole.traps.values()) == sum(end - at for at, end in returned)
    added = {row.name: row.tally for row in measured_rows(sum_of(parts))}
    both = [{row.name for row in measured_rows(one)} for one in parts]
    assert {name: rows[name] for name in both[0] & both[1]} == {name: added[name] for name in both[0] & both[1]}
    assert len(both[0] & both[1]) > 2
    assert from_json(json.loads(json.dumps(to_json(whole)))) == whole


def test_what_a_loss_cuts_is_counted_apart(tmp_path: Path) -> None:
    """Each call that lies on one side of the hole is measured, no other is."""
    elf = program(tmp_path / "program")
    pcs = retired_pcs(elf)
    whole = trace(elf, pcs, tmp_path / "it.nex", "--sync-mode", "messages", "--sync-max", "0").read_bytes()
    image, cut = Image.from_elf(elf), 0
    names = [name for name in ("collatz", "deep", "elsewhere", "finish", "main") if image.symbols_named(name)]
    assert names
    for hole in range(len(whole) // 5, len(whole) - 64, len(whole) // 5):
        history = decoded(elf, whole[:hole] + whole[hole + 40 :])
        [gap] = history.gap_positions
        assert list(history.pcs(0, gap)) == pcs[:gap]
        lost = len(pcs) - len(history)  # what is behind the gap has numbers that are less by so many
        assert list(history.pcs(gap + 1)) == pcs[gap + 1 + lost :] and GAP not in history.pcs(gap + 1)
        it = Traced(elf, history, image, ())
        complete = Traced(elf, decoded(elf, whole), image, ())
        for name in names:
            every = complete.calls(name)
            sides = [one for one in every if one[1] <= gap]
            sides += [(b - lost, e - lost) for b, e in every if b > gap + lost]
            assert it.calls(name) == sorted(sides), name
            cut += it.answer(it.function(name)).cut
    assert cut
