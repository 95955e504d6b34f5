"""What may have run in a gap is unknown: of traces with losses, against what the hart retired."""

import random
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.decode.coverage import functions
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.history.history import Path as CodePath
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.coverage.counting import code_of
from rvtrace_gdb.reports.coverage.jump_tables import is_table_jump
from rvtrace_gdb.reports.coverage.program_coverage import BranchOutcome, JumpOutcome, ProgramCoverage, merged
from rvtrace_gdb.reports.coverage.source_coverage import source_coverage
from tests.decode.history.test_history import NOTHING
from tests.helpers.amounts import each_seed
from tests.helpers.cross_compiler import EXAMPLES, symbol_address
from tests.helpers.event_facts import lost
from tests.reports.coverage.traced import coverage, decoded, program, retired, trace


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def elf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("gaps"), level=request.param)


@pytest.fixture(scope="module")
def pcs(elf: Path) -> list[int]:
    return retired(elf)


def history_of(pcs: list[int], lost_parts: list[range]) -> History:
    """A history of some instructions, of which parts are lost."""
    builder = HistoryBuilder()
    start = 0
    for part in [*lost_parts, range(len(pcs), len(pcs))]:
        if part.start > start:
            builder.append(CodePath([tuple(pcs[start : part.start])]))
        if part:
            builder.gap(EventKind.LOSS, part.start, lost())
        start = part.stop
    return builder.finish(NOTHING)


@each_seed(range(60))
def test_what_ran_is_never_uncovered(seed: int, elf: Path, pcs: list[int]) -> None:
    """Of random losses: each instruction, line and outcome of the whole run is covered or unknown."""
    rng = random.Random(seed)
    places = sorted(rng.sample(range(len(pcs) + 1), 2 * rng.randint(1, 4)))
    found = coverage(elf, history_of(pcs, [range(*pair) for pair in zip(places[::2], places[1::2], strict=True)]))
    check(found, elf, pcs)
    if not seed % 10:
        lines, whole = source_coverage([found]), source_coverage([coverage(elf, history_of(pcs, []))])
        for path, file in whole.items():
            for line, one in file.lines.items():
                assert not one.times or lines[path].lines[line].times != 0, (path, line)


def check(found: ProgramCoverage, elf: Path, pcs: list[int]) -> None:
    assert not [hex(pc) for pc in set(pcs) if found.times_run(pc) == 0]
    image = Image.from_elf(elf)
    for before, after in set(pairwise(pcs)):
        instruction = image.instruction(before)
        if instruction.is_branch and instruction.offset != instruction.length:
            taken = after == before + (instruction.offset or 0)
            assert found.times_of(BranchOutcome(before, taken)) != 0, hex(before)
        elif is_table_jump(instruction):
            assert found.times_of(JumpOutcome(before, after)) != 0, hex(before)


@pytest.fixture(scope="module")
def data(elf: Path, pcs: list[int], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("whole") / "it.nex"
    return trace(elf, pcs, file, "--sync-mode", "messages").read_bytes()


@each_seed(range(60))
def test_damaged_bytes_uncover_nothing(seed: int, elf: Path, pcs: list[int], data: bytes) -> None:
    """The same, of a trace whose bytes were lost, as it is decoded."""
    rng = random.Random(seed)
    start = rng.randrange(len(data))
    history = decoded(elf, data[:start] + data[start + rng.randint(1, len(data) // 4) :])
    found = coverage(elf, history)
    is_lossy = any(event.is_loss for event in history.events)  # else the end is missing, which the trace cannot show
    if is_lossy:
        check(found, elf, pcs)


def test_what_cannot_run_in_a_gap_is_uncovered(tmp_path: Path) -> None:
    """A gap inside `main` does not make `_start` or what nobody calls unknown."""
    source = tmp_path / "it.c"
    source.write_text(
        "volatile int r;\n"
        "int nobody(int n) { return n * 3; }\n"
        "int callee(int n) { return n ? n + 1 : r; }\n"
        "int main(void) { for (int i = 0; i < 9; i++) r += callee(i); return 0; }\n"
    )
    elf = program(tmp_path, [source])
    pcs = retired(elf)
    inside = [i for i, pc in enumerate(pcs) if pc == symbol_address(elf, "callee")]
    found = coverage(elf, history_of(pcs[inside[2] :], [range(3, 40)]))
    state = {function.name: found.times_run(function.start) for function in functions(Image.from_elf(elf))}
    assert state["nobody"] == 0 and state["_start"] == 0
    short = coverage(elf, history_of(pcs[: inside[0]], [range(len(pcs[: inside[0]]) - 2, inside[0])]))
    assert short.times_run(symbol_address(elf, "callee")) is None
    assert short.times_run(symbol_address(elf, "nobody")) == 0


def test_everything_may_have_run_where_nothing_bounds_it(elf: Path, pcs: list[int]) -> None:
    """A gap at the beginning of the trace, with no place before it; and one before a reset leads anywhere."""
    found = coverage(elf, history_of(pcs, [range(50)]))
    beginning = found.times_run(symbol_address(elf, "_start"))
    assert beginning is None
    reset = coverage(elf, history_of([*pcs[200:300], *pcs], [range(50, 100)]))
    assert not [pc for pc in code_of(Image.from_elf(elf)) if reset.times_run(pc) == 0 and pc in reset.maybe_ran]


def test_runs_add_up(elf: Path, pcs: list[int]) -> None:
    """What one run does not know, another one may: covered by any run, unknown if none covers it and one may have."""
    part = coverage(elf, history_of(pcs, [range(100, len(pcs) - 5)]))
    whole = coverage(elf, history_of(pcs, []))
    [both] = merged([part, whole])
    assert both.runs == 2 and both.gaps == 1
    assert all(both.times_run(pc) == whole.ran[pc] + part.ran.get(pc, 0) for pc in whole.ran)
    unknown = {pc for pc in code_of(Image.from_elf(elf)) if both.times_run(pc) is None}
    assert unknown == part.maybe_ran - whole.ran.keys()


def test_a_handler_may_run_in_any_gap(tmp_path: Path) -> None:
    """`on_trap` of the demo, whose address it writes to mtvec, is unknown after any gap."""
    elf = program(tmp_path, [EXAMPLES / "demo.c"], "-Og")
    pcs = retired(elf)
    found = coverage(elf, history_of(pcs[:100], [range(50, 60)]))
    assert found.times_run(symbol_address(elf, "on_trap")) is None


def test_where_the_trace_ends_at_a_branch_its_outcome_is_unknown(elf: Path, pcs: list[int]) -> None:
    image = Image.from_elf(elf)
    at = next(i for i, pc in enumerate(pcs) if image.instruction(pc).is_branch)
    found = coverage(elf, history_of(pcs[: at + 1], []))
    assert {found.times_of(BranchOutcome(pcs[at], taken)) for taken in (False, True)} == {None}
