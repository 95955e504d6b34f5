"""`rvtrace blame`: what it reads, what it refuses, and what it prints; the ranking is tested by the room's tests."""

import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.reports.coverage.traced import trace
from tests.session.questions.divergence.runs import Run, parting, with_inputs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ok1.rvt, ok2.rvt and fail.rvt: the last one alone has an input of 100 or more with the low bits 4."""
    folder = tmp_path_factory.mktemp("blame")
    elf = parting(folder)
    quiet = dict.fromkeys(range(24), 8)
    for name, changed in {"ok1": quiet, "ok2": {**quiet, 3: 9}, "fail": {**quiet, 5: 124}}.items():
        run = Run.of(with_inputs(elf, changed, folder / f"{name}.elf"))
        trace(run.elf, run.pcs[:900], folder / f"{name}.rvt")
    return folder


@pytest.fixture(autouse=True)
def _in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["blame", "--good", "ok*.rvt", "--bad", "fail.rvt", "--quiet", *words]) == 0
    return capsys.readouterr().out


def test_rows(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys).splitlines()
    assert lines[0] == "1 bad run against 2 good ones. A hint where to look first, no proof."
    first = [line for line in lines[1:4] if line.startswith("   1.00      1/1      0/2  parting.c:")]
    assert any("case 4: return -item;" in line for line in first)
    assert len(printed(capsys, "--top", "1").splitlines()) < len(lines)


def test_json_and_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in printed(capsys, "--json", "--jobs", "2").splitlines()]
    assert rows[-1] == {"good-runs": 2, "bad-runs": 1, "unknown-lines": 0}
    first = rows[0]
    assert (first["score"], first["only-bad"], first["bad"], first["good-known"]) == (1.0, 1, 1, 2)
    assert printed(capsys, "--json", "--jobs", "1") == printed(capsys, "--json", "--jobs", "2")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--good", "no*.rvt", "--bad", "fail.rvt"], "no*.rvt: there is no such capture"),
        (["--good", "ok1.rvt", "fail.rvt", "--bad", "fail.rvt"], "is among the good captures and among the bad ones"),
        (["--good", "ok1.rvt", "--bad", "gone.rvt"], "gone.rvt: cannot be read"),
    ],
)
def test_refusals(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blame", *words]) == 1
    assert problem in capsys.readouterr().err


def test_another_build_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run.of(parting(tmp_path, "-O1"))
    trace(run.elf, run.pcs[:300], tmp_path / "other.rvt")
    assert main(["blame", "--good", str(folder / "ok1.rvt"), "--bad", str(tmp_path / "other.rvt")]) == 1
    assert "is of another program than" in capsys.readouterr().err
