"""Lists of one task alone, in gdb: of the real FreeRTOS, from reset on, with what the hooks of its kernel noted."""

import re
from pathlib import Path

import pytest

from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.task_systems import freertos
from tests.session.tasks.captures import TaskCapture, captured, turns_noted

WORKERS = ('"worker #3"', '"worker #4"')
"""Two tasks with one name, by their numbers; what has a blank is in quotes."""


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
    assert sorted(names.splitlines()) == sorted(f"trace functions -task {it}" for it in ("worker", *WORKERS))
    assert option.splitlines() == ["trace history -task"]
    assert 'func="begun"' in machine and 'number="2"' in machine


@pytest.mark.parametrize("name", ["to take", "dad's"])
def test_what_completes_is_taken(tmp_path: Path, name: str) -> None:
    """A name with a blank, or with a quote, and tasks with one name. gdb itself ends what was begun with a quote."""
    elf = freertos(tmp_path, f'-DTAKER="{name}"')
    known = captured(elf)
    lines = (
        f"trace find -task '{name[:2]}", f'trace find -task "{name[:4]}', "trace functions -task w",
        'trace functions -task "worker #', "trace history -task ", "trace find -t", "trace find -task boss mai",
    )  # fmt: skip
    commands = [SOURCE, f"trace open {known.file}", "trace tasks"]
    said = run_gdb(elf, [*commands, *(f"complete {line}" for line in lines)])
    single, double, plain, numbered, every, option, place = (said[f"complete {line}"].splitlines() for line in lines)
    assert single == ([] if "'" in name else [f"trace find -task '{name}"])
    assert double == [f'trace find -task "{name}']
    assert sorted(plain) == sorted(f"trace functions -task {it}" for it in ("worker", *WORKERS))
    assert numbered == [f"trace functions -task {it[:-1]}" for it in WORKERS]
    assert f'trace history -task "{name}"' in every and "trace history -task boss" in every
    assert option == ["trace find -task", "trace find -thread"] and "trace find -task boss main" in place
    printed = re.findall(r"worker  \(\d+\)", said["trace tasks"])
    asked = [f"{line} 1,1" for line in (*every, *(f'trace history -task "{it}"' for it in printed))]
    answers = run_gdb(elf, [*commands[:2], *asked])
    firsts = [re.search(r"^\d+", answers[it], re.MULTILINE) for it in asked]
    assert all(firsts)
    of_line = {line: found[0] for line, found in zip(asked, firsts, strict=True) if found}
    first = next(note.when for note in turns_noted(known.notes) if note.name == name)
    assert 0 < int(of_line[f'trace history -task "{name}" 1,1']) - first < 200
    assert len({of_line[f"trace history -task {it} 1,1"] for it in WORKERS}) == len(printed) == 2
    both = [of_line[f'trace history -task "{it}" 1,1'] for it in printed]
    assert sorted(both) == sorted(of_line[f"trace history -task {it} 1,1"] for it in WORKERS)
