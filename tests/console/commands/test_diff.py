"""`rvtrace diff`: what it prints, its exit status, several harts, names that a terminal would obey, bad arguments."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb import Bench, Session, diff_sessions
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture import file as capture_file
from tests.helpers.hostile_program import hostile, unfit
from tests.reports.coverage.traced import trace
from tests.session.questions.divergence.runs import Run, parted, parting, with_inputs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """one.rvt, other.rvt: runs that part, and same.rvt, the first one in another format."""
    folder = tmp_path_factory.mktemp("diff")
    one = Run.of(parting(folder))
    other = Run.of(with_inputs(one.elf, {5: 124}, folder / "other.elf"))
    one.traced(folder / "one.rvt", part=slice(2000))
    one.traced(folder / "same.rvt", "--etrace", part=slice(2000))
    other.traced(folder / "other.rvt", part=slice(2000))
    (folder / "parted").write_text(str(parted(one.pcs, other.pcs)))
    return folder


def printed(capsys: pytest.CaptureFixture[str], status: int, *words: object) -> list[str]:
    assert main(["diff", *map(str, words), "--quiet"]) == status
    return capsys.readouterr().out.splitlines()


def test_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = int((folder / "parted").read_text())
    lines = printed(capsys, 3, folder / "one.rvt", folder / "other.rvt")
    assert lines[1] == f"The runs part after A @{at}, B @{at}:"
    assert lines[-1].startswith("1\tA @") or lines[-2].startswith("1\tA @")
    assert printed(capsys, 3, folder / "one.rvt", folder / "other.rvt", "1,1")[-1].startswith(f"1\tA @{at + 1} (")


def test_the_same_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, 0, folder / "one.rvt", folder / "same.rvt")
    assert lines[1] == "The runs are the same: 2000 instructions in both." and len(lines) == 2


def test_json_and_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rows = map(json.loads, printed(capsys, 3, folder / "one.rvt", folder / "other.rvt", "--json"))
    at = int((folder / "parted").read_text())
    assert (first["first"]["number"], first["first"]["to-number"], first["same-runs"]) == (at, at + 1, 0)
    assert [row["number"] for row in rows] == list(range(1, first["differences"] + 1))
    one, other = Session(), Session()
    one.open(str(folder / "one.rvt"), None)
    other.open(str(folder / "other.rvt"), None)
    found = diff_sessions(one, other)
    assert found.answer.first is not None and found.answer.first.number == at
    assert [row.position for row in found.rows] == [row["position"] for row in rows]


def test_in_a_test_of_python(folder: Path) -> None:
    with Bench(str(folder / "parting-rv64imac_zicsr.elf")) as bench:
        bench.open(str(folder / "one.rvt"))
        parts = bench.diff(str(folder / "other.rvt"), elf=str(folder / "other.elf"))
        assert parts.number == parts.other_number == int((folder / "parted").read_text())
        assert parts.differences >= 1 and parts.line.startswith("parting.c:")
        assert bench.diff(str(folder / "same.rvt")).number is None


def test_harts_are_compared_each_with_its_own(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a capture in which the same trace is that of hart 1, too."""
    two, other = (with_two_harts(folder / name, folder / second, tmp_path / name) for name, second in (
        ("one.rvt", "one.rvt"), ("other.rvt", "one.rvt")
    ))  # fmt: skip
    rows = [json.loads(line) for line in printed(capsys, 3, two, other, "--json")]
    answers = {row["hart"]: row["same-runs"] for row in rows if "same-runs" in row}
    assert answers == {0: 0, 1: 1}
    assert printed(capsys, 0, two, other, "--hart", 1)[-1] == "The runs are the same: 2000 instructions in both."
    assert printed(capsys, 0, two, other, "--hart", 0, "--other-hart", 1)[0].endswith("hart 1")


def with_two_harts(file: Path, second: Path, to: Path) -> Path:
    """A capture with the trace of one file as that of hart 0, and that of another as that of hart 1."""
    one, two = capture_file.load(file), capture_file.load(second)
    encoder = replace(two.encoders[0], hart=1, in_force=replace(two.encoders[0].in_force, name="encoder1"))
    sink = replace(two.sinks[0], encoders=("encoder1",), in_force=replace(two.sinks[0].in_force, name="ram1"))
    capture_file.save(replace(one, encoders=(*one.encoders, encoder), sinks=(*one.sinks, sink)), to)
    return to


def test_names_that_a_terminal_would_obey(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = hostile(tmp_path)
    run = Run.of(elf)
    for name, part in (("one", slice(900)), ("other", slice(0, 900))):
        trace(elf, run.pcs[part] if name == "one" else [*run.pcs[:450], *run.pcs[500:900]], tmp_path / f"{name}.rvt")
    main(["diff", str(tmp_path / "one.rvt"), str(tmp_path / "other.rvt")])
    out, err = capsys.readouterr()
    assert unfit(out + err) == set()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["-", "-"], "standard input is one trace"),
        (["ONE", "ONE", "--other-hart", "1"], "is compared with which hart of A"),
        (["ONE", "/no/such.rvt"], "/no/such.rvt: cannot be read"),
        (["ONE", "OTHER", "99,100"], "Range out of bounds"),
    ],
)
def test_bad_arguments(words: list[str], problem: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"ONE": str(folder / "one.rvt"), "OTHER": str(folder / "other.rvt")}
    assert main(["diff", *(files.get(word, word) for word in words)]) == 1
    assert problem in capsys.readouterr().err
