"""Which task ran from when on, against what the kernels' own trace hooks noted while they ran."""

import json
from bisect import bisect_right
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.tasks import tasks_of
from rvtrace_gdb.session.tasks.turns import TaskTurns
from tests.helpers.amounts import crossed, long_only
from tests.helpers.task_systems import What, freertos, small
from tests.session.tasks.captures import TaskCapture, captured, captured_of_two, turns_noted
from tests.session.tasks.runs import task_run

RV64, RV32 = "rv64imac_zicsr", "rv32imac_zicsr"
BEHIND = 200
"""Instructions from a hook to the end of the function that switches, at most."""


def turns_of(capture: TaskCapture) -> TaskTurns:
    session = Session()
    session.open(capture.file, None)
    found = tasks_of(session, session.selected(Context()))
    session.close()
    return found


def check_against_hooks(capture: TaskCapture) -> TaskTurns:
    """The tasks of all turns, in order, are those of the hooks; each turn begins just behind its hook. Returns them."""
    found, noted = turns_of(capture), turns_noted(capture.notes)
    turns = [(turn, found.tasks[turn.task]) for turn in found.turns if turn.task is not None]
    assert [(task.address, task.name) for _, task in turns] == [(note.task, note.name) for note in noted]
    behind = [turn.begin - note.when for (turn, _), note in zip(turns, noted, strict=True)]
    assert min(behind) > 0 and max(behind) < BEHIND
    return found


@pytest.mark.parametrize(
    ("march", "etrace", "options"),
    [
        (RV32, False, ("-DYIELD_BY_SOFTWARE_INTERRUPT",)),
        (RV64, True, ("-DNESTED",)),
        (RV64, False, ("-DOVERFLOW",)),
        *long_only((RV64, False, ()), (RV32, True, ())),  # as in test_turns.py
    ],
    ids=["software-interrupt", "nested", "overflow", *long_only("ecall-rv64-ntrace", "ecall-rv32-etrace")],
)
def test_turns_of_the_real_freertos_are_those_of_its_hooks(
    tmp_path: Path, march: str, etrace: bool, options: tuple[str, ...]
) -> None:
    capture = captured(freertos(tmp_path, *options, march=march), etrace=etrace)
    found, created = check_against_hooks(capture), {note.number: note for note in capture.notes}
    assert all(task.id in created and created[task.id].task == task.address for task in found.tasks)


@pytest.mark.parametrize(
    ("system", "march", "etrace", "options"),
    [
        ("zephyr", RV32, True, ("-DNESTED",)),
        ("rtthread", RV32, False, ("-DOVERFLOW",)),
        ("linux", RV64, True, ("-DOVERFLOW",)),
        *long_only(("zephyr", RV64, False, ()), ("rtthread", RV64, True, ()), ("linux", RV32, False, ())),
    ],
)
def test_turns_of_small_kernels_are_those_of_their_hooks(
    tmp_path: Path, system: str, march: str, etrace: bool, options: tuple[str, ...]
) -> None:
    """Their structures and the functions that switch are those of Zephyr, RT-Thread and Linux."""
    check_against_hooks(captured(small(tmp_path, system, *options, march=march), etrace=etrace))


