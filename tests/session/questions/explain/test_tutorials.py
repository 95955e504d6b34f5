"""What is said of the programs of the tutorials, whose bugs docs/tutorials/ explains: against the pages."""

import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.rows.explain_rows import Explanation
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.explain.explain import explanations
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import HOME
from tests.helpers.example_captures import example_capture


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("explained")


def explained(file: Path) -> Explanation:
    session = Session()
    session.open(file, None)
    [found] = explanations(session, Context())
    session.close()
    return found


def test_the_page_shows_what_is_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example_capture(folder, "hang")
    monkeypatch.chdir(folder)
    assert main(["explain", "hang.rvt", "--quiet"]) == 0
    printed = capsys.readouterr().out.splitlines()
    page = (HOME / "docs" / "explain.md").read_text(encoding="utf-8").split("    $ rvtrace explain hang.rvt\n")[1]
    assert printed == [line[4:] for line in page.split("\n\n")[0].splitlines()]
    assert all(len(line) <= 80 for line in printed)


def test_a_range_is_as_if_the_trace_ended_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the ring is full; and the fields for programs."""
    file = str(example_capture(folder, "hang"))
    assert main(["explain", file, "1,300", "--json", "--quiet"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert (fields["hart"], fields["first"], fields["last"], fields["findings"]) == (0, 1, 300, [])
    assert fields["calls"][0] == {
        "number": 285, "addr": fields["calls"][0]["addr"], "func": "on_timer", "offset": 0, "file": "hang.c",
        "line": 16, "source": "{", "times": 1,
    }  # fmt: skip
    assert main(["explain", file, "nine", "--quiet"]) == 1
    assert "no RANGE" in capsys.readouterr().err


def test_a_trap_loop_is_at_the_instruction_of_the_tutorial(folder: Path) -> None:
    """docs/tutorials/a-trap-loop.md: #107, read_reg+2, a load at address 0."""
    found = explained(example_capture(folder, "trap_loop"))
    assert [it.kind for it in found.findings] == ["trap-loop"]
    [finding] = found.findings
    assert finding.place is not None
    assert (finding.place.number, finding.place.name, finding.place.offset) == (107, "read_reg", 2)
    assert "address 0x0" in finding.details[0]


def test_a_smashed_stack_comes_before_the_fault_that_follows(folder: Path) -> None:
    """docs/tutorials/a-smashed-stack.md: greet() returns to letters."""
    found = explained(example_capture(folder, "smashed_stack"))
    assert [it.kind for it in found.findings] == ["smashed-return", "fault"]
    place = found.findings[0].place
    assert place is not None and place.name == "greet"
    assert found.findings[0].facts["target"] == "0x7266202c7265646e"


@pytest.mark.parametrize("name", ["changed_variable", "latency"])
def test_nothing_is_said_where_nothing_is_wrong_with_how_it_ended(folder: Path, name: str) -> None:
    found = explained(example_capture(folder, name))
    assert found.findings == [] and found.calls and found.commands
