"""Counts for GCC (.gcda), against those of the same source instrumented on this machine, and what GCC makes of them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.reports.pgo.flow_arcs import FlowArc, FlowFunction, Undetermined, solved
from rvtrace_gdb.reports.pgo.training_options import OPTIONS
from tests.helpers.cross_compiler import EXAMPLES
from tests.reports.coverage.traced import retired, trace
from tests.session.exports.pgo.rebuilt import PROGRAMS, run

GCC = ("riscv64-unknown-elf-gcc", "-march=rv64imac_zicsr", "-mabi=lp64", "-mcmodel=medany", "-O2", "-g")


def built(folder: Path, name: str, *options: str) -> Path:
    """A program of examples/pgo, built by GCC in a folder; its notes and counts are beside it."""
    shutil.copy(EXAMPLES / "pgo" / f"{name}.c", folder)
    command = [*GCC, "-ffreestanding", *options, "-c", f"{name}.c", "-o", f"{name}.o"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    elf, parts = folder / f"{name}.elf", (EXAMPLES / "start.S", folder / f"{name}.o")
    run(*GCC, "-nostdlib", "-nostartfiles", "-T", str(EXAMPLES / "link.ld"), *map(str, parts), "-o", str(elf))
    return elf


def counters(file: Path) -> dict[str, list[int]]:
    """The counters of the functions of a .gcda, by how the compiler knows the functions."""
    found: dict[str, list[int]] = {}
    numbers: list[int] = []
    for line in run("gcov-dump", "-l", str(file)).splitlines():
        if "FUNCTION" in line:
            numbers = found.setdefault(line.split("FUNCTION ")[1], [])
        elif row := re.search(r"\s\d+:((?: -?\d+)+) *$", line):
            numbers += map(int, row[1].split())
    return found


@pytest.mark.parametrize("name", [*PROGRAMS, "checksum"])
def test_counts_are_those_of_an_instrumented_program(name: str, tmp_path: Path) -> None:
    """Of every function, and the programs that GCC builds with them retire less; two of them at least 5 %. GCC does not
    inline what is large in `filter`, whatever the counts.
    """
    traced, host, again = (tmp_path / it for it in ("traced", "host", "again"))
    for folder in (traced, host, again):
        folder.mkdir()
    elf = built(traced, name, "-ftest-coverage", *OPTIONS)
    capture = trace(elf, retired(elf), traced / "it.rvt")
    words = ["pgo", str(capture), "--to", "gcda", "--gcno", str(traced / f"{name}.gcno"), "--quiet"]
    assert main([*words, "-o", str(again / f"{name}.gcda")]) == 0
    shutil.copy(EXAMPLES / "pgo" / f"{name}.c", host)
    for command in (["-ffreestanding", "-c", f"{name}.c", "-o", f"{name}.o"], [f"{name}.o", "-o", name]):
        subprocess.run(["gcc", "--coverage", "-O2", *command], check=True, cwd=host)
    subprocess.run([str(host / name)], check=True)
    mine = counters(again / f"{name}.gcda")
    assert mine == counters(host / f"{name}.gcda") and len(mine) >= 2
    before = len(retired(built(host, name)))
    after = len(retired(built(again, name, "-fprofile-use", "-Werror=coverage-mismatch")))
    assert after <= (1 if name == "filter" else 0.95) * before


def test_a_build_that_moves_code_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A loop that is unrolled has lines that ran as often as the loop was entered."""
    elf = built(tmp_path, "dispatch", "-ftest-coverage")
    capture = trace(elf, retired(elf), tmp_path / "it.rvt")
    words = ["pgo", str(capture), "--to", "gcda", "-o", str(tmp_path / "x.gcda"), "--quiet"]
    assert main([*words, "--gcno", str(tmp_path / "dispatch.gcno")]) == 1
    assert "built without -fno-tree-ch" in capsys.readouterr().err
    for damaged, says in ((b"", "not GCC's notes"), ((tmp_path / "dispatch.gcno").read_bytes()[:50], "damaged")):
        (tmp_path / "bad.gcno").write_bytes(damaged)
        assert main([*words, "--gcno", str(tmp_path / "bad.gcno")]) == 1
        assert says in capsys.readouterr().err
    assert main(words) == 1 and "belong together" in capsys.readouterr().err
    assert not (tmp_path / "x.gcda").exists()


def diamond() -> FlowFunction:
    arcs = [FlowArc(*ends, on_tree=False, fake=False) for ends in ((0, 2), (2, 3), (2, 4), (3, 5), (4, 5), (5, 1))]
    return FlowFunction("f", 1, 2, 3, blocks=6, arcs=arcs)


def test_what_does_not_follow_is_not_determined() -> None:
    assert solved(diamond(), {0: 10, 3: 4}, returns=True) == [10, 4, 6, 4, 6, 10]
    with pytest.raises(Undetermined, match="5 of 6 arcs do not follow"):
        solved(diamond(), {0: 10}, returns=True)
    with pytest.raises(Undetermined, match="contradict"):
        solved(diamond(), {0: 10, 3: 11}, returns=True)
    with pytest.raises(Undetermined, match="contradict"):
        solved(diamond(), {0: 10, 3: 4, 4: 5}, returns=True)
