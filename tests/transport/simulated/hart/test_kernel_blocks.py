"""Blocks in the compiled kernel do what their functions in Python do, which test_spike.py holds against Spike."""

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.transport.simulated.hart.block import Accessed, BlockPart, HartBlock
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.helpers.amounts import some_of
from tests.transport.simulated.devices.test_component import start as start_ntrace
from tests.transport.simulated.encoder import etrace_traces, traces
from tests.transport.simulated.hart.encoded_code import (
    BASE,
    HANDLER,
    NOP,
    RAM_SIZE,
    SPIN,
    Csr,
    addi,
    hart_with,
    lw,
    put,
    sw,
)
from tests.transport.simulated.hart.random_code import (
    REGISTER_OPERATIONS,
    SKIP,
    WORD_OPERATIONS,
    immediate_operation,
    random_code,
    random_registers,
    register_operation,
)

pytestmark = pytest.mark.skipif(kernel() is None, reason="there is no kernel to compare with")
CLINT, UART = 0x0200_0000, 0x1000_0000
_LOAD, _EXECUTE = 1, 4


class State(NamedTuple):
    """All that an instruction can change."""

    x: list[int]
    pc: int
    instret: int
    traps: tuple[int, int, int]
    memory: bytes
    retired: list[object]


def told(items: Sequence[HartItem]) -> list[object]:
    """Items without the identity of blocks."""
    return [
        (item.pcs, item.words) if isinstance(item, HartBlock)
        else (item.block.pcs, item.n) if isinstance(item, BlockPart)
        else tuple(item)
        for item in items
    ]  # fmt: skip


def state_of(hart: Hart, retired: Sequence[HartItem]) -> State:
    trap = hart.csr.trap
    memory = hart.bus.read_bytes(BASE, RAM_SIZE)
    return State(list(hart.x), hart.pc, hart.instret, (trap.mepc, trap.mcause, trap.mtval), memory, told(retired))


def in_kernel(hart: Hart) -> list[int]:
    """Where the blocks are that the kernel executes."""
    return [pc for pc, block in hart._code.blocks.translated.items() if block.in_kernel]


def prepared(code: Sequence[int], registers: Sequence[int], xlen: int, extensions: str) -> Hart:
    hart = hart_with(*code, xlen=xlen, extensions=extensions)
    put(hart, HANDLER, *SKIP)
    hart.csr_write(Csr.MTVEC, HANDLER)
    hart.x[:] = registers
    return hart


def without_kernel(monkeypatch: pytest.MonkeyPatch, code: Sequence[int], *how: object) -> Hart:
    with monkeypatch.context() as patch:
        patch.setenv("RVTRACE_KERNEL", "0")
        return prepared(code, *how)  # type: ignore[arg-type]


def run_both(
    monkeypatch: pytest.MonkeyPatch,
    code: Sequence[int],
    registers: Sequence[int],
    xlen: int,
    extensions: str,
    slices: Sequence[int],
    tells: bool = True,
) -> Hart:
    """Compare the two after each slice. Return the one with the kernel."""
    ours = prepared(code, registers, xlen, extensions)
    theirs = without_kernel(monkeypatch, code, registers, xlen, extensions)
    for size in slices:
        states = []
        for hart in (ours, theirs):
            retired: list[HartItem] = []
            hart.retired = retired if tells else None
            hart.run(size)
            states.append(state_of(hart, retired))
        assert states[0] == states[1]
    assert not in_kernel(theirs)
    return ours


@settings(max_examples=some_of(200))
@given(
    seed=st.integers(0, 1 << 32),
    xlen=st.sampled_from((32, 64)),
    extensions=st.sampled_from(("IMAC", "IMA")),
    slices=st.lists(st.integers(1, 200), min_size=1, max_size=6),
    tells=st.booleans(),
)
def test_random_code(seed: int, xlen: int, extensions: str, slices: list[int], tells: bool) -> None:
    rng = random.Random(seed)
    code, registers = random_code(rng, xlen, 40), random_registers(rng, xlen)
    with pytest.MonkeyPatch.context() as monkeypatch:
        run_both(monkeypatch, code, registers, xlen, extensions, slices, tells)


