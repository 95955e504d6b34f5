"""Several harts on one bus: their CLINT and their time, turns, reservations, resets, halt groups.

Expectations: SiFive FU540-C000 manual, chapter 9 (CLINT), Privileged Architecture 3.3.3 (WFI), Debug Specification 1.0.
"""

from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.bus import ElfFile
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.transport.simulated.encoder.test_decoded_traces import addresses
from tests.transport.simulated.hart.encoded_code import BASE, EBREAK, NOP, SPIN, WFI, Csr, addi
from tests.transport.simulated.harts import (
    APART,
    CLINT,
    DMCS2,
    HALTREQ,
    HARTRESET,
    MTIME,
    MTIMECMP,
    RESUMEREQ,
    cause,
    compiled,
    control,
    machine_with,
)

MSI, MTI = 1 << 3, 1 << 7
SMALL = MemoryMap(ram_size=1 << 20)
LR_W_X5_X3, SC_W_X6_X7_X3 = 0x1001A2AF, 0x1871A32F  # lr.w x5, (x3); sc.w x6, x7, (x3)
SLEEPER = [WFI, addi(5, 5, 1), SPIN]
EBREAKM, STEP = 1 << 15, 1 << 2


def enable(machine: Machine, hart: int, interrupts: int) -> None:
    """In mie; without mstatus.MIE they end a WFI and are not taken."""
    machine.harts[hart].csr_write(Csr.MIE, interrupts)


def step(machine: Machine, hart: int) -> None:
    machine.harts[hart].csr_write(Csr.DCSR, STEP | 3, debug=True)
    control(machine, hart, RESUMEREQ)


@pytest.mark.parametrize("harts", [2, 3])
def test_a_program_that_shares_a_lock(tmp_path: Path, harts: int) -> None:
    elf = compiled(tmp_path)
    machine = build(elf, memory_map=SMALL, harts=harts)
    for _ in range(60):
        machine.run_slice(10_000)

    def word(name: str, index: int = 0) -> int:
        address = ElfFile(elf).symbol(name)
        assert address is not None
        return machine.bus.read(address + 4 * index, 4)

    assert word("wrong") == 0
    rounds = [word("rounds", n) for n in range(harts)]
    assert min(rounds) > 50
    assert abs(word("together") - sum(rounds)) <= harts
    assert abs(word("atomic") - sum(rounds)) <= harts
    counts = [hart.instret for hart in machine.harts]
    assert max(counts) - min(counts) < max(counts) / 20, "they run at the same speed"


def test_what_happens_does_not_depend_on_who_asks_for_slices_of_which_length(tmp_path: Path) -> None:
    elf = compiled(tmp_path)
    logs = []
    for length in (1, 1000, 7777):
        machine = build(elf, memory_map=SMALL, harts=2)
        for hart in machine.harts:
            hart.retired = []
        while machine.hart.instret < 20_000:
            machine.run_slice(length)
        logs.append([list(addresses(hart.retired or []))[:20_000] for hart in machine.harts])
    assert logs[0] == logs[1] == logs[2]


def test_a_timer_for_each_and_one_time() -> None:
    machine = machine_with([SPIN], [SPIN])
    machine.bus.write(MTIMECMP, 8, 1 << 40)
    machine.bus.write(MTIMECMP + 8, 8, 2000)
    machine.bus.write(MTIMECMP + 16, 8, 5)
    assert [machine.bus.read(MTIMECMP + 8 * n, 8) for n in range(3)] == [1 << 40, 2000, 0]
    machine.run_slice(2000)
    now = machine.bus.read(MTIME, 8)
    assert now == max(hart.instret for hart in machine.harts) == 1000
    assert [hart.mtime for hart in machine.harts] == [now, now]
    assert [hart.mip & MTI for hart in machine.harts] == [0, 0]
    machine.run_slice(2000)
    assert [hart.mip & MTI for hart in machine.harts] == [0, MTI]


def test_time_does_not_jump_for_one_that_sleeps_while_another_runs() -> None:
    machine = machine_with([SPIN], SLEEPER)
    enable(machine, 1, MTI)
    machine.bus.write(MTIMECMP + 8, 8, 1600)
    machine.run_slice(1250)
    assert machine.bus.read(MTIME, 8) == machine.harts[0].instret == 1000
    assert (machine.harts[1].waiting, machine.harts[1].instret) == (True, 1)
    machine.run_slice(1500)
    assert machine.harts[1].x[5] == 1
    assert machine.bus.read(MTIME, 8) == machine.harts[0].instret > 1600


