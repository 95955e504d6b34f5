"""The tool `ask`: a question says what the shell's command says, and an explanation leads to the bug of a tutorial."""

import json
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.commands.mcp import AskedTrace, McpRequest
from rvtrace_gdb.console.commands.mcp.derived import QUESTIONS
from rvtrace_gdb.console.commands.mcp.tools import TOOLS
from rvtrace_gdb.console.main import main
from rvtrace_gdb.console.options.inputs import Programs
from rvtrace_gdb.console.options.request import RequestedTrace
from tests.console.commands.mcp.asked import Answer, Asker, asked_trace, asking
from tests.console.commands.mcp.test_bugs import line_of
from tests.helpers.example_captures import example_capture

LED = {
    "hang": ("waits", line_of("hang.c", "uart_set_speed(4000000);")),
    "trap_loop": ("trap-loop", line_of("trap_loop.c", "sum += poll(&sensors[i]);")),
    "smashed_stack": ("smashed-return", line_of("smashed_stack.c", "copy(name, who);")),
}
"""What went wrong, and a line that the page of the tutorial blames."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("asks")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[Any]:
    assert main([*words, "--json", "--quiet"]) in (0, 3)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("program", LED)
def test_an_explanation_leads_to_the_bug(program: str, folder: Path) -> None:
    """Nothing is known but the calls that answers propose."""
    kind, line = LED[program]
    said: list[Answer] = []

    async def talk(ask: Asker) -> None:
        explained = await ask("ask", question="explain")
        assert explained.json["findings"][0]["kind"] == kind
        said.extend([await ask(lead["tool"], **lead["arguments"]) for lead in explained.json["more"]])

    with asked_trace(example_capture(folder, program)) as trace:
        asking(trace, talk)
    assert not any(it.is_error for it in said)
    assert any(line in it.text for it in said), [it.text for it in said]


def test_answers_are_those_of_the_shell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(example_capture(folder, "latency"))
    asked: dict[str, tuple[dict[str, Any], list[str], str]] = {
        "why": ({"what": "$a0", "number": 4831}, ["why", file, "$a0", "--at", "4831", "--branches"], "position"),
        "log": ({"where": ["log_word"], "what": "word"}, ["log", file, "log_word", "word"], "position"),
        "calls-of": ({"what": "log_word"}, ["calls-of", file, "log_word"], "position"),
        "sql": ({"what": "SELECT func FROM coverage ORDER BY ran, func"},
                ["sql", file, "SELECT func FROM coverage ORDER BY ran, func"], "func"),
    }  # fmt: skip
    rows: dict[str, list[Any]] = {}
    facts: dict[str, Any] = {}

    async def talk(ask: Asker) -> None:
        for question, (given, _, _) in asked.items():
            following: Any = {"tool": "ask", "arguments": {"question": question, **given}}
            rows[question] = []
            while following is not None:
                found = await ask(following["tool"], **following["arguments"])
                rows[question] += found.rows
                following = found.json.get("more")
        facts["stack"] = (await ask("ask", question="stack")).json
        facts["intervals"] = (await ask("ask", question="intervals", what="log_word")).json
        facts["between"] = (await ask("ask", question="intervals", where=["mask", "unmask"])).json
        facts["led"] = (await ask("ask", question="why", what="$pc", number=6086)).text

    with asked_trace(Path(file)) as trace:
        asking(trace, talk)
    for question, (_, words, key) in asked.items():
        assert [row.get(key) for row in rows[question]] == [row.get(key) for row in printed(capsys, *words)] != []
    [depth] = printed(capsys, "stack", file)
    assert [it["lowest"] for it in facts["stack"]["stacks"]] == [it["lowest"] for it in depth["stacks"]]
    assert facts["intervals"]["measured"] == len(rows["log"])
    assert facts["between"]["measured"] == printed(capsys, "intervals", file, "mask", "unmask")[0]["measured"]
    assert line_of("latency.c", "crc = crc_of(log_, logged);") in facts["led"]


def test_two_traces_are_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The other one is named where the server is started, not by a client."""
    one, other = str(example_capture(folder, "calibration")), str(folder / "other.rvt")
    Path(other).write_bytes(Path(one).read_bytes())
    trace = AskedTrace(McpRequest(RequestedTrace(one, None, Programs(())), True, other))
    rows: list[Any] = []

    async def talk(ask: Asker) -> None:
        rows.extend((await ask("ask", question="diff")).rows)

    asking(trace, talk)
    trace.close()
    [summary] = printed(capsys, "diff", one, other)
    assert [(row["same"], row["differences"]) for row in rows] == [(summary["same"], 0)]


def test_there_are_at_most_ten_tools() -> None:
    """A client has to read them in every conversation."""
    assert len(TOOLS) <= 10
    assert set(TOOLS["ask"].arguments["question"].schema["enum"]) == set(QUESTIONS)
    assert len(json.dumps([[name, it.about, it.schema()] for name, it in TOOLS.items()])) < 8000