@pytest.mark.parametrize("xlen", [32, 64])
def test_every_operation_on_values_where_carries_and_signs_go_wrong(
    xlen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = 1 << xlen - 1
    values = [0, 1, 5, 31, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, top - 1, top, 2 * top - 1]
    registers = [register_operation(*funct, 8 + n, 6, 7) for n, funct in enumerate(REGISTER_OPERATIONS)]
    words = [register_operation(*funct, 8 + n, 6, 7, 0x3B) for n, funct in enumerate(WORD_OPERATIONS)]
    immediates = [immediate_operation(n, 8 + n, 6, 9) for n in range(8)]
    immediates += [immediate_operation(n, 18 + n, 6, -9) for n in (0, 2, 3, 4, 6, 7)]
    immediates += [immediate_operation(5, 27, 6, 0x400 | 9), 0x80000_437 | 1 << 31, 0xFFFFF497]
    shifts = ((0, -5), (1, 9), (5, 9), (5, 0x409))
    word_immediates = [immediate_operation(n, 8 + m, 6, i, 0x1B) for m, (n, i) in enumerate(shifts)]
    codes = [registers, immediates, *((words, word_immediates) if xlen == 64 else ())]
    for code in codes:
        how = (*code, SPIN), [0] * 32, xlen, "IMAC"
        ours, theirs = prepared(*how), without_kernel(monkeypatch, *how)
        for a, b in product(values, values):
            for hart in (ours, theirs):
                hart.pc, hart.x[:] = BASE, [0] * 6 + [a, b] + [0] * 24
                hart.run(len(code) + 1)
            assert ours.x == theirs.x, (hex(a), hex(b))
        assert in_kernel(ours)[0] == BASE, "executed there, all of it"


def test_a_block_whose_access_traps_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python executes it again: the store before the trap is done once, and the register is counted up once."""
    code = (lw(5, 3), addi(5, 5, 1), sw(5, 3), addi(6, 6, 1), lw(7, 8), addi(6, 6, 1), SPIN)
    registers = [0, 0, 0, BASE + 0x800, *[0] * 28]
    registers[8] = 0x40  # nothing there
    hart = run_both(monkeypatch, code, registers, 64, "IMAC", (30,))
    assert (hart.x[5], hart.x[6], hart.bus.read(BASE + 0x800, 4)) == (1, 2, 1)
    assert hart.csr.trap.mcause == 5, "a load access fault"


def test_a_block_that_accesses_a_device_each_time_becomes_pythons() -> None:
    hart = hart_with(lw(5, 4), addi(6, 6, 1), 0xFF9FF06F)
    hart.x[4] = CLINT + 0xBFF8
    seen = []
    for _ in range(30):
        hart.run(3)
        seen.append(BASE in in_kernel(hart))
    assert seen[0]
    assert not seen[-1]
    assert hart.x[6] == hart.instret // 3
    assert hart.x[5] == hart.instret - 3, "mtime at the last load"


def test_code_that_is_changed_is_used_after_fence_i(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = addi(6, 6, 16)
    code = (addi(6, 6, 1), sw(5, 3), NOP, 0x0000100F, 0xFF1FF06F)  # the last one jumps to the first
    registers = [0, 0, 0, BASE, 0, changed, *[0] * 26]
    hart = run_both(monkeypatch, code, registers, 64, "IMAC", (3, 1, 50, 50))
    assert hart.x[6] > 16
    assert hart.x[6] % 16 == 1, "1 in the first round, 16 in each other"


@pytest.mark.parametrize(("access", "address"), [(_EXECUTE, BASE + 8), (_LOAD, BASE + 0x800)])
def test_watched_code_is_pythons(access: int, address: int) -> None:
    hart = hart_with(addi(6, 6, 1), addi(6, 6, 1), lw(5, 3), addi(6, 6, 1), 0xFF1FF06F)
    hart.run(50)
    assert in_kernel(hart)
    hart.csr_write(Csr.TDATA2, address, debug=True)
    hart.csr_write(Csr.TDATA1, 2 << 60 | 1 << 59 | 1 << 12 | 1 << 6 | access, debug=True)
    assert hart.run(50) is not None, "it enters Debug Mode"
    assert hart.pc == BASE + 8
    assert BASE + 8 not in in_kernel(hart)


def test_accesses_that_are_reported() -> None:
    hart = hart_with(lw(5, 3), SPIN)
    hart.run(10)
    hart.pc, hart.reports_accesses, hart.retired = BASE, True, []
    hart.run(1)
    assert [item.address for item in hart.retired if isinstance(item, Accessed)] == [BASE + 0x800]


def traced(elf: Path, mode: str, harts: int) -> Machine:
    machine = build(
        elf, memory_map=MemoryMap(ram_size=1 << 20), harts=harts, formats=(0,) if mode.startswith("E") else (1,)
    )
    if mode == "E-Trace":
        etrace_traces.start(machine)
    elif mode == "E-Trace with data":
        etrace_traces.start(machine, data=2)
    elif mode == "BTM":
        start_ntrace(machine, traces.BTM | 2 << 16 | 3 << 20)
    else:
        start_ntrace(machine, traces.CONTEXT | traces.RARE_SYNC, features=traces.EVERYTHING, timestamps=traces.TIME)
    rng = random.Random(1)
    while machine.hart.instret < 6000:
        machine.run_slice(rng.randrange(1, 900))
    for tracer in machine.tracers:
        tracer.drain()
    return machine


@pytest.mark.parametrize("mode", ["BTM", "HTM, everything", "E-Trace", "E-Trace with data"])
@pytest.mark.parametrize("harts", [1, 2])
def test_traces(mode: str, harts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks in user mode, system calls, exceptions, timer interrupts: the same bytes."""
    place = "rv32" if harts == 2 else "rv64"
    elf = traces.compiled(tmp_path, *traces.PLACES[place])
    ours = traced(elf, mode, harts)
    monkeypatch.setenv("RVTRACE_KERNEL", "0")
    theirs = traced(elf, mode, harts)
    for hart, other in zip(ours.harts, theirs.harts, strict=True):
        assert (hart.x, hart.pc, hart.instret) == (other.x, other.pc, other.instret)
    trace = ours.bus.read_bytes(ours.memory_map.trace_ram, 1 << 16)
    assert trace == theirs.bus.read_bytes(ours.memory_map.trace_ram, 1 << 16)
    assert trace.strip(b"\0")
    assert bool(in_kernel(ours.hart)) == (mode != "E-Trace with data"), "accesses are reported by Python"


def test_what_the_kernel_refuses() -> None:
    compiled = kernel()
    assert compiled is not None
    with pytest.raises(ValueError, match="memory"):
        compiled.HartLoop(64, bytearray(64), BASE, 128, 0)
    with pytest.raises(ValueError, match="width"):
        compiled.HartLoop(16, bytearray(64), BASE, 64, 0)
    loop = compiled.HartLoop(64, bytearray(64), BASE, 64, 0)
    for wrong in (b"\0" * 15, b"\xff\1\0\0" + b"\0" * 12, b"\0\0\0\0" + b"\0" * 12, b"\0\x21\0\0" + b"\0" * 12):
        with pytest.raises(ValueError, match="block"):
            loop.add(BASE, BASE + 4, 1, wrong)
    with pytest.raises(TypeError):
        loop.run([0] * 32, BASE, 10, [], ())
    assert loop.run([0] * 32, BASE, 10, [], None) == (1, BASE, 0)
