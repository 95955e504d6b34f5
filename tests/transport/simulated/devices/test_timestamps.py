"""The timestamp unit of the simulated encoder, against the Trace Control Interface 1.0, "Timestamp Unit".

Registers and bits are numbers here. One instruction takes one clock cycle, traps none.
"""

from pathlib import Path

import pytest

from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.transport.simulated.machine import Machine
from tests.transport.simulated.devices.test_component import TE, Registers, start, stop
from tests.transport.simulated.encoder.traces import (
    BTM,
    COUNTER_HIGH,
    COUNTER_LOW,
    EVERYTHING,
    HTM,
    RARE_SYNC,
    REPEATED,
    TIME,
    TS_ACTIVE,
    TS_CONTROL,
    TS_CORE,
    TS_COUNT,
    TS_RESET,
    TS_SYSTEM,
    compiled,
    machine_with,
    trace,
)
from tests.transport.simulated.hart.programs import assemble
from tests.transport.simulated.nexus import SYNCHRONIZING, messages

# Three times a thousand ticks of sleep that end with an interrupt, and fifty instructions or so.
SLEEPER = """
#include "hart.inc"
    .section .text.start, "ax", @progbits
    .globl _start
_start:
    la t0, woken
    csrw mtvec, t0
    li s0, 0x02004000
    li s1, 0x0200bff8
    li s2, 3
again:
    csrci mstatus, 8
    li t0, 0x80
    csrw mie, t0
    lw t1, 0(s1)
    addi t1, t1, 1000
    sw t1, 0(s0)
    sw zero, 4(s0)
    wfi
    csrsi mstatus, 8
    .balign 4
woken:
    la t0, on
    csrw mepc, t0
    csrw mie, zero
    li t0, 20
1:  addi t0, t0, -1
    bnez t0, 1b
    mret
on: addi s2, s2, -1
    bnez s2, again
    finish
"""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("rv64"), "rv64imac")


@pytest.fixture
def machine(elf: Path) -> Machine:
    return machine_with(elf)


@pytest.fixture
def te(machine: Machine) -> Registers:
    registers = Registers(machine.bus, TE)
    registers.activate()
    return registers


def counter(te: Registers) -> int:
    return te[COUNTER_HIGH] << 32 | te[COUNTER_LOW]


def counting(te: Registers, control: int) -> None:
    for value in (0, TS_ACTIVE, control | TS_ACTIVE):
        te[TS_CONTROL] = value


def test_the_counter_counts_stops_and_is_reset(machine: Machine, te: Registers) -> None:
    counting(te, TS_CORE | TS_COUNT | TS_RESET)
    assert counter(te) == 0
    machine.run_slice(1000)
    assert counter(te) == machine.hart.instret
    te[TS_CONTROL] = TS_ACTIVE | TS_CORE
    held, before = counter(te), machine.hart.instret
    machine.run_slice(1000)
    assert counter(te) == held
    te[TS_CONTROL] = TS_ACTIVE | TS_CORE | TS_COUNT
    stopped = machine.hart.instret - before
    machine.run_slice(1000)
    assert counter(te) == machine.hart.instret - stopped
    te[TS_CONTROL] = TS_ACTIVE | TS_CORE | TS_COUNT | TS_RESET
    assert counter(te) == 0
    before = machine.hart.instret
    machine.run_slice(1000)
    assert counter(te) == machine.hart.instret - before


@pytest.mark.parametrize("mode", [HTM, BTM], ids=["HTM", "BTM"])
@pytest.mark.parametrize("features", [0, EVERYTHING & ~REPEATED], ids=["nothing", "nearly everything"])
def test_every_time_is_right(mode: int, features: int, elf: Path) -> None:
    traced = trace(machine_with(elf), elf, mode | RARE_SYNC, features, TIME | TS_RESET, instructions=7000)
    assert len(traced.history.times) > 100
    assert all(time == position for position, time in traced.history.times)


@pytest.mark.parametrize("mode", [HTM, BTM], ids=["HTM", "BTM"])
def test_times_of_repetitions(mode: int, elf: Path) -> None:
    """A counted HIST may be followed by some branches that are told later: its time is of after them."""
    traced = trace(machine_with(elf), elf, mode | RARE_SYNC, EVERYTHING, TIME | TS_RESET, instructions=7000)
    times = [time for _, time in traced.history.times]
    assert len(times) > 100 and times == sorted(times)
    late = [time - position for position, time in traced.history.times]
    assert min(late) == 0 and max(late) < 32 * 8, "32 branches in loops of a few instructions"
    assert late.count(0) > 0.9 * len(late)


@pytest.mark.parametrize("prescale", [1, 2, 3])
def test_divided_times_are_right(prescale: int, elf: Path) -> None:
    traced = trace(machine_with(elf), elf, BTM | RARE_SYNC, 0, TIME | TS_RESET | prescale << 8)
    assert len(traced.history.times) > 500
    assert all(time == position // 4**prescale for position, time in traced.history.times)


def test_times_go_on_when_the_counter_wraps(elf: Path) -> None:
    machine = machine_with(elf, built_with=EncoderOptions(timestamp_bits=9))
    traced = trace(machine, elf, BTM | 2 << 16 | 3 << 20, 0, TIME | TS_RESET)
    absolute = [m.variable[-1] for m in messages(traced.data) if m.tcode in SYNCHRONIZING]
    assert max(absolute) < 512 and absolute != sorted(absolute)
    assert len(traced.history.times) > 500
    assert all(time == position for position, time in traced.history.times)


@pytest.mark.parametrize(("mode", "sleeps"), [(TS_SYSTEM, True), (TS_CORE, False)], ids=["system", "core"])
def test_time_goes_on_in_sleep_unless_it_is_the_cores(mode: int, sleeps: bool, tmp_path: Path) -> None:
    """WFI is left when mtime reaches mtimecmp, 1000 ticks after it was read."""
    machine = machine_with(assemble(tmp_path, "sleeper", SLEEPER, "rv64imac"))
    te, ram = start(machine, BTM, timestamps=TIME & ~TS_SYSTEM | mode | TS_RESET)
    machine.run_slice(600)
    found = messages(stop(te, ram))
    traps = [m for m in found if m.tcode == 4 and m.fixed == (3,)]  # IndirectBranch, B-TYPE 3: interrupt
    assert len(traps) == 3
    assert sum(m.variable[-1] > 900 for m in traps) == (3 if sleeps else 0)
    passed = machine.bus.read(0x0200_BFF8, 8) if sleeps else machine.hart.csr_read(0xB02)  # mtime, minstret
    assert sum(m.variable[-1] for m in found) == passed
