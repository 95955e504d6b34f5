"""The systems of tasks that tests run have the cases that the tests are about, by what their kernels' hooks noted."""

from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.helpers.cross_compiler import symbol_address
from tests.helpers.task_systems import Note, What, freertos, notes

RV64, RV32 = "rv64imac_zicsr", "rv32imac_zicsr"
BOTH = pytest.mark.parametrize("march", [RV64, RV32])
RUN = 220_000


def ran(elf: Path, *, harts: int = 1) -> Machine:
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20), harts=harts)
    machine.run_slice(RUN)
    return machine


def of(noted: list[Note], what: What) -> list[Note]:
    return [note for note in noted if note.what is what]


@BOTH
def test_freertos_has_preemption_equal_names_deleted_tasks_and_memory_that_is_used_again(
    tmp_path: Path, march: str
) -> None:
    elf = freertos(tmp_path, march=march)
    machine = ran(elf)
    noted = notes(machine, elf)
    created = of(noted, What.CREATED)
    assert [note.name for note in created[:6]] == ["maker", "taker", "worker", "worker", "boss", "IDLE"]
    assert {note.name for note in created[6:]} == {"child", "prey", "victim"}
    again = [note for note in created if note.task in [other.task for other in created if other.number < note.number]]
    assert again and len({note.number for note in created}) == len(created)
    assert {note.name for note in of(noted, What.DELETED)} == {"child", "prey", "victim"}
    assert {note.name for note in of(noted, What.SWITCHED_IN)} == {note.name for note in created}


@BOTH
def test_freertos_nests_interrupts(tmp_path: Path, march: str) -> None:
    elf = freertos(tmp_path, "-DNESTED", march=march)
    assert ran(elf).bus.read(symbol_address(elf, "uxNestedInterrupts"), 4) > 20


@BOTH
def test_freertos_calls_the_hook_of_a_stack_that_is_too_small(tmp_path: Path, march: str) -> None:
    elf = freertos(tmp_path, "-DOVERFLOW", march=march)
    noted = notes(ran(elf), elf)
    assert (noted[-1].what, noted[-1].name) == (What.OVERFLOWED, "greedy")
