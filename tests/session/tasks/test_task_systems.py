"""The systems of tasks that tests run have the cases that the tests are about, by what their kernels' hooks noted."""

from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.helpers.cross_compiler import symbol_address
from tests.helpers.task_systems import Note, What, freertos, notes, small

RV64, RV32 = "rv64imac_zicsr", "rv32imac_zicsr"
BOTH = pytest.mark.parametrize("march", [RV64, RV32])
SMALL = pytest.mark.parametrize("system", ["zephyr", "rtthread", "linux"])
RUN = 60_000


def ran(elf: Path, *, harts: int = 1) -> Machine:
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20), harts=harts)
    for _ in range(8 * harts):  # a part ends early where all harts wait for an interrupt
        machine.run_slice(RUN)
    return machine


def of(noted: list[Note], what: What) -> list[Note]:
    return [note for note in noted if note.what is what]


def memory_used_again(noted: list[Note]) -> list[Note]:
    created = of(noted, What.CREATED)
    return [note for note in created if any(note.task == other.task and note.when > other.when for other in created)]


@BOTH
def test_freertos_has_preemption_equal_names_deleted_tasks_and_memory_that_is_used_again(
    tmp_path: Path, march: str
) -> None:
    elf = freertos(tmp_path, march=march)
    noted = notes(ran(elf), elf)
    created = of(noted, What.CREATED)
    assert [note.name for note in created[:6]] == ["maker", "taker", "worker", "worker", "boss", "IDLE"]
    assert {note.name for note in created[6:]} == {"child", "prey", "victim"}
    assert memory_used_again(noted) and len({note.number for note in created}) == len(created)
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


@BOTH
@SMALL
def test_small_kernels_have_the_same_cases(tmp_path: Path, system: str, march: str) -> None:
    elf = small(tmp_path, system, march=march)
    noted = notes(ran(elf), elf)
    names = [note.name for note in of(noted, What.CREATED)]
    assert names.count("worker") == 2 and {"boss", "child", "prey", "victim"} < set(names)
    assert memory_used_again(noted)
    deleted = [note.name for note in of(noted, What.DELETED)]
    assert deleted.count("child") >= 4 and deleted.count("prey") == 3 and deleted.count("victim") == 2
    assert len(of(noted, What.SWITCHED_IN)) > 30


@SMALL
def test_small_kernels_call_the_hook_of_a_stack_that_is_too_small(tmp_path: Path, system: str) -> None:
    elf = small(tmp_path, system, "-DOVERFLOW")
    noted = notes(ran(elf), elf)
    assert (noted[-1].what, noted[-1].name) == (What.OVERFLOWED, "greedy")


def test_zephyr_nests_interrupts(tmp_path: Path) -> None:
    elf = small(tmp_path, "zephyr", "-DNESTED")
    assert ran(elf).bus.read(symbol_address(elf, "nested_interrupts"), 4) > 20


@BOTH
@pytest.mark.parametrize("system", ["zephyr", "linux"])
def test_tasks_of_two_harts_move_between_them(tmp_path: Path, system: str, march: str) -> None:
    elf = small(tmp_path, system, march=march, harts=2)
    noted = notes(ran(elf, harts=2), elf)
    switches = of(noted, What.SWITCHED_IN)
    harts_of = {note.number: {other.hart for other in switches if other.number == note.number} for note in switches}
    assert {0, 1} in harts_of.values() and of(noted, What.DELETED)[-1].name == "prey"