def test_time_jumps_when_all_sleep_and_wakes_the_first_only() -> None:
    machine = machine_with(SLEEPER, SLEEPER)
    for n in range(2):
        enable(machine, n, MTI)
        machine.bus.write(MTIMECMP + 8 * n, 8, 1_000_000 * (2 - n))
    machine.run_slice(1)
    assert not machine.idle
    machine.run_slice(1)
    assert [hart.x[5] for hart in machine.harts] == [0, 1]
    assert 1_000_000 <= machine.bus.read(MTIME, 8) < 1_001_000


def state(machine: Machine) -> tuple[bool, bool]:
    return machine.idle, machine.halted


def test_idle_is_when_nobody_would_do_anything() -> None:
    machine = machine_with(SLEEPER, SLEEPER)
    enable(machine, 1, MSI | MTI)
    machine.bus.write(MTIMECMP + 8, 8, (1 << 64) - 1)
    machine.run_slice(1)
    assert state(machine) == (True, False), "a timer that is off wakes nobody"
    machine.bus.write(CLINT + 4, 4, 1)
    assert state(machine) == (False, False)
    machine.run_slice(1)
    assert [hart.x[5] for hart in machine.harts] == [0, 1]
    control(machine, 1, HALTREQ)
    assert state(machine) == (True, False)
    control(machine, 0, HALTREQ)
    assert state(machine) == (True, True)


def test_a_reservation_ends_when_another_hart_executes() -> None:
    for disturbed in (False, True):
        machine = machine_with([LR_W_X5_X3, SC_W_X6_X7_X3, SPIN], [NOP, NOP, SPIN])
        machine.halt_at_start()
        step(machine, 0)
        if disturbed:
            step(machine, 1)
        step(machine, 0)
        assert machine.harts[0].x[6] == disturbed


def test_a_breakpoint_of_one_halts_its_group_at_once() -> None:
    machine = machine_with([SPIN], [NOP, EBREAK, SPIN], [SPIN])
    machine.harts[1].csr_write(Csr.DCSR, EBREAKM | 3, debug=True)
    for hart in (1, 2):
        control(machine, hart)
        machine.debug_module.write(DMCS2, 1 << 2 | 1 << 1)
    machine.run_slice(1)
    assert machine.harts[2].instret == 0, "its turn would have come after"
    assert (cause(machine, 1), cause(machine, 2)) == (1, 6)
    before = machine.harts[0].instret
    machine.run_slice(750)
    assert machine.harts[0].instret > before, "it is in no group"


def test_hartreset_starts_one_and_leaves_the_clint() -> None:
    machine = machine_with([NOP, NOP, SPIN], [NOP, SPIN])
    machine.bus.write(CLINT + 4, 4, 1)
    machine.run_slice(1000)
    control(machine, 1, HARTRESET)
    machine.run_slice(1000)
    assert machine.harts[1].pc == BASE + APART
    assert machine.harts[0].pc == BASE + 8
    control(machine, 1)
    assert machine.bus.read(MTIME, 8) == machine.harts[0].instret == 1000 + 500
    assert machine.harts[1].mip & MSI
    machine.run_slice(500)
    assert machine.harts[1].pc == BASE + APART + 4


def test_code_that_a_debugger_writes_is_new_to_all() -> None:
    machine = machine_with([SPIN], [SPIN])
    machine.run_slice(1000)
    dm = machine.debug_module
    control(machine, 0)
    for n in range(2):
        dm.write(0x38, 2 << 17)
        dm.write(0x39, BASE + n * APART)
        dm.write(0x3C, addi(5, 0, 7))
    machine.run_slice(10)
    assert [hart.x[5] for hart in machine.harts] == [7, 7]


def test_the_end_of_the_program_is_the_end_for_all(tmp_path: Path) -> None:
    source = tmp_path / "ends.c"
    source.write_text("int main(unsigned hart) { while (hart) {} return 7; }")
    machine = build(compiled(tmp_path, source), memory_map=SMALL, harts=2)
    ended: list[int] = []
    machine.exited = ended.append
    for _ in range(20):
        machine.run_slice(1000)
    assert ended == [7]
    assert machine.idle and not machine.halted
    counts = [hart.instret for hart in machine.harts]
    machine.run_slice(1000)
    assert counts == [hart.instret for hart in machine.harts]
