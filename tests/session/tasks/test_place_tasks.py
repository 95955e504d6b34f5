"""Answers about a place name the task that ran there, as the kernel's own hooks noted it."""

import json
from itertools import pairwise
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from tests.console.commands.console.test_piped import console
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.session.tasks.runs import TaskRun, kept_run

_NEAR = 300
"""More instructions than a system runs between its hook and the end of the switch."""


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
    machine, where, brief = (
        f'interpreter-exec mi "-rvtrace-{it}"' for it in ("who-wrote ended", "position", "position --brief")
    )
    commands = [SOURCE, f"trace open {run.capture}", "trace replay", "trace who-wrote ended", machine]
    said = run_gdb(run.elf, [*commands, f"trace goto {writer['number']}", "trace position", where, brief])
    assert f"written in task {writer['task']}, " in said["trace who-wrote ended"]
    assert f'task="{writer["task"]}"' in said[machine]
    assert said["trace position"].strip().endswith(f", in task {writer['task']}.")
    assert f',task="{writer["task"]}"' in said[where]
    assert said[brief].strip() == said[where].strip().replace(f',task="{writer["task"]}"', "")


def test_programs_are_told_the_task_of_each_place(capsys: pytest.CaptureFixture[str]) -> None:
    """In the middle of turns of different tasks, and before the kernel has noted any."""
    run = kept_run("freertos")
    begins = run.switches(run.last, to_end=False)
    turns = pairwise(begins)
    middles = {note.name: (at + after) // 2 for (at, note), (after, _) in turns if after - at > 2 * _NEAR}
    assert len(middles) > 2
    where = 'interpreter-exec mi "-rvtrace-position"'
    visits = [f"trace goto {number}" for number in (*middles.values(), begins[0][0] // 2)]
    asked_at = [where + " " * visit for visit in range(len(visits))]
    steps = [word for pair in zip(visits, asked_at, strict=True) for word in pair]
    said = run_gdb(run.elf, [SOURCE, f"trace open {run.capture}", "trace replay", *steps])
    for (name, number), command in zip(middles.items(), asked_at, strict=False):
        assert f',number="{number}",' in said[command] and f',task="{name}' in said[command]
        assert task_of(run, number) == name
    assert 'state="past"' in said[asked_at[-1]] and "task=" not in said[asked_at[-1]]
    name, number = next(iter(middles.items()))
    shown = console(f"trace open {run.capture}\ntrace replay\ntrace goto {number}\ntrace position\n", "--json")
    last = json.loads(shown.stdout.splitlines()[-1])
    assert last["position"]["number"] == number and last["result"]["task"].split()[0] == name


@pytest.mark.parametrize("system", ["freertos", "zephyr"])
def test_executions_are_said_with_the_tasks_that_ran(capsys: pytest.CaptureFixture[str], system: str) -> None:
    """The hook notes a switch some instructions before the turn begins, so places near one are left out."""
    run = kept_run(system)
    place = {"freertos": "xTaskIncrementTick", "zephyr": "do_swap"}[system]
    rows: list[dict[str, Any]] = [json.loads(line) for line in asked(capsys, run, "find", place, "--json").splitlines()]
    lines = asked(capsys, run, "find", place).splitlines()
    begins = [at for at, _ in run.switches(run.last, to_end=False)]
    told = set[str]()
    for row, line in zip(rows, lines, strict=True):
        number = row["position"]
        if begins[0] < number and all(not at <= number < at + _NEAR for at in begins):
            told.add(row["task"])
            assert row["task"].split()[0] == task_of(run, number)
            assert f", in task {row['task']}" in line
        if number < begins[0]:
            assert "task" not in row and ", in task " not in line
    assert len(told) > 2


def test_gdb_says_the_tasks_of_executions(capsys: pytest.CaptureFixture[str]) -> None:
    run = kept_run("freertos")
    rows = [json.loads(line) for line in asked(capsys, run, "find", "xTaskIncrementTick", "--json").splitlines()]
    machine = 'interpreter-exec mi "-rvtrace-find --begin 1 --count 3 xTaskIncrementTick"'
    said = run_gdb(run.elf, [SOURCE, f"trace open {run.capture}", "trace find xTaskIncrementTick 1,3", machine])
    lines = said["trace find xTaskIncrementTick 1,3"].strip().splitlines()
    assert len(lines) == 3
    for row, line in zip(rows, lines, strict=False):
        assert line.endswith(f", in task {row['task']}") if "task" in row else ", in task " not in line
    named = [f'task="{row["task"]}"' for row in rows[:3] if "task" in row]
    assert named and said[machine].count("task=") == len(named) and all(name in said[machine] for name in named)
