"""How deep the stacks were, against the simulated hart, which notes sp after each instruction."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.rows.stack_rows import StackDepth
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.stack.depth import stack_depths
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import HOME
from tests.helpers.example_captures import example_capture
from tests.session.questions.stack.runs import STACKS, ProgramSymbols, RunPoint, StackRun, compiled_usage, stack_run


def answer(run: StackRun, args: str = "") -> StackDepth:
    session = Session()
    session.open(run.capture, None)
    [found] = stack_depths(session, Context(), args)
    session.close()
    return found


PROGRAMS = (
    ("rv64imac_zicsr", "-O2", False), ("rv32imac_zicsr", "-O2", False), ("rv64imac_zicsr", "-O2", True),
    ("rv64imac_zicsr", "-fno-omit-frame-pointer", False),
)  # fmt: skip


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda it: f"{it[0]}{it[1]}{'-E-Trace' if it[2] else ''}")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> StackRun:
    march, optimized, etrace = request.param
    return stack_run(tmp_path_factory.mktemp("stack"), march, optimized, etrace=etrace)


class HartTruth:
    """What the hart says: {area: {what: lowest sp}}."""

    def __init__(self, run: StackRun) -> None:
        self.symbols = ProgramSymbols(run.elf)
        self.top = self.symbols.places["__stack_top"]
        begin = next(number for number, it in enumerate(run.points) if it.sp == self.top)
        self.points: list[RunPoint] = run.points[begin:]

    def area(self, sp: int) -> str:
        ends = sorted((self.symbols.places[name], name) for name in STACKS)
        named = [name for start, name in ends if start < sp]
        last = self.symbols.places["__bss_end"]
        return "stack" if sp > last else named[-1]

    def lows(self) -> Iterator[tuple[tuple[str, object], int]]:
        for pc, sp, level in self.points:
            area = self.area(sp)
            yield (area, ""), sp
            yield (area, level), sp
            yield (area, self.symbols.function(pc)), sp

    def lowest(self) -> dict[tuple[str, object], int]:
        found = dict[tuple[str, object], int]()
        for what, sp in self.lows():
            found[what] = min(sp, found.get(what, sp))
        return found


def answered(depth: StackDepth) -> dict[tuple[str, object], int]:
    found = dict[tuple[str, object], int]()
    for area in depth.areas:
        found[area.name, ""] = area.lowest
        found |= {(area.name, it.level): it.lowest for it in area.levels}
        found |= {(area.name, it.name): it.lowest for it in area.functions}
    return found


def test_the_lowest_sp_of_each_area_level_and_function_is_the_harts(run: StackRun) -> None:
    truth, depth = HartTruth(run), answer(run)
    assert {it.name for it in depth.areas} == {"stack", *STACKS} and not depth.unknown
    assert answered(depth) == truth.lowest()
    for area in depth.areas:  # and where it was is where the hart first had it, or had it again
        assert area.place is not None and area.place.number is not None
        point = run.points[area.place.number - 1]
        assert (point.pc, point.sp) == (area.place.pc, area.lowest)


def test_the_frames_of_a_chain_add_up(run: StackRun) -> None:
    for area in answer(run).areas:
        taken = [it.bytes for it in area.chain for _ in range(it.times)]
        assert sum(it or 0 for it in taken) == area.used and None not in taken


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> StackRun:
    return stack_run(tmp_path_factory.mktemp("bare"), "rv64imac_zicsr", "-O2", registers=False)


def test_without_values_nothing_is_guessed(bare: StackRun) -> None:
    """What is said is right, and what a switch of stacks sets from memory is not known."""
    depth, truth = answer(bare), HartTruth(bare)
    lowest = truth.lowest()
    [area] = [it for it in depth.areas if it.name == "stack"]
    assert (area.end, depth.unknown != []) == (truth.top, True)
    assert all(lowest[what] <= low for what, low in answered(depth).items())
    first = next(n for n, it in enumerate(bare.points) if truth.symbols.function(it.pc) == "switch_stack")
    before = min(it.sp for it in truth.points[: first - len(bare.points) + len(truth.points)])
    assert area.lowest == before


def test_a_range_is_looked_at_alone(run: StackRun) -> None:
    """Its beginning is in the middle of calls, where sp is a known value."""
    first, last = len(run.points) - 3000, len(run.points) - 500
    depth, truth = answer(run, f"{first + 1},{last}"), HartTruth(run)
    found = {name: low for (name, what), low in answered(depth).items() if what == ""}
    lows = dict[str, int]()
    for _, sp, _ in run.points[first:last]:
        lows[truth.area(sp)] = min(sp, lows.get(truth.area(sp), sp))
    assert found == lows


def test_frames_are_those_of_the_compiler(run: StackRun, tmp_path: Path) -> None:
    """gcc -fstack-usage writes them: NAME, bytes, "static" or "dynamic"."""
    usage = compiled_usage(tmp_path, run.march, run.optimized)
    frames = {it.name: (it.frame, it.more) for area in answer(run).areas for it in area.functions}
    compared = {name: frames[name] for name in frames if name in usage}
    assert {"main", "fib", "big", "task_a", "task_b", "on_tick", "note", "scratch"} <= set(compared)
    for name, (size, more) in compared.items():
        assert more == (usage[name][1] != "static"), name
        assert more or size == usage[name][0], name


def test_the_page_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example_capture(tmp_path, "latency")
    monkeypatch.chdir(tmp_path)
    assert main(["stack", "latency.rvt", "--quiet"]) == 0
    printed = capsys.readouterr().out.splitlines()
    page = (HOME / "docs" / "stack.md").read_text(encoding="utf-8").split("    $ rvtrace stack latency.rvt\n")[1]
    assert printed == [line[4:] for line in page.split("\n\n")[0].splitlines()]
    assert all(len(line) <= 80 for line in printed)
