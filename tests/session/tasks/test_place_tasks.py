"""Answers about a place name the task that ran there, as the kernel's own hooks noted it."""

import json
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.session.tasks.runs import TaskRun, kept_run


def asked(capsys: pytest.CaptureFixture[str], run: TaskRun, *words: str) -> str:
    assert main([words[0], str(run.capture), *words[1:], "--quiet"]) == 0
    return capsys.readouterr().out


def task_of(run: TaskRun, number: int) -> str:
    """The name of the task that the hooks noted last before an instruction."""
    first = next(line for line in reversed(run.switches(run.last, to_end=False)) if line[0] < number)
    return first[1].name


def test_a_writer_and_each_reason_are_said_with_their_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    run = kept_run("freertos")
    [writer] = map(json.loads, asked(capsys, run, "who-wrote", "ended", "--json").splitlines())
    assert writer["task"].split()[0] == task_of(run, writer["number"]) == "child"
    assert f"written in task {writer['task']}, " in asked(capsys, run, "who-wrote", "ended")
    rows: list[dict[str, Any]] = [json.loads(line) for line in asked(capsys, run, "why", "sum", "--json").splitlines()]
    said = [row for row in rows if "task" in row]
    assert said and all(row["task"].split()[0] == task_of(run, row["position"]) for row in said)
    assert f" in task {said[0]['task']} " in asked(capsys, run, "why", "sum").splitlines()[0]


def test_gdb_says_the_task_of_a_writer_and_of_the_place_in_the_past(capsys: pytest.CaptureFixture[str]) -> None:
    run = kept_run("freertos")
    [writer] = map(json.loads, asked(capsys, run, "who-wrote", "ended", "--json").splitlines())
    machine = 'interpreter-exec mi "-rvtrace-who-wrote ended"'
    commands = [SOURCE, f"trace open {run.capture}", "trace replay", "trace who-wrote ended", machine]
    said = run_gdb(run.elf, [*commands, f"trace goto {writer['number']}", "trace position"])
    assert f"written in task {writer['task']}, " in said["trace who-wrote ended"]
    assert f'task="{writer["task"]}"' in said[machine]
    assert said["trace position"].strip().endswith(f", in task {writer['task']}.")
