"""Lists of one task alone, in gdb: of the real FreeRTOS, from reset on, with what the hooks of its kernel noted."""

import re
from pathlib import Path

import pytest

from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.task_systems import freertos
from tests.session.tasks.captures import TaskCapture, captured, turns_noted


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return freertos(tmp_path_factory.mktemp("freertos"))


@pytest.fixture(scope="module")
def capture(program: Path) -> TaskCapture:
    return captured(program)


def test_commands_with_a_task(program: Path, capture: TaskCapture) -> None:
    ask = (
        'trace functions -task "boss" 1,2', "trace history -task taker 1,5", "trace find -task taker make",
        "trace find -task maker make 1,1", "trace functions -task nobody", "trace functions -task",
        "trace history -all -task boss", "complete trace functions -task w", "complete trace history -ta",
        "interpreter-exec mi \"-rvtrace-functions --count 1 --begin 2 --task boss\"",
    )  # fmt: skip
    said = run_gdb(program, [SOURCE, f"trace open {capture.file}", *ask])
    functions, history, none, found, nobody, nothing, both, names, option, machine = (said[it] for it in ask)
    assert [line.split("\t")[1] for line in functions.splitlines()] == ["boss", "begun"]
    first = next(note.when for note in turns_noted(capture.notes) if note.name == "taker")
    numbers = [int(line.split()[0]) for line in history.splitlines() if line[0].isdigit()]
    assert numbers == list(range(numbers[0], numbers[0] + 5)) and 0 < numbers[0] - first < 200
    assert none.startswith("Of task taker alone: make did not run") and "<make" in found
    assert re.search(r"nobody is none of the tasks: boss #\d+, taker #\d+, maker #\d+, worker #\d+", nobody)
    assert nothing.strip() == "trace functions: -task takes a number or a name."
    assert both.strip() == "trace history: give -task or -all, not both."
    assert names.splitlines() == ["trace functions -task worker"] and option.splitlines() == ["trace history -task"]
    assert 'func="begun"' in machine and 'number="2"' in machine
