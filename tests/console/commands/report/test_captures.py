"""Reports of several captures: the same bytes whatever the number of processes."""

import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.rows.report_rows import SECTIONS
from tests.console.captures.runs import three_runs


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return three_runs(tmp_path_factory.mktemp("captures"))


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["report", *map(str, words), "--quiet"]) == 0
    return capsys.readouterr().out


def test_the_same_bytes_whatever_the_number_of_processes(
    captures: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = captures
    command = [first, *SECTIONS, "--json", "--each", "--top", "0", "--merge", *others]
    alone = printed(capsys, *command, "--jobs", "1")
    assert printed(capsys, *command, "--jobs", "3") == alone
    total, *each = map(json.loads, alone.splitlines())
    singles = [json.loads(printed(capsys, capture, *SECTIONS, "--json", "--top", "0")) for capture in captures]
    assert [report["capture"] for report in each] == list(map(str, captures))
    assert total["instructions"] == sum(report["instructions"] for report in singles)
    own = {row["addr"]: row["own"] for row in total["functions"]}
    parts = [{row["addr"]: row["own"] for row in report["functions"]} for report in singles]
    assert own == {place: sum(part.get(place, 0) for part in parts) for place in own} and len(own) > 5
    measured, *of_each = (
        {row.get("func", row.get("cause")): row["measured"] for row in report["intervals"]}
        for report in (total, *singles)
    )
    assert measured and measured == {name: sum(one.get(name, 0) for one in of_each) for name in measured}
    assert [(row["capture"], row["instructions"]) for row in total["harts"]] == [
        (str(capture), report["instructions"]) for capture, report in zip(captures, singles, strict=True)
    ]


def test_what_makes_no_sense(captures: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    first, second, _ = map(str, captures)
    assert main(["report", first, "1,5", "--merge", second]) == 1
    assert "1,5: a RANGE is of one capture, and --merge adds others" in capsys.readouterr().err
    assert main(["report", "-", "--merge", second]) == 1
    assert "-: with --merge each capture is a file" in capsys.readouterr().err


def test_a_capture_that_cannot_be_read(
    captures: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.rvt"
    bad.write_bytes(b"nothing of the kind")
    for jobs in ("1", "2"):
        assert main(["report", str(captures[0]), "--merge", str(bad), "--jobs", jobs, "--quiet"]) == 1
        [line] = capsys.readouterr().err.splitlines()
        assert str(bad) in line