@pytest.mark.parametrize(
    ("system", "options"),
    [("zephyr", ()), ("linux", ("-DNOTES_OWNERSHIP",)), ("freertos_smp", ("-DNOTES_OWNERSHIP",)), ("freertos_smp", ())],
)
def test_tasks_that_move_between_two_harts_are_known_by_contexts_or_not_at_all(
    tmp_path: Path, system: str, options: tuple[str, ...]
) -> None:
    """A call stack that was left on one hart goes on on the other one, and another one looks alike."""
    capture = captured_of_two(small(tmp_path, system, "-DROUNDS=2", *options, harts=2))
    session = Session()
    session.open(capture.file, None)
    for hart in (0, 1):
        found = tasks_of(session, session.selected(Context(hart=hart)))
        noted = turns_noted([note for note in capture.notes if note.hart == hart])
        known = [(turn, found.tasks[turn.task]) for turn in found.turns if turn.task is not None]
        assert len(noted) > 8 and (len(known) > 8) is bool(options)
        whens = [note.when for note in noted]
        for turn, task in (it for it in known if it[0].begin > noted[0].when):
            note = noted[bisect_right(whens, (turn.begin + turn.end) // 2) - 1]
            assert (task.id, task.name) in ((note.number, note.name), (note.number, ""))
    session.close()


@pytest.mark.parametrize("system", ["freertos", "zephyr", "rtthread"])
def test_a_stack_that_is_too_small_is_said_with_its_task(
    tmp_path: Path, system: str, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = freertos(tmp_path, "-DOVERFLOW") if system == "freertos" else small(tmp_path, system, "-DOVERFLOW")
    capture = captured(elf)
    noted = capture.notes[-1]
    assert main(["explain", str(capture.file), "--json", "--quiet"]) == 0
    [finding] = [it for it in json.loads(capsys.readouterr().out)["findings"] if it["kind"] == "stack-overflow"]
    assert finding["text"].startswith("the stack of task greedy runs into ") and finding["facts"]["number"] < noted.when
    made = (it for it in capture.notes if it.what is What.CREATED and it.task < noted.task)
    below = max(made, key=lambda it: it.task)
    if system == "freertos":  # it allocates the control block of a task behind its stack
        assert f"runs into the control block of task {below.name}" in finding["text"]
    assert main(["stack", str(capture.file), "--quiet"]) == 0
    [area] = [line for line in capsys.readouterr().out.split("Stack ") if line.startswith("task greedy ")]
    assert "below its begin" in " ".join(area.split())


DEPTH = 160
"""configMINIMAL_STACK_SIZE of the program, in words: what each of its stacks has."""


@pytest.mark.parametrize(("march", "word"), [(RV64, 8), (RV32, 4)])
def test_stacks_of_tasks_have_the_size_that_the_program_asks_for(
    tmp_path: Path, march: str, word: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without pxEndOfStack, and from the first instruction of the first task on: none is on the heap."""
    capture = captured(freertos(tmp_path, march=march))
    assert main(["stack", str(capture.file), "--json", "--quiet"]) == 0
    [depth] = map(json.loads, capsys.readouterr().out.splitlines())
    stacks = {it["name"]: it for it in depth["stacks"]}
    sizes = {int(it["end"], 16) - int(it["start"], 16) for name, it in stacks.items() if name.startswith("task ")}
    assert sizes == {DEPTH * word} and "ucHeap" not in stacks
    first = next(it for it in capture.notes if it.what is What.SWITCHED_IN).name
    assert {"task boss", f"task {first}"} <= stacks.keys()


@pytest.mark.parametrize(
    ("begins", "registers"), crossed([("freertos", 80_000), ("freertos", 100_000), ("zephyr", 40_000)], [True, False])
)
def test_no_stack_is_the_whole_heap_that_tasks_share(
    tmp_path: Path, begins: tuple[str, int], registers: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace that begins in the middle: sp is in the heap, and it is not known which task runs. The stack of a task
    has the size that the program asks for.
    """
    system, skip = begins
    run = task_run(tmp_path, system, skip=skip, instructions=20_000, registers=registers)
    assert main(["stack", str(run.capture), "--json", "--quiet"]) == 0
    [depth] = map(json.loads, capsys.readouterr().out.splitlines())
    whole = [it for it in depth["stacks"] if {"start", "end"} <= it.keys()]
    known = {it["name"]: int(it["end"], 16) - int(it["start"], 16) for it in whole}
    sizes = {size for name, size in known.items() if name.startswith("task ")}
    assert "ucHeap" not in known and (system != "freertos" or not sizes or sizes == {8 * DEPTH})
    assert main(["explain", str(run.capture), "--json", "--quiet"]) == 0
    assert not [it for it in json.loads(capsys.readouterr().out)["findings"] if it["kind"] == "stack-overflow"]


def test_a_stack_that_is_too_small_is_said_when_a_loop_without_an_end_follows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hook of the kernel stays in it, for more instructions than values are asked for."""
    capture = captured(freertos(tmp_path, "-DOVERFLOW"), run=2_300_000)
    assert main(["explain", str(capture.file), "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["last"] > 2_000_000 and not [it for it in found.get("unknown", []) if "too long" in it]
    assert found["findings"][0]["text"].startswith("the stack of task greedy runs into the control block of task ")
    assert found["task"] == capture.notes[-1].name == "greedy"
