"""`rvtrace coverage` by source files: runs that add up, limits and their exit statuses, files for other programs."""

import json
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.commands.source_coverage import BELOW, UNSURE
from rvtrace_gdb.console.main import main
from tests.helpers.cross_compiler import symbol_address
from tests.reports.coverage.traced import PROGRAMS, gcov, program, retired, trace

MAIN = str(PROGRAMS / "main.c")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`all.rvt` has the whole run, `first.rvt` what ran before `deep`, `last.rvt` what ran from there on."""
    folder = tmp_path_factory.mktemp("runs")
    elf = program(folder)
    pcs = retired(elf)
    deep = symbol_address(elf, "deep")
    first = len(list(takewhile(lambda pc: pc != deep, pcs)))
    for name, some in {"all": pcs, "first": pcs[:first], "last": pcs[first:]}.items():
        trace(elf, some, folder / f"{name}.rvt", *(["--start", f"0x{some[0]:x}"] if name == "last" else []))
    raw = trace(elf, pcs, folder / "all.nex", "--sync-mode", "messages").read_bytes()
    (folder / "damaged.nex").write_bytes(raw[:40] + bytes(20) + raw[-200:])
    return folder


def said(capsys: pytest.CaptureFixture[str], *words: object) -> list[Any]:
    assert main(["coverage", *map(str, words), "--files", "--json", "--quiet"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_table_of_the_files(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its lines are those of gcov, but for braces; both count those that ran."""
    rows = {str(row.get("file")): row for row in said(capsys, folder / "all.rvt")}
    theirs = [count for count, _ in gcov(tmp_path)[MAIN].values()]
    assert abs(rows[MAIN]["lines"]["covered"] - sum(map(bool, theirs))) <= 3
    assert rows[MAIN]["lines"]["uncovered"] == 6
    assert main(["coverage", str(folder / "all.rvt"), "--files", "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["lines", "functions", "branches", "decisions", "conditions", "file"]
    assert lines[-1].endswith("  all files") and f"  {MAIN}" in "\n".join(lines)


def test_runs_add_up(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two halves of a run have the counts of the whole; each alone has less."""
    whole = said(capsys, folder / "all.rvt")[-1]["total"]
    parts = [said(capsys, folder / f"{name}.rvt")[-1]["total"] for name in ("first", "last")]
    both = said(capsys, folder / "first.rvt", "--merge", folder / "last.rvt")[-1]["total"]
    assert both["lines"] == whole["lines"]
    assert all(part["lines"]["covered"] < whole["lines"]["covered"] for part in parts)
    words = ["--to", "lcov", "-o", tmp_path / "both", "--quiet"]
    assert main(["coverage", *map(str, [folder / "first.rvt", "--merge", folder / "last.rvt", *words])]) == 0
    assert main(["export", *map(str, [folder / "all.rvt", "--to", "lcov", "-o", tmp_path / "all", "--quiet"])]) == 0
    lines = [(tmp_path / name).read_text().splitlines() for name in ("both", "all")]
    assert [[it for it in one if it.startswith("DA:")] for one in lines[:1]] == [
        [it for it in one if it.startswith("DA:")] for one in lines[1:]
    ]


@pytest.mark.parametrize(("least", "status"), [("91", 0), ("92", BELOW), ("0", 0)])
def test_a_limit(least: str, status: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", str(folder / "all.rvt"), "--fail-under", least, "--quiet"]) == status
    last = capsys.readouterr().err
    assert last == ("warning: 77 of 84 lines are covered: 91.7%, 92% are needed\n" if status else "")


def test_a_limit_that_gaps_leave_open(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = [str(folder / "damaged.nex"), "--ntrace", "--elf", str(next(folder.glob("*.elf"))), "--quiet"]
    share = said(capsys, *raw)[-1]["total"]["lines"]
    assert share["unknown"]
    total = sum(share.values())
    low, high = 100 * share["covered"] / total, 100 * (share["covered"] + share["unknown"]) / total
    for least, status in ((low - 0.1, 0), ((low + high) / 2, UNSURE), (min(high + 0.1, 100), BELOW)):
        assert main(["coverage", *raw, "--fail-under", f"{least:.3f}"]) == status
    assert "which is open" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--to", "lcov"], "--to NAME and -o OUT belong together"),
        (["--of", "lines"], "--of lines: says what --fail-under PERCENT is about, which is not given"),
        (["5,9", "--merge", "x"], "a RANGE is of one capture, and --merge adds others"),
        (["--to", "lcov", "-o", "-"], "-o -: the table is written to standard output;"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    words: list[str], says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["coverage", str(folder / "all.rvt"), *words]) == 1
    assert capsys.readouterr().err.startswith(f"rvtrace: {says}")


def test_another_program_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = program(tmp_path, level="-O1")
    file = trace(other, retired(other), tmp_path / "other.rvt")
    assert main(["coverage", str(folder / "all.rvt"), "--merge", str(file), "--quiet"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"{file} (SHA-256 " in error and "ran another program than" in error
