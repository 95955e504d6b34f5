"""The exports of coverage as lcov, genhtml and gcovr read them: what those say is what gcov counts on this machine."""

import gzip
import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.helpers.cross_compiler import HOME
from tests.reports.coverage.traced import gcov, program, retired, trace

Lines = dict[tuple[str, int], tuple[int, list[int]]]
"""By file and line: how often it ran, and the counts of its branches, sorted."""
BRANCHES = ["--rc", "lcov_branch_coverage=1"]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readers")
    elf = program(folder)
    return trace(elf, retired(elf), folder / "it.rvt")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    found = gcov(tmp_path_factory.mktemp("gcov"))
    return {
        (path, line): (count, sorted(branches.elements()))
        for path, lines in found.items()
        for line, (count, branches) in lines.items()
    }


def exported(capture: Path, name: str) -> Path:
    file = capture.with_suffix(f".{name}")
    assert main(["export", str(capture), "--to", name, "-o", str(file), "--quiet"]) == 0
    return file


def check(lines: Lines, expected: Lines, *, ran: bool = False) -> None:
    """Each line and its branches, but for what each compiler does alone (`tests/reports/coverage/test_gcov.py`).

    *ran*: branches only by whether they ran.
    """
    compared = 0
    for place in lines.keys() & expected.keys():
        said = Path(place[0]).read_text(encoding="utf-8").splitlines()[place[1] - 1].strip()
        (count, branches), (their_count, their_branches) = lines[place], expected[place]
        assert said == "}" or count == their_count, (place, said)
        if "switch" not in said:
            assert branches == (their_branches if not ran else sorted(map(bool, their_branches))), (place, said)
        compared += 1
    assert compared > 40 and sum(len(it[1]) for it in lines.values()) > 20


def test_the_tables_of_sqlite_are_those_of_gcov(capture: Path, expected: Lines) -> None:
    lines: Lines = {}
    with closing(sqlite3.connect(exported(capture, "sqlite"))) as database:
        for file, line, times in database.execute("SELECT file, line, times FROM lines"):
            lines[file, line] = times, []
        for file, line, *outcomes in database.execute("SELECT file, line, taken, not_taken FROM branches"):
            if (file, line) in lines:
                lines[file, line][1].extend(outcomes)
    check({place: (times, sorted(counts)) for place, (times, counts) in lines.items()}, expected)


def test_lcov_reads_it(capture: Path, expected: Lines, tmp_path: Path) -> None:
    """lcov writes again what it has read; genhtml makes the pages."""
    file, again = exported(capture, "lcov"), tmp_path / "again"
    subprocess.run(["lcov", "-q", *BRANCHES, "-a", str(file), "-o", str(again)], check=True)
    lines: Lines = {}
    path = ""
    for row in again.read_text().splitlines():
        name, _, value = row.partition(":")
        numbers = value.split(",")
        if name == "SF":
            path = value
        elif name == "DA":
            count, branches = lines.get((path, int(numbers[0])), (0, []))
            lines[path, int(numbers[0])] = int(numbers[1]), sorted(branches)
        elif name == "BRDA":
            count, branches = lines.get((path, int(numbers[0])), (0, []))
            outcome = 0 if numbers[3] == "-" else int(numbers[3])
            lines[path, int(numbers[0])] = count, [*branches, outcome]
    check(lines, expected)
    pages = tmp_path / "pages"
    made = subprocess.run(
        ["genhtml", "--branch-coverage", *BRANCHES, str(file), "-o", str(pages)], check=True, capture_output=True
    )
    said = subprocess.run(["lcov", *BRANCHES, "--summary", str(file)], check=True, capture_output=True, text=True)
    share = re.search(r"lines\.+: .*\((\d+) of (\d+) lines\)", said.stdout)
    assert share is not None and f"({share[1]} of {share[2]} lines)" in made.stdout.decode()
    assert (pages / "index.html").exists()


@pytest.mark.parametrize("name", ["gcov-json", "cobertura"])
def test_gcovr_reads_it(name: str, capture: Path, expected: Lines, tmp_path: Path) -> None:
    file = exported(capture, name)
    words = ["--cobertura-add-tracefile", str(file)]
    if name == "gcov-json":
        (tmp_path / "it.gcov.json.gz").write_bytes(gzip.compress(file.read_bytes()))
        words = ["-g", str(tmp_path)]
    command = [sys.executable, "-m", "gcovr", "-r", str(HOME), *words, "--json", str(tmp_path / "read")]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    lines: Lines = {}
    for one in json.loads((tmp_path / "read").read_bytes())["files"]:
        for line in one["lines"]:
            branches = sorted(branch["count"] for branch in line["branches"])
            lines[str(HOME / one["file"]), line["line_number"]] = line["count"], branches
    if name == "cobertura":  # which has the share of the outcomes that were seen, and no counts
        lines = {place: (count, sorted(map(bool, branches))) for place, (count, branches) in lines.items()}
    check(lines, expected, ran=name == "cobertura")
