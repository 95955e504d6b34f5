"""Jumps through tables: their targets against the relocations of the linker, how often each was taken against gcov."""

import json
import random
import re
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.coverage import functions
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.coverage.jump_tables import jump_tables
from rvtrace_gdb.reports.coverage.program_coverage import JumpOutcome, ProgramCoverage
from rvtrace_gdb.reports.coverage.source_coverage import BranchCoverage, JumpCoverage, source_coverage
from tests.helpers.amounts import LONG, each_seed
from tests.helpers.cross_compiler import HOME, symbol_address, symbol_size
from tests.reports.coverage.test_gaps import check, history_of
from tests.reports.coverage.traced import coverage, decoded, gcov, program, retired, trace

SOURCE = HOME / "tests" / "programs" / "tables" / "main.c"
ABI = {"rv64gc": "lp64", "rv32imac": "ilp32", "rv64gc_zba": "lp64", "rv32ima": "ilp32"}
LEVELS = ["-O0", "-Og", "-O1", "-O2", "-Os", "-O2 -fPIC", "-O2 -DFAR"]
EACH = [
    (compiler, march, model, level)
    for compiler in ("gcc", "clang")
    for march in ABI
    for model in ("medany", "medlow")
    for level in LEVELS
]
FEW = [EACH[number] for number in range(0, len(EACH), 9)]


def built(folder: Path, compiler: str, march: str, model: str, level: str) -> Path:
    """A program with nothing but the function, and the relocations that the linker applied."""
    target = [f"-march={march}", f"-mabi={ABI[march]}"]
    words = [*target, f"-mcmodel={model}", *level.split(), "-c", str(SOURCE), "-o", str(folder / "it.o")]
    clang = ["clang-19", f"--target=riscv{march[2:4]}-unknown-elf", "-mno-relax"]
    subprocess.run([*(clang if compiler == "clang" else ["riscv64-unknown-elf-gcc"]), *words], check=True)
    link = ["-nostdlib", "-Wl,-e,main,-Ttext=0x10000,--emit-relocs", str(folder / "it.o"), "-o", str(folder / "it")]
    subprocess.run(["riscv64-unknown-elf-gcc", *target, *link], check=True)
    return folder / "it"


def table_entries(elf: Path) -> set[int]:
    """What the relocations put into the table."""
    words = ["riscv64-unknown-elf-readelf", "-rW", str(elf)]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    inside = next(part for part in said.split("Relocation section ") if part.startswith("'.rela.rodata"))
    row = re.compile(r"R_RISCV_(?:32|64|ADD32)\s+([0-9a-f]+)\s+\S+\s+\+ ([0-9a-f]+)")
    return {int(it[1], 16) + int(it[2], 16) for it in row.finditer(inside)}


@pytest.mark.parametrize(("compiler", "march", "model", "level"), EACH if LONG else FEW)
def test_the_targets_are_those_of_the_relocations(
    compiler: str, march: str, model: str, level: str, tmp_path: Path
) -> None:
    elf = built(tmp_path, compiler, march, model, level)
    image = Image.from_elf(elf)
    [targets] = jump_tables(image, functions(image)).values()
    assert set(targets) == table_entries(elf) and len(targets) >= 7


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("tables"), [SOURCE])


@pytest.fixture(scope="module")
def pcs(elf: Path) -> list[int]:
    return retired(elf)


def jump_of(found: ProgramCoverage) -> tuple[JumpCoverage, list[BranchCoverage]]:
    """The jump of the switch, and the conditional branches in its line."""
    branches = source_coverage([found])[str(SOURCE)].branches
    [jump] = (it for it in branches if isinstance(it, JumpCoverage))
    return jump, [it for it in branches if isinstance(it, BranchCoverage) and it.line == jump.line]


def test_each_target_in_sql_as_often_as_the_hart_went_there(
    elf: Path, pcs: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = trace(elf, pcs, tmp_path / "it.nex")
    query = "SELECT addr, to_addr, times FROM jumps"
    assert main(["sql", str(file), query, "--ntrace", "--elf", str(elf), "--json", "--quiet"]) == 0
    rows = [json.loads(line).values() for line in capsys.readouterr().out.splitlines()]
    went = Counter(pairwise(pcs))
    assert all(went[int(pc, 16), int(to, 16)] == times for pc, to, times in rows) and len(rows) >= 7


def test_each_case_as_often_as_gcov_says(elf: Path, pcs: list[int], tmp_path: Path) -> None:
    """gcov has an outcome for each case, and one for `default`, to which both the comparison and the table lead."""
    found = coverage(elf, decoded(elf, trace(elf, pcs, tmp_path / "it.nex").read_bytes()))
    jump, [comparison] = jump_of(found)
    image = Image.from_elf(elf)
    times = Counter(dict(zip(jump.targets, (it or 0 for it in jump.outcomes), strict=True)))
    times[comparison.pc + (image.instruction(comparison.pc).offset or 0)] += comparison.taken or 0
    _, theirs = gcov(tmp_path, [SOURCE])[str(SOURCE)][jump.line]
    assert sorted(times.values()) == sorted(theirs.elements())
    assert 0 in times.values() and len(times) == 8
    walked = Counter(after for before, after in pairwise(pcs) if before == jump.pc)
    assert dict(walked) == {target: it for target, it in zip(jump.targets, jump.outcomes, strict=True) if it}


def test_a_target_is_unknown_where_a_gap_may_hide_it(elf: Path, pcs: list[int]) -> None:
    """A gap behind the jump, or the end: each is unknown. A gap inside of what leads nowhere else: none is."""
    whole, _ = jump_of(coverage(elf, history_of(pcs, [])))
    at = pcs.index(whole.pc)
    lost, _ = jump_of(coverage(elf, history_of(pcs[: at + 5], [range(at + 1, at + 3)])))
    assert set(lost.outcomes) == {None}
    ended, _ = jump_of(coverage(elf, history_of(pcs[: at + 1], [])))
    assert set(ended.outcomes) == {None}
    start = symbol_address(elf, "before")
    inside = range(start, start + symbol_size(elf, "before"))
    place = next(number for number in range(len(pcs)) if all(pc in inside for pc in pcs[number : number + 9]))
    known, _ = jump_of(coverage(elf, history_of(pcs, [range(place + 2, place + 5)])))
    assert known.outcomes == whole.outcomes and None not in known.outcomes


@each_seed(range(20))
def test_what_ran_is_never_uncovered(seed: int, elf: Path, pcs: list[int]) -> None:
    """Of random losses: each target to which the jump went is covered or unknown."""
    rng = random.Random(seed)
    places = sorted(rng.sample(range(len(pcs) + 1), 2 * rng.randint(1, 4)))
    lost_parts = [range(*pair) for pair in zip(places[::2], places[1::2], strict=True)]
    check(coverage(elf, history_of(pcs, lost_parts)), elf, pcs)


def test_runs_add_up(elf: Path, pcs: list[int]) -> None:
    one, other = coverage(elf, history_of(pcs, [])), coverage(elf, history_of(pcs, []))
    jump, _ = jump_of(one)
    one.add(other)
    doubled, _ = jump_of(one)
    assert doubled.outcomes == tuple(2 * (it or 0) for it in jump.outcomes)
    assert one.jumps[JumpOutcome(jump.pc, jump.targets[0])] == doubled.outcomes[0]
