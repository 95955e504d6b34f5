"""What `trace tasks` says, against what the kernels' own hooks noted: the shell, and gdb with its machine interface."""

import json

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.rows.task_rows import TasksAnswer, tasks_answer_of
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.reconstructed.past import ReconstructedPast
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.answer import tasks_answer
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import symbol_address
from tests.helpers.task_systems import What
from tests.session.tasks.runs import SYSTEMS, TaskRun, kept_run

_SAVED_STATES = {"freertos": {"ready", "delayed", "suspended", "deleted", "running", "gone"}}
_OTHERS = {"alive", "running", "gone", ""}
"""Linux' list has no threads, so a task that it lacks may be one."""


@pytest.fixture(params=SYSTEMS)
def run(request: pytest.FixtureRequest) -> tuple[str, TaskRun]:
    return request.param, kept_run(request.param)


def test_tasks_turns_and_states_are_those_of_the_kernels_notes(run: tuple[str, TaskRun]) -> None:
    system, of = run
    session = Session()
    session.open(of.capture, None)
    found = tasks_answer(session, Context(), switches=True)
    session.close()
    noted = of.switches(found.instructions, to_end=True)
    deleted = {(note.task, note.number) for note in of.notes if note.what is What.DELETED}
    turns = {(row.address, row.name): 0 for row in found.tasks}
    for _, note in noted:
        if (note.task, note.name) in turns:
            turns[note.task, note.name] += 1
    rows: dict[tuple[int | None, str], int] = {}
    for row in found.tasks:
        rows[row.address, row.name] = rows.get((row.address, row.name), 0) + row.turns
        assert row.state in _SAVED_STATES.get(system, _OTHERS), row
        if row.id is not None and (row.address, row.id) in deleted:
            assert row.state in ("gone", "deleted", ""), row
    assert all(abs(rows[task] - count) <= 1 for task, count in turns.items())  # the first and the last one may be cut
    assert sum(abs(rows[task] - count) for task, count in turns.items()) <= 2
    ran = sum(row.instructions for row in found.tasks)
    assert ran + found.outside + found.unknown == found.instructions
    assert [row.state for row in found.tasks].count("running") == 1
    assert len(found.switches) == len(noted) or abs(len(found.switches) - len(noted)) <= 2
    assert tasks_answer_of(json.loads(json.dumps(found))) == found


def test_a_damaged_list_is_said_and_no_task_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pointer of a list is overwritten where the trace ends."""
    run = kept_run("freertos")
    first = symbol_address(run.elf, "xSuspendedTaskList") + 24  # uxNumberOfItems, pxIndex, xListEnd.xItemValue
    memory = ReconstructedPast.memory

    def overwritten(past: ReconstructedPast, position: int, address: int, size: int) -> list[int | None]:
        found = memory(past, position, address, size)
        for at, byte in enumerate((0x80007C01).to_bytes(8, "little"), first):
            if address <= at < address + size:
                found[at - address] = byte
        return found

    whole = answer_of(run)
    monkeypatch.setattr(ReconstructedPast, "memory", overwritten)
    damaged = answer_of(run)
    gone, still_gone = ([row for row in it.tasks if row.state == "gone"] for it in (whole, damaged))
    assert len(gone) > len(still_gone) and whole.problems == []
    places = [row.address for row in damaged.tasks]
    assert all(places.count(row.address) > 1 for row in still_gone), "another task is where it was"
    (problem,) = damaged.problems
    assert "the list of suspended tasks is damaged (it has an item at 0x80007c01, which is not aligned)" in problem


def test_the_instruction_tells_why_where_the_trace_does_not() -> None:
    """N-Trace has no causes. FreeRTOS yields by ecall here, and the tick is an interrupt."""
    session = Session()
    session.open(kept_run("freertos").capture, None)
    found = tasks_answer(session, Context(), switches=True)
    session.close()
    yields = [it.why for it in found.switches if it.place is not None and it.place.name == "vPortYield"]
    assert len(yields) > 10 and set(yields) == {"environment call"}
    assert {it.why for it in found.switches} == {"call", "environment call", "interrupt"}


def answer_of(run: TaskRun) -> TasksAnswer:
    session = Session()
    session.open(run.capture, None)
    found = tasks_answer(session, Context())
    session.close()
    return found


def test_a_part_has_its_own_turns(run: tuple[str, TaskRun]) -> None:
    session = Session()
    session.open(run[1].capture, None)
    whole, part = (tasks_answer(session, Context(), args, switches=True) for args in ("", "80000,99999"))
    session.close()
    inside = [row for row in whole.switches if 80_000 <= row.number <= 99_999]
    assert part.instructions == 20_000 and part.switches == inside
    assert sum(row.turns for row in part.tasks) in (len(inside), len(inside) + 1)


def test_the_shell_and_gdb_print_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    run = kept_run("freertos")
    assert main(["tasks", str(run.capture), "--quiet"]) == 0
    printed = capsys.readouterr().out
    assert main(["tasks", str(run.capture), "--quiet", "--json", "--switches"]) == 0
    fields = json.loads(capsys.readouterr().out)
    commands = [SOURCE, f"trace open {run.capture}", "trace tasks", "trace tasks -switches -top 3", "trace tasks -x"]
    commands += ["set trace rtos linux", "trace tasks ", "set trace rtos off", "trace tasks  "]
    shown = run_gdb(run.elf, commands)
    assert shown["trace tasks"] == printed
    lines = shown["trace tasks -switches -top 3"].splitlines()
    assert lines[0] == f"FreeRTOS: {len(fields['switches'])} switches in {fields['instructions']} instructions"
    assert [int(line.split()[0][1:]) for line in lines[2:5]] == [it["number"] for it in fields["switches"][:3]]
    assert lines[5] == f"... {len(fields['switches']) - 3} more"
    assert "unknown option -x" in shown["trace tasks -x"]
    assert "this program is not Linux: it has no symbol init_task" in shown["trace tasks "]
    assert "tasks are switched off: `set trace rtos off`" in shown["trace tasks  "]
