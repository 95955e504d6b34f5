"""Which task ran from when on, against what the kernels' own trace hooks noted while they ran."""

from pathlib import Path

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.tasks import tasks_of
from rvtrace_gdb.session.tasks.turns import TaskTurns
from tests.helpers.task_systems import freertos, small
from tests.session.tasks.captures import TaskCapture, captured, turns_noted

RV64, RV32 = "rv64imac_zicsr", "rv32imac_zicsr"
BEHIND = 200
"""Instructions from a hook to the end of the function that switches, at most."""


def turns_of(capture: TaskCapture) -> TaskTurns:
    session = Session()
    session.open(capture.file, None)
    found = tasks_of(session, session.selected(Context()))
    session.close()
    return found


def check_against_hooks(capture: TaskCapture) -> None:
    """The tasks of all turns, in order, are those of the hooks; each turn begins just behind its hook."""
    found, noted = turns_of(capture), turns_noted(capture.notes)
    turns = [(turn, found.tasks[turn.task]) for turn in found.turns if turn.task is not None]
    assert [(task.address, task.name) for _, task in turns] == [(note.task, note.name) for note in noted]
    behind = [turn.begin - note.when for (turn, _), note in zip(turns, noted, strict=True)]
    assert min(behind) > 0 and max(behind) < BEHIND


@pytest.mark.parametrize(
    ("march", "etrace", "options"),
    [
        (RV64, False, ()),
        (RV32, True, ()),
        (RV32, False, ("-DYIELD_BY_SOFTWARE_INTERRUPT",)),
        (RV64, True, ("-DNESTED",)),
        (RV64, False, ("-DOVERFLOW",)),
    ],
    ids=["ecall-rv64-ntrace", "ecall-rv32-etrace", "software-interrupt", "nested", "overflow"],
)
def test_turns_of_the_real_freertos_are_those_of_its_hooks(
    tmp_path: Path, march: str, etrace: bool, options: tuple[str, ...]
) -> None:
    capture = captured(freertos(tmp_path, *options, march=march), etrace=etrace)
    check_against_hooks(capture)
    found, created = turns_of(capture), {note.number: note for note in capture.notes}
    assert all(task.id in created and created[task.id].task == task.address for task in found.tasks)


@pytest.mark.parametrize(
    ("system", "march", "etrace", "options"),
    [
        ("zephyr", RV64, False, ()),
        ("zephyr", RV32, True, ("-DNESTED",)),
        ("rtthread", RV64, True, ()),
        ("rtthread", RV32, False, ("-DOVERFLOW",)),
        ("linux", RV64, True, ("-DOVERFLOW",)),
        ("linux", RV32, False, ()),
    ],
)
def test_turns_of_small_kernels_are_those_of_their_hooks(
    tmp_path: Path, system: str, march: str, etrace: bool, options: tuple[str, ...]
) -> None:
    """Their structures and the functions that switch are those of Zephyr, RT-Thread and Linux."""
    check_against_hooks(captured(small(tmp_path, system, *options, march=march), etrace=etrace))
