"""Which task ran where, against the simulated hart, whose memory is read after each instruction."""

from itertools import groupby
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.tasks import tasks_of
from rvtrace_gdb.session.tasks.turns import TaskSource, TaskTurns
from tests.session.tasks.runs import TaskRun, TruthTask, freertos_run


def turns_of(run: TaskRun) -> tuple[TaskTurns, History]:
    session = Session()
    session.open(run.capture, None)
    selected = session.selected(Context())
    found = tasks_of(session, selected)
    session.close()
    return found, selected.history


def wrong_positions(found: TaskTurns, truth: list[TruthTask | None]) -> list[int]:
    """Where a task is said that does not run there. What is not known is not wrong."""
    wrong = []
    for at, task in enumerate(truth):
        known = found.task_at(at)
        if known is not None and known.address is not None and task is not None:
            wrong += [at] * ((known.address, known.name) != task)
    return wrong


@pytest.mark.parametrize(("march", "etrace"), [("rv64imac_zicsr", False), ("rv32imac_zicsr", True)])
def test_each_instruction_from_reset_belongs_to_the_task_of_the_harts_memory(
    tmp_path: Path, march: str, etrace: bool
) -> None:
    run = freertos_run(tmp_path, march, instructions=70_000, etrace=etrace)
    found, history = turns_of(run)
    truth = run.truth(history)
    assert wrong_positions(found, truth) == []
    assert [turn.source for turn in found.turns if turn.task is None] == [TaskSource.NONE]
    names = [found.tasks[turn.task].name for turn in found.turns if turn.task is not None]
    begin = found.turns[1].begin
    assert names == [name for (_, name), _ in groupby(task for task in truth[begin:] if task is not None)]
    assert {task.name for task in found.tasks if task.idle} == {"IDLE"}
    twins = {task.address for task in found.tasks if task.name == "twin"}
    assert len(twins) == 2
    reused = {task.name for task in found.tasks if task.name in ("first", "second", "third")}
    assert reused == {"first", "second", "third"}, "one after the other, in the memory of the one before"
