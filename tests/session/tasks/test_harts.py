"""Tasks that move between two harts: nothing wrong is said of any, against what the kernels' own hooks noted.

What the other hart writes is not known, and a call stack that was left here may go on there; where turns begin is.
"""

from bisect import bisect_right
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.sim.target import target_description
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.answer import tasks_answer
from rvtrace_gdb.session.tasks.tasks import tasks_of
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.task_systems import What, notes, small
from tests.session.board import Board
from tests.session.tasks.test_unknown import is_true

RUN = 320_000
"""Instructions of both harts together."""
_SWITCH = 300
"""More instructions than either system runs between its hook and the end of the switch."""


@pytest.mark.parametrize("system", ["freertos_smp", "zephyr", "linux"])
def test_turns_begin_where_they_do_and_nothing_wrong_is_said_of_tasks_that_move(tmp_path: Path, system: str) -> None:
    elf = small(tmp_path, system, harts=2)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 18), harts=2)
    machine.halt_at_start()
    (tmp_path / "board.toml").write_text(target_description(machine, "board"))
    context = Context(str(elf), f"{tmp_path}/board.toml")
    session = Session(Board(machine, elf, tmp_path).connect, {})
    session.start(context, {"timestamps": True})
    for core in machine._cores:
        core.control.resume()
    for _ in range(4):  # a part ends early where all harts wait for an interrupt
        machine.run_slice(RUN // 4)
    session.stop(context=context)
    noted = [note for note in notes(machine, elf) if note.what is What.SWITCHED_IN]
    both = tasks_answer(session, Context(), switches=True)
    assert both.harts == [0, 1] and both.system.lower() == system.removesuffix("_smp")
    assert [it.partition(" in ")[0] for it in both.problems] == [f"which task ran on hart {n}" for n in range(2)]
    for hart in range(2):
        selected = session.selected(replace(context, hart=hart))
        found = tasks_of(session, selected)
        there = [it for it in noted if it.hart == hart]
        begins = [note.when for note in there]
        for turn in found.turns[1:]:
            number = bisect_right(begins, turn.begin) - 1
            assert 0 < turn.begin - begins[number] < _SWITCH, (hart, turn)
            assert turn.task is None or is_true(found.tasks[turn.task], there[number]), (hart, turn)
        assert len(found.turns) > 10
        assert sum(turn.end - turn.begin for turn in found.turns) == len(selected.history)
    session.close()
