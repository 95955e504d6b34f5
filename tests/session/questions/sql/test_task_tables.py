"""The tables `tasks` and `turns` of `rvtrace sql`: what the hooks of the kernel noted, and what the lists print."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from tests.helpers.example_captures import example_capture
from tests.session.tasks.runs import kept_run

Row = dict[str, Any]
_NEAR = 300
"""More instructions than a system runs between its hook and the end of the switch."""


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[Row]:
    assert main([*words, "--json", "--quiet"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("system", ["freertos", "linux"])
def test_turns_are_those_that_the_hooks_noted(capsys: pytest.CaptureFixture[str], system: str) -> None:
    run = kept_run(system)
    turns = printed(capsys, "sql", str(run.capture), "SELECT * FROM turns ORDER BY begin")
    [tasks] = printed(capsys, "tasks", str(run.capture))
    assert sum(row["instructions"] for row in turns) == tasks["instructions"]
    assert turns[0]["known_from"] == "no task" and "task" not in turns[0] and turns[0]["begin"] == 1
    assert [row["begin"] for row in turns[1:]] == [row["end"] + 1 for row in turns[:-1]]
    noted = run.switches(tasks["instructions"], to_end=False)
    assert [row["task"].split()[0] for row in turns[1:]] == [note.name for _, note in noted]
    assert all(0 <= row["begin"] - at < _NEAR for row, (at, _) in zip(turns[1:], noted, strict=True))


def test_tasks_are_those_of_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(kept_run("freertos").capture)
    [listed] = printed(capsys, "tasks", file)
    rows = printed(capsys, "sql", file, "SELECT * FROM tasks")
    expected = {(it["name"], it["id"], it["turns"], it["instructions"], it["state"]) for it in listed["tasks"]}
    assert {(it["name"], it["id"], it["turns"], it["instructions"], it["state"]) for it in rows} == expected
    assert {it["task"] for it in rows if it["name"] == "worker"} == {"worker #3", "worker #4"}
    [off] = printed(capsys, "sql", file, "SELECT count(*) AS n FROM tasks", "--rtos", "off")
    assert off == {"n": 0}


def test_a_join_gives_the_functions_of_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(kept_run("freertos").capture)
    query = """SELECT func FROM functions JOIN turns USING (hart)
        WHERE functions.begin BETWEEN turns.begin AND turns."end" AND task = 'maker'"""
    rows = printed(capsys, "sql", file, query)
    listed = printed(capsys, "functions", file, "--task", "maker")
    assert len(rows) > 100 and Counter(it["func"] for it in rows) == Counter(it["func"] for it in listed)


def test_a_program_without_tasks_has_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = str(example_capture(tmp_path, "demo"))
    for table in ("tasks", "turns"):
        assert printed(capsys, "sql", file, f"SELECT count(*) AS n FROM {table}") == [{"n": 0}]
