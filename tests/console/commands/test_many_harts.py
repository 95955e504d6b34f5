"""A trace of sixteen harts that ran the same: what is said of them alike is said once, and programs get each."""

import json
import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.helpers import reference_streams

Captured = pytest.CaptureFixture[str]
HARTS = 16
ELF = reference_streams.FOLDER / "median.elf"
BITS = 5
"""Of SRC."""
COMPLETE = "No gaps: the history is complete."


def recorded(folder: Path, damaged: int | None = None) -> str:
    """The capture of sixteen harts; of hart *damaged* a message is lost on the way."""
    raw = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    streams = [reference_streams.from_source(raw, BITS, hart) for hart in range(HARTS)]
    if damaged is not None:
        del streams[damaged][len(streams[damaged]) // 2]
    (folder / "raw.bin").write_bytes(reference_streams.in_turn(*streams))
    words = ["import", folder / "raw.bin", "--elf", ELF, "--src-bits", BITS, "-o", folder / "x.rvt", "--quiet"]
    assert main([str(word) for word in words]) == 0
    return str(folder / "x.rvt")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    return recorded(tmp_path_factory.mktemp("many"))


def test_the_lines_before_an_answer(many: str, capsys: Captured) -> None:
    assert main(["gaps", many]) == 0
    found = capsys.readouterr()
    assert found.out == f"harts 0 to 15\t{COMPLETE}\n"
    lines = found.err.splitlines()
    assert [line for line in lines if line.startswith("encoder:")] == [
        "encoder:  encoder0 to encoder15, harts 0 to 15: N-Trace 1.0 HTM"
    ]
    [history] = (line for line in lines if line.startswith("history:"))
    assert re.fullmatch(r"history:  harts 0 to 15: \d+ instructions, 0 gaps.*", history)
    assert len(lines) < HARTS


def test_a_hart_with_rows_between_those_without(tmp_path: Path, capsys: Captured) -> None:
    capture = recorded(tmp_path, damaged=7)
    capsys.readouterr()
    assert main(["gaps", capture]) == 0
    found = capsys.readouterr()
    first, *rows, last = found.out.splitlines()
    assert (first, last) == (f"harts 0 to 6\t{COMPLETE}", f"harts 8 to 15\t{COMPLETE}")
    assert rows and {row.partition("\t")[0] for row in rows} == {"hart 7"}
    harts = [line.split(": ")[1].strip() for line in found.err.splitlines() if line.startswith("history:")]
    assert harts == ["harts 0 to 6", "hart 7", "harts 8 to 15"]


def test_no_rows(many: str, capsys: Captured) -> None:
    """One hart is not named, and programs get nothing; rows are of each hart."""
    assert main(["find", many, "0x1", "--quiet"]) == 0
    assert capsys.readouterr().out == "harts 0 to 15\t0x1 did not run in this history.\n"
    assert main(["find", many, "0x1", "--hart", "3", "--quiet"]) == 0
    assert capsys.readouterr().out == "0x1 did not run in this history.\n"
    assert main(["find", many, "0x1", "--json", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["calls-of", many, "main", "--quiet"]) == 0
    harts = [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert list(dict.fromkeys(harts)) == [f"hart {hart}" for hart in range(HARTS)]


def test_programs_get_what_they_got(many: str, capsys: Captured) -> None:
    assert main(["status", many, "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["history"].startswith("hart 15: ")
    assert [line for line in found["messages"] if line.startswith("encoder:")] == [
        "encoder:  encoder0 to encoder15, harts 0 to 15: N-Trace 1.0 HTM"
    ]
