"""What the simulated target's trace memory holds decodes to what the hart retired, instruction for instruction."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.transport.simulated.bus import ElfFile
from rvtrace_gdb.transport.simulated.hart.block import Accessed, HartBlock, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.helpers.amounts import crossed
from tests.helpers.cross_compiler import compile_program, demo
from tests.transport.simulated.devices.test_component import BUFFER, Registers, start, stop

PROGRAMS = Path(__file__).resolve().parents[3] / "programs"
MARCHES = ["rv32imac_zicsr", "rv64imac_zicsr", "rv64gc"]


def run_to_the_end(machine: Machine, slice_length: int = 5000) -> None:
    ended: list[int] = []
    machine.exited = ended.append
    while not ended:
        machine.run_slice(slice_length)


def addresses(retired: list[HartItem]) -> Iterator[int]:
    for item in retired:
        if isinstance(item, HartBlock):
            yield from item.pcs
        elif not isinstance(item, TrapEntry | Situation | Accessed):
            yield from item[0].pcs[: item[1]]


def retired_by(elf: Path) -> list[int]:
    """Every address an untraced hart retires, from the entry to the end of the program."""
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20))
    machine.hart.retired = []
    run_to_the_end(machine)
    return list(addresses(machine.hart.retired))


def pcs(history: History) -> list[int]:
    return list(history.pcs(0, len(history)))


@pytest.mark.parametrize(("sync", "march"), crossed((0, 1 << 16, 2 << 16, 3 << 16 | 3 << 20), MARCHES))
def test_the_demo_with_its_timer_interrupts(tmp_path: Path, march: str, sync: int) -> None:
    elf = demo(tmp_path, march)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 18))
    te, ram = start(machine, sync, features=6 << 28 | 0x2A << 16)
    run_to_the_end(machine)
    history = decode(stop(te, ram), Image.from_elf(elf), Options(src_bits=6))
    assert history.gaps == 0
    assert pcs(history) == retired_by(elf)


@pytest.mark.parametrize("march", MARCHES)
def test_a_buffer_that_wraps_holds_the_end(tmp_path: Path, march: str) -> None:
    elf = demo(tmp_path, march)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=256))
    te, ram = start(machine, 3 << 16 | 2 << 20)
    run_to_the_end(machine)
    te[0] = te[0] & ~2
    te.poll(10, 8)
    pointer = ram[0x20]
    assert pointer & 1
    at = (pointer & ~1) - BUFFER
    stored = ram.bus.read_bytes(BUFFER, 256)
    history = decode(stored[at:] + stored[:at], Image.from_elf(elf), Options(), wrapped=True)
    decoded = [pc for pc in pcs(history) if pc != GAP]
    assert len(decoded) > 100
    assert decoded == retired_by(elf)[-len(decoded) :]


@pytest.mark.parametrize(("slice_length", "march"), crossed((1, 17, 100_000), MARCHES))
def test_stops_and_steps_do_not_disturb_the_trace(tmp_path: Path, march: str, slice_length: int) -> None:
    """A debugger that halts now and then, steps a few instructions, and goes on."""
    elf = demo(tmp_path, march)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 20))
    machine.halt_at_start()
    dm = machine.debug_module
    dm.write(0x10, 1)
    te, ram = start(machine)
    ended: list[int] = []
    machine.exited = ended.append
    turn = 0
    while not ended:
        turn += 1
        machine.hart.csr_write(0x7B0, 3 | (4 if turn % 5 < 3 else 0), debug=True)  # prv, step
        dm.write(0x10, 1 << 30 | 1)
        if not machine.halted:
            for _ in range(40):
                machine.run_slice(slice_length)
            dm.write(0x10, 1 << 31 | 1)
    history = decode(stop(te, ram), Image.from_elf(elf), Options())
    assert [pc for pc in pcs(history) if pc != GAP] == retired_by(elf)[: history.instructions]
    assert history.instructions > 1000


@pytest.mark.parametrize("march", MARCHES)
def test_a_program_that_traces_itself(tmp_path: Path, march: str) -> None:
    """Tracing is switched from inside the hart's blocks: exactly what runs between the two stores is traced."""
    elf = compile_program(tmp_path, PROGRAMS / "sim_self_trace.c", march=march, options=("-O1",))
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20))
    run_to_the_end(machine)
    ram = Registers(machine.bus, 0x2000_1000)
    history = decode(machine.bus.read_bytes(BUFFER, ram[0x20] - BUFFER), Image.from_elf(elf), Options())
    whole, traced = stepped_through(elf), pcs(history)
    assert GAP not in traced
    at = next(n for n in range(len(whole)) if whole[n : n + len(traced)] == traced)
    entries = [n for n, pc in enumerate(whole) if pc == symbol(elf, "traced")]
    assert entries[0] < at <= entries[1] < at + len(traced) <= entries[2], "the second call of traced(), and no other"
    assert sum(pc == symbol(elf, "half") for pc in traced) == 111, "steps of 27 in the Collatz sequence"


def stepped_through(elf: Path) -> list[int]:
    """The same for a program without interrupts, one instruction at a time."""
    hart = build(elf, memory_map=MemoryMap(ram_size=1 << 20)).hart
    whole = []
    while hart.exit_code is None:
        whole.append(hart.pc)
        hart.step()
    return whole


def symbol(elf: Path, name: str) -> int:
    address = ElfFile(elf).symbol(name)
    assert address is not None
    return address
