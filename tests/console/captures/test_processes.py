"""Captures that processes read side by side: coverage and profiles for compilers are the same; one that dies is made
up for.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.console.captures.readers import MergedCaptureError, Readers
from rvtrace_gdb.console.captures.reading import read_captures
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.packs import unpacking
from rvtrace_gdb.support.errors import silent
from tests.console.captures.dying import DyingReader
from tests.console.captures.killed_processes import READERS, ROUNDS
from tests.console.captures.runs import SOURCE, three_runs
from tests.helpers.cross_compiler import HOME
from tests.session.packs.pack_files import with_text


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return three_runs(tmp_path_factory.mktemp("captures"))


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main([*map(str, words), "--quiet"]) == 0
    return capsys.readouterr().out


def test_coverage_and_profiles_whatever_the_number_of_processes(
    captures: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = captures
    for command in (
        ["coverage", first, "--merge", *others, "--json"],
        ["pgo", first, *others, "--to", "llvm", "-o", "-"],
    ):
        alone = printed(capsys, *command, "--jobs", "1")
        assert printed(capsys, *command, "--jobs", "3") == alone


def test_of_packs_that_differ_the_first_text_is_shown(
    captures: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads them, and nothing is left of them where nothing is kept."""
    monkeypatch.setenv("RVTRACE_CACHE", "")
    monkeypatch.setattr(unpacking, "_temporary", [tmp_path / "here"])
    (tmp_path / "here").mkdir()
    packs = []
    for capture, text in zip(captures, (b"first", b"second"), strict=False):
        pack = tmp_path / f"{text.decode()}.rvtz"
        assert main(["pack", str(capture), "-o", str(pack), "--quiet"]) == 0
        pack.write_bytes(with_text(pack.read_bytes(), SOURCE, Path(SOURCE).read_bytes() + b"// the " + text))
        packs.append(str(pack))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "others"))
    (tmp_path / "others").mkdir()
    page = tmp_path / "page"
    for jobs in ("1", "2"):
        words = [packs[1], "--merge", packs[0], "--jobs", jobs, "--to", "coverage-html", "-o", str(page), "--quiet"]
        assert main(["coverage", *words]) == 0
        assert "// the second" in page.read_text() and "// the first" not in page.read_text()
        assert list((tmp_path / "others").iterdir()) == []
        lines = [line for line in capsys.readouterr().err.splitlines() if "differ" in line]
        assert lines == [
            f"warning: sources of the packs differ: {SOURCE} is shown as it is in {packs[1]}, not as in {packs[0]}"
        ]


def test_a_process_that_dies_is_made_up_for(captures: list[Path], tmp_path: Path) -> None:
    """Once; one that dies again gets a line."""
    (tmp_path / "first").touch()
    readers = [DyingReader.of(capture, tmp_path) for capture in captures[:2]]
    found = list(read_captures(readers, Readers(jobs=2), silent))
    assert [profile.harts[0].capture for result in found for profile in result.profiles] == list(
        map(str, captures[:2])
    )
    for number in range(9):
        (tmp_path / str(number)).touch()
    with pytest.raises(MergedCaptureError, match="the process that reads it is killed each time: is there"):
        list(read_captures(readers, Readers(jobs=2), silent))


def test_who_reads_is_for_source_files(captures: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", str(captures[0]), "--jobs", "2"]) == 1
    assert capsys.readouterr().err == (
        "rvtrace: --jobs and --cluster are for coverage by source files: add --files, or --merge FILE\n"
    )


def test_processes_that_die_are_not_waited_for() -> None:
    """Also when the command ends: others may have been begun just as one dies that is to read much."""
    command = [sys.executable, "-m", "tests.console.captures.killed_processes"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, f"{list(range(READERS))}\n" * ROUNDS), done.stderr
