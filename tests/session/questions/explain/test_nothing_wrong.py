"""What is said where nothing wrong is seen: how the run ended, and questions that are answered."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import EXAMPLES, demo
from tests.helpers.example_captures import RAM, example_capture
from tests.session.board import board

SEEN = "Nothing wrong was seen: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sane")


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words, "--quiet"]) == 0, words
    return capsys.readouterr().out


def explained(file: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer(capsys, "explain", str(file), *words, "--json"))
    return found


@pytest.mark.parametrize(
    ("program", "part", "outcome"),
    [
        ("changed_variable", (), "the program ended in done()"),
        ("changed_variable", ("1,600",), "it ran on behind #600"),
        ("latency", (), "it goes round in this loop where the trace ends"),
        ("latency", ("1,6000",), "it ran on behind #6000"),
    ],
)
def test_how_it_ended_is_said(
    folder: Path, program: str, part: tuple[str, ...], outcome: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And whatever is proposed is answered."""
    file = example_capture(folder, program)
    found = explained(file, capsys, *part)
    assert (found["findings"], found["outcome"]) == ([], outcome)
    assert f"{SEEN}{outcome}." in " ".join(answer(capsys, "explain", str(file), *part).split())
    assert any(it.startswith("rvtrace why ") for it in found["next"])
    for line in found["next"]:
        said = answer(capsys, *shlex.split(line)[1:])
        assert said and "not known" not in said.splitlines()[0], line


def test_the_variable_is_the_one_that_was_written_last(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """changed_variable.c: main() ends with report(), which writes `reported`; start.S has _exit() and done()."""
    file = example_capture(folder, "changed_variable")
    found = explained(file, capsys)
    assert "reported = " in (EXAMPLES / "changed_variable.c").read_text()
    assert f"rvtrace why {file} reported" in found["next"]
    assert next(it["func"] for it in found["calls"]) == "report"
    assert not {"_exit", "done"} & {it["func"] for it in found["calls"]}


def test_a_function_of_the_program_is_listed_whatever_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """demo.c: main() calls finish(), which writes `result` and returns; it is no end of start.S."""
    target, file = board(folder, demo(folder)), folder / "demo.rvt"
    session, context = Session(target.connect, {}), target.describe(extra=RAM)
    session.start(context, {})
    target.run(3000)
    session.save(file, context)
    session.close()
    found = explained(file, capsys)
    assert found["outcome"] == "the program ended in done()"
    assert next(it["func"] for it in found["calls"]) == "finish"
    assert f"rvtrace why {file} result" in found["next"]


def test_a_part_is_asked_from_behind_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not from the end of the trace, before which a variable may have been written again."""
    file = example_capture(folder, "changed_variable")
    proposed = explained(file, capsys, "1,600")["next"]
    assert f"rvtrace decode {file} 601,-20" in proposed
    assert all(it.endswith(" --at 601") for it in proposed if it.startswith("rvtrace why "))


def test_nothing_is_said_of_it_where_something_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = example_capture(folder, "hang")
    assert "outcome" not in explained(file, capsys)
    assert SEEN not in answer(capsys, "explain", str(file))
