"""MC/DC against clang's own (`-fcoverage-mcdc`) on the same program built for this machine: the same decisions, with
the same conditions covered, in the code of gcc and in that of clang.
"""

import json
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.coverage.conditions.counting import add_conditions
from rvtrace_gdb.reports.coverage.counting import program_coverages
from rvtrace_gdb.reports.coverage.source_coverage import source_coverage
from tests.helpers.cross_compiler import EXAMPLES, HOME
from tests.reports.coverage.traced import decoded, program, retired, trace

SOURCE = HOME / "tests" / "programs" / "conditions" / "main.c"
Decisions = dict[tuple[int, int, int, int], list[bool | None] | None]
"""By the lines and columns of where a decision begins and ends: which of its conditions are covered."""


NEGATED = {(18, 28, 18, 54): [True, False, True]}
"""`!(a && b) || c` of the values TT-F (false), TT-T (true), F-- (true), which clang 19 does not count ("nested")."""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Decisions:
    """What llvm-cov says of the program, run on this machine."""
    folder = tmp_path_factory.mktemp("clang")
    flags = ["-O0", "-g", "-fprofile-instr-generate", "-fcoverage-mapping", "-fcoverage-mcdc"]
    command = ["clang-19", *flags, str(SOURCE), "-o", str(folder / "it")]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)  # a warning about what it does not count
    environment = {"LLVM_PROFILE_FILE": str(folder / "raw")}
    subprocess.run([str(folder / "it")], check=False, env=environment)  # it ends with a result
    merged = ["llvm-profdata-19", "merge", str(folder / "raw"), "-o", str(folder / "profile")]
    subprocess.run(merged, check=True)
    command = ["llvm-cov-19", "export", str(folder / "it"), f"-instr-profile={folder / 'profile'}"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    records = [record for file in said["data"][0]["files"] for record in file["mcdc_records"]]
    return {(first, left, last, right): list(covered) for first, left, last, right, *_, covered in records}


def decisions_of(elf: Path, folder: Path) -> Decisions:
    raw = trace(elf, retired(elf), folder / "it.nex")
    history, images = decoded(elf, raw.read_bytes()), ContextImages(Image.from_elf(elf))
    calls = CallHistory(history, images)
    programs = program_coverages(history, images, calls)
    add_conditions(programs, history, images, calls, range(len(history)))
    found = source_coverage(programs)[str(SOURCE)].decisions
    return {(*it.extent.start, *it.extent.end): None if it.covered is None else list(it.covered) for it in found}


def test_all_decisions_of_gcc(theirs: Decisions, tmp_path: Path) -> None:
    """gcc makes a branch of each condition of code that is not optimised."""
    assert decisions_of(program(tmp_path, [SOURCE]), tmp_path) == theirs | NEGATED
    assert len(theirs) >= 7 and {one for covered in theirs.values() for one in covered or ()} == {True, False}


def test_decisions_of_clang(theirs: Decisions, tmp_path: Path) -> None:
    """clang computes the last condition of a value without a branch: that is not determined, and nothing else."""
    objects = tmp_path / "it.o"
    target = ["--target=riscv64-unknown-elf", "-march=rv64imac", "-mabi=lp64", "-mcmodel=medany"]
    subprocess.run(["clang-19", *target, "-O0", "-g", "-c", str(SOURCE), "-o", str(objects)], check=True)
    elf = tmp_path / "it.elf"
    link = ["riscv64-unknown-elf-gcc", "-march=rv64imac_zicsr", "-mabi=lp64", "-specs=picolibc.specs", "-nostartfiles"]
    link += ["-T", str(EXAMPLES / "link.ld"), str(EXAMPLES / "start.S"), str(objects), "-o", str(elf)]
    subprocess.run(link, check=True)
    found = decisions_of(elf, tmp_path)
    assert set(found) == set(theirs | NEGATED)
    text = SOURCE.read_text(encoding="utf-8").splitlines()
    for place, covered in found.items():
        if covered is None:
            values = ("int x =", "return a ||", "? 3 : 4", "? 1 : 0", "c && r[2] ?", "default: return")
            assert any(word in text[place[0] - 1] for word in values), text[place[0] - 1]
        else:
            assert (place, covered) == (place, (theirs | NEGATED)[place])
    assert sum(covered is not None for covered in found.values()) >= 5
