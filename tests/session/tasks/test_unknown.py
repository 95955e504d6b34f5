"""Traces that do not begin where the system does: what is said of tasks is true, or that they are not known."""

import re
import textwrap
from bisect import bisect_right
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.moment import PastMoment
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks import turn_finder
from rvtrace_gdb.session.tasks.answer import tasks_answer
from rvtrace_gdb.session.tasks.reader import TaskReader
from rvtrace_gdb.session.tasks.stack_pointers import MOST
from rvtrace_gdb.session.tasks.task_system import read_system
from rvtrace_gdb.session.tasks.tasks import tasks_of
from rvtrace_gdb.session.tasks.turns import RtosTask, TaskSource, TaskTurn, TaskTurns
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import HOME
from tests.helpers.task_systems import Note, What
from tests.session.tasks.runs import SYSTEMS, TaskRun, program, task_run


def turns_of(run: TaskRun) -> tuple[TaskTurns, History]:
    session = Session()
    session.open(run.capture, None)
    selected = session.selected(Context())
    found = tasks_of(session, selected)
    session.close()
    return found, selected.history


def truths(run: TaskRun, found: TaskTurns, history: History, *, to_end: bool) -> list[tuple[TaskTurn, RtosTask, Note]]:
    """Each turn whose task is known by anything, with that task and what the hook noted of the one that runs."""
    switches = run.switches(len(history), to_end=to_end)
    begins = [at for at, _ in switches]
    rows = []
    for turn in found.turns:
        number = bisect_right(begins, (turn.begin + turn.end) // 2) - 1
        if turn.task is not None and number >= 0 and turn.begin:
            rows.append((turn, found.tasks[turn.task], switches[number][1]))
    return rows


def is_true(task: RtosTask, note: Note) -> bool:
    """Whether what is known of a task is what the hook noted."""
    return task.address in (None, note.task) and task.name in ("", note.name) and task.id in (None, note.number)


def nothing_wrong(run: TaskRun, *, to_end: bool) -> None:
    found, history = turns_of(run)
    rows = truths(run, found, history, to_end=to_end)
    assert [turn for turn, task, note in rows if not is_true(task, note)] == []
    noted_of: dict[int, set[int]] = {}
    for turn, _, note in rows:
        noted_of.setdefault(turn.task or 0, set()).add(note.number)
    assert {row: numbers for row, numbers in noted_of.items() if len(numbers) > 1} == {}, "a row mixes tasks"
    assert sum(turn.end - turn.begin for turn in found.turns) == len(history)


@pytest.mark.parametrize("system", SYSTEMS)
def test_nothing_wrong_is_said_of_a_trace_that_begins_late(tmp_path: Path, system: str) -> None:
    nothing_wrong(task_run(tmp_path, system, skip=70_000, instructions=60_000), to_end=True)


@pytest.mark.parametrize("system", ["freertos", "linux"])
def test_nothing_wrong_is_said_of_e_trace_that_begins_late(tmp_path: Path, system: str) -> None:
    """E-Trace says of an interrupt only where its handler begins: the two workers are hard to tell apart."""
    run = task_run(tmp_path, system, march="rv32imac_zicsr", etrace=True, skip=70_000, instructions=60_000)
    nothing_wrong(run, to_end=False)


@pytest.mark.parametrize("system", ["freertos", "rtthread", *long_only("zephyr", "linux")])
def test_nothing_wrong_is_said_of_a_ring_that_was_overwritten(tmp_path: Path, system: str) -> None:
    nothing_wrong(task_run(tmp_path, system, skip=70_000, instructions=60_000, size=1 << 11), to_end=True)


def test_a_trace_without_a_switch_has_the_task_of_its_end(tmp_path: Path) -> None:
    """One task keeps the hart to itself, for longer than sp is asked for turn by turn."""
    run = task_run(tmp_path, "freertos", skip=180_000, instructions=MOST + 10_000)
    session = Session()
    session.open(run.capture, None)
    found = tasks_answer(session, Context(), switches=True)
    session.close()
    last = [note for note in run.notes if note.what is What.SWITCHED_IN][-1]
    (row,) = (row for row in found.tasks if row.turns)
    assert (row.address, row.name, row.id, row.state) == (last.task, last.name, last.number, "running")
    assert (found.unknown, found.switches, row.instructions) == (0, [], found.instructions)
    assert found.instructions > MOST


def test_what_no_turn_knows_is_not_asked_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question costs a search where the answer is not known."""
    monkeypatch.setattr(turn_finder, "_NEAR_END", 10_000)
    run = task_run(tmp_path, "freertos", skip=70_000, instructions=80_000)
    asked = list[int]()
    current = TaskReader.current

    def counted(reader: TaskReader, moment: PastMoment) -> int | None:
        asked.append(moment.position)
        return current(reader, moment)

    monkeypatch.setattr(TaskReader, "current", counted)
    found, history = turns_of(run)
    early = [turn for turn in found.turns if turn.begin < len(history) - 10_000]
    assert len(early) > 32 and len([at for at in asked if at < len(history) - 10_000]) <= 10


def test_contexts_name_the_tasks_of_a_trace_that_begins_late(tmp_path: Path) -> None:
    """The kernel writes the number of each task into scontext, which the encoder sends."""
    run = task_run(
        tmp_path, "freertos", "-DOWNERSHIP", skip=80_000, instructions=60_000, options_of_start={"context": True}
    )
    found, history = turns_of(run)
    rows = truths(run, found, history, to_end=True)
    assert len(rows) > 30 and {turn.source for turn, _, _ in rows} >= {TaskSource.CONTEXT}
    for turn, task, note in rows:
        assert task.id == note.number and is_true(task, note), turn
    ended = {note.number for note in run.notes if note.what is What.DELETED}
    assert all(task.name for _, task, note in rows if note.number not in ended), "these are in the lists at the end"


def test_a_program_without_debug_information_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = task_run(tmp_path, "zephyr", "-g0", instructions=100_000)
    assert main(["tasks", str(run.capture), "--quiet"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Not known: which task runs, which the debug information of the program does not say" in printed
    assert "task on stack" not in printed and "Not known which task ran" in printed


def test_a_file_that_describes_no_system_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = task_run(tmp_path, "linux", instructions=60_000)
    sound = 'name = "Mine"\nsymbols = ["init_task"]\nswitches = ["__switch_to"]\n[current]\ntask = ["$tp"]\n'
    named = '[task]\nname = ["((struct task_struct *){task})->comm"]\n'
    file = tmp_path / "mine.toml"
    for text, problem in (
        (sound + named, None),
        (sound, "[task] name: missing"),
        (sound + named + "[[list]]\nstate = 1\n", "[[list]] first: missing"),
        (sound.replace("switches", "switch") + named, "switch: unknown; known here: name, symbols,"),
        (sound.replace('["$tp"]', '"$tp"') + named, '[current] task: must be a list of texts, as in task = ["text"]'),
        ("name = ", "it is not TOML: "),
    ):
        file.write_text(text)
        assert main(["tasks", str(run.capture), "--quiet", "--rtos", str(file)]) == (0 if problem is None else 1)
        printed = capsys.readouterr()
        assert printed.out.startswith("Mine: ") if problem is None else f"{file}: {problem}" in printed.err
    assert main(["tasks", str(run.capture), "--quiet", "--rtos", str(tmp_path / "no.toml")]) == 1
    assert "no.toml: there is no such file, and no system of this name: known are" in capsys.readouterr().err


def test_the_file_in_the_page_describes_a_system(tmp_path: Path) -> None:
    page = (HOME / "docs" / "tasks.md").read_text()
    sample = re.search(r"^    name = .*?(?=^\S)", page, re.M | re.S)
    assert sample is not None
    (tmp_path / "tiny.toml").write_text(textwrap.dedent(sample[0]))
    system = read_system(tmp_path / "tiny.toml")
    assert system.name == "Tiny" and system.switches == ("tiny_switch",) and len(system.lists) == 1


def test_a_program_without_a_system_says_which_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = task_run(tmp_path, "linux", instructions=5_000)
    assert program(tmp_path, "linux").exists()
    assert main(["tasks", str(run.capture), "--quiet", "--rtos", "zephyr"]) == 1
    error = capsys.readouterr().err
    assert "this program is not Zephyr: it has no symbol z_riscv_switch" in error or "no symbol _kernel" in error
