"""One long trace that processes read in pieces: the same as by one process, byte for byte."""

import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.captures import pieces, processes
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.formats.long_traces.trace_pieces import STEP
from tests.console.captures.long_runs import SECTIONS, long_run


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let short traces be read in pieces. Return how many pieces were read, a number for each time."""
    found: list[int] = []
    shown = pieces._shown

    def counted(results: Iterator[Any], total: int, progress: Any) -> Iterator[Any]:
        found.append(total)
        return shown(results, total, progress)

    monkeypatch.setattr(pieces, "_shown", counted)
    monkeypatch.setattr(pieces, "_LEAST", STEP)
    return found


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main([*map(str, words), "--quiet"]) == 0
    return capsys.readouterr().out


def test_reports_and_profiles_for_compilers(
    divided: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, elf = long_run(tmp_path)
    for command in (
        ["report", file, *SECTIONS, "--ntrace", "--elf", elf, "--json", "--top", "0", "--depth", "0", "--each"],
        ["pgo", file, "--ntrace", "--elf", elf, "--to", "llvm", "-o", "-"],
    ):
        alone = printed(capsys, *command, "--jobs", "1")
        assert not divided
        assert printed(capsys, *command, "--jobs", "2") == alone and len(alone) > 500
        assert divided == [2, 2]  # scanned and profiled
        divided.clear()


def test_what_a_killed_process_had_to_read_is_read_again(
    divided: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, elf = long_run(tmp_path, "--etrace")
    command = ["report", file, *SECTIONS, "--etrace", "--elf", elf, "--json", "--top", "0", "--ecause-width", "5"]
    alone = printed(capsys, *command, "--jobs", "1")
    start, killed = processes._ReadingProcess.__init__, list[int]()

    def dying(self: processes._ReadingProcess) -> None:
        start(self)
        if not killed:
            killed.append(self.process.pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(processes._ReadingProcess, "__init__", dying)
    assert printed(capsys, *command, "--jobs", "2") == alone
    assert killed and divided == [2, 2]


def test_a_guess_that_is_wrong_is_made_up_for(
    divided: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, elf = long_run(tmp_path)
    command = ["report", file, *SECTIONS, "--ntrace", "--elf", elf, "--json", "--top", "0"]
    alone = printed(capsys, *command, "--jobs", "1")
    scans: list[Sequence[Any]] = []

    def nothing(of: Sequence[Any], jobs: int) -> Iterator[Any]:
        scans.append(of)
        return (None for _ in of)

    monkeypatch.setattr(processes, "by_processes", nothing)
    assert printed(capsys, *command, "--jobs", "2") == alone
    assert len(scans) == 3  # after two guesses nothing is guessed, and then the profiles


def test_coverage(divided: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, elf = long_run(tmp_path)
    written = []
    for jobs in ("1", "2"):
        out = tmp_path / f"{jobs}.info"
        command = ["coverage", file, "--files", "--ntrace", "--elf", elf, "--json", "--to", "lcov", "-o", out]
        printed_rows = printed(capsys, *command, "--jobs", jobs)
        written.append((printed_rows, out.read_bytes()))
    assert written[0] == written[1] and divided == [2, 2]
    total = json.loads(written[0][0].splitlines()[-1])["total"]
    assert total["conditions"]["covered"] > 10 and b"BRDA" in written[0][1]


def test_why_a_trace_is_read_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, elf = long_run(tmp_path)
    own = [str(file), "--ntrace", "--elf", str(elf)]
    for command, why in (
        (["report", *own], "it has 328,680 bytes, and pieces are of 8,388,608 at least"),
        (["report", *own, "1,100"], "a RANGE (1,100) is of its whole history"),
        (["coverage", *own, "--files"], "it has 328,680 bytes, and pieces are of 8,388,608 at least"),
    ):
        assert main([*command, "--jobs", "2"]) == 0
        assert f"the trace is read whole, not in pieces: {why}" in capsys.readouterr().err
    for quiet in (["--jobs", "1"], ["--jobs", "2", "--quiet"], []):
        assert main(["report", *own, "1,100", *quiet]) == 0
        assert "read whole" not in capsys.readouterr().err
