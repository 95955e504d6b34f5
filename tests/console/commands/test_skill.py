"""`rvtrace skill`: the page has commands that do what it says."""

import json
import re
import shlex
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import COMMANDS, main
from tests.helpers.cross_compiler import HOME
from tests.helpers.example_captures import example_capture

PAGE = (HOME / "share" / "agents" / "SKILL.md").read_text(encoding="utf-8")
LINES = sorted(set(re.findall(r"(?:^    |`)(rvtrace \S+ demo\.rvt [^`\n]*)", PAGE, re.M)))
EMPTY = {"gaps"}
"""What the capture has none of."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skill")
    example_capture(folder, "demo")
    return folder


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == PAGE


def test_its_head_is_what_programs_look_for() -> None:
    """A name as that of its folder, and a description of at most 1024 characters: the format of Agent Skills."""
    head = re.match(r"---\nname: ([a-z-]+)\ndescription: (.{1,1024})\n---\n", PAGE)
    assert head is not None and head[1] == "rvtrace"
    assert len(PAGE.splitlines()) < 100


@pytest.mark.parametrize("line", LINES)
def test_a_command_answers_with_objects(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words = shlex.split(line)[1:]
    assert words[-2:] == ["--json", "--quiet"]
    assert main(words) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    rows = [json.loads(row) for row in said.out.splitlines()]
    assert said.err == "" and (rows or words[0] in EMPTY or "mismatched-return" in words)


def test_it_speaks_of_each_command_that_shows_a_trace() -> None:
    named = {shlex.split(line)[1] for line in LINES}
    assert named >= {row.name for row in COMMANDS if row.module in ("lists", "past")}


def test_unknown_is_said_as_the_page_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    off = ["--values", "registers"]
    assert main(["values", "demo.rvt", "$a0", "0x70000000,2", "--at", "200", *off, "--json", "--quiet"]) == 0
    register, memory = map(json.loads, capsys.readouterr().out.splitlines())
    assert register["register"] == "a0" and memory["bytes"] == [None, None]
