"""Which task ran where, against what the kernels' own hooks noted."""

import pytest

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.tasks import tasks_of
from rvtrace_gdb.session.tasks.turns import RtosTask, TaskTurns
from tests.helpers.amounts import crossed
from tests.helpers.task_systems import Note
from tests.session.tasks.runs import SYSTEMS, TaskRun, kept_run

_SWITCH = 200
"""More instructions than any of the systems runs between its hook and the end of the switch."""


def turns_of(run: TaskRun) -> tuple[TaskTurns, History]:
    session = Session()
    session.open(run.capture, None)
    selected = session.selected(Context())
    found = tasks_of(session, selected)
    session.close()
    return found, selected.history


def is_of(task: RtosTask, note: Note) -> bool:
    """Whether a task is the one of a note, as far as it is known."""
    return task.address in (None, note.task) and task.name in ("", note.name) and task.id in (None, note.number)


@pytest.mark.parametrize(
    ("system", "traced"), crossed([*SYSTEMS], [("rv64imac_zicsr", False), ("rv32imac_zicsr", True)])
)
def test_the_turns_from_reset_are_those_of_the_kernels_own_notes(system: str, traced: tuple[str, bool]) -> None:
    march, etrace = traced
    run = kept_run(system, march, etrace=etrace)
    found, history = turns_of(run)
    assert (found.system, found.problems, history.gaps) == (SYSTEMS[system], [], 0)
    noted = run.switches(len(history), to_end=False)
    turns = [turn for turn in found.turns if turn.task is not None]
    if noted[-1][0] > turns[-1].begin:  # the trace ends in the middle of a switch
        noted.pop()
    noted = noted[len(noted) - len(turns) :]  # Linux and Zephyr note the first task before it runs
    assert len(turns) > 30
    for turn, (position, note) in zip(turns, noted, strict=True):
        task = found.tasks[turn.task or 0]
        assert (task.address, task.name) == (note.task, note.name) and is_of(task, note), turn
        assert 0 < turn.begin - position < _SWITCH, turn
    assert sum(turn.end - turn.begin for turn in found.turns) == len(history)
