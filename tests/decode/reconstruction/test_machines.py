"""Executing again what machines do that are more than a hart and a program: tasks that a timer switches, two harts that
share memory, code that the program writes, vectors, and memory that something else writes. No value may be wrong.
"""

from collections.abc import Sequence
from pathlib import Path as FilePath
from random import Random
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind, Trap
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.beliefs import BELIEFS, ImpossibleInstruction
from rvtrace_gdb.decode.reconstruction.facts import (
    HartMachine,
    KnownState,
    KnownValue,
    MemoryKind,
    MemoryRange,
    StopState,
    own_ram,
)
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.decode.reconstruction.window.edges import edge_of_stop
from rvtrace_gdb.decode.reconstruction.window.window import Window
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.spike_history import history_of, states
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import compile_program
from tests.transport.simulated.devices.tandem_port import Ported
from tests.transport.simulated.hart.programs import assemble
from tests.transport.simulated.hart.spike import run_spike
from tests.transport.simulated.harts import compiled

TASKS = FilePath(__file__).resolve().parents[2] / "programs" / "tasks"
RAM = Extent(0x8000_0000, 1 << 20)
STEPS = 60_000 if LONG else 8_000


def without_values(told: DecodedTandem) -> History:
    """The history alone: addresses, and traps without their causes, as in N-Trace."""
    builder, paths, pcs = HistoryBuilder(), dict[tuple[int, ...], Path](), list[int]()
    traps = {event.position: event.fact for event in told.history.events if isinstance(event.fact, Trap)}

    def end() -> None:
        if pcs:
            builder.append(paths.setdefault(tuple(pcs), Path((tuple(pcs),))))
            pcs.clear()

    for position, pc in enumerate(told.history.pcs()):
        if position in traps:
            end()
            builder.event(EventKind.TRAP, 0, Trap(traps[position].kind))
        if pcs and not 0 < pc - pcs[-1] <= 4:
            end()
        pcs.append(pc)
    end()
    return builder.finish(Accounting(0, 0, 0, 0))


class Executed(NamedTuple):
    """*forward*: what came of believing as much as nothing contradicts; None: nothing is believed."""

    forward: Forward | None
    contradicted: Sequence[ImpossibleInstruction]


def executed(history: History, image: Image, machine: HartMachine, beginning: KnownState) -> Executed:
    contradicted: list[ImpossibleInstruction] = []
    for belief in BELIEFS:
        forward = Forward(history, image, machine, beginning, belief=belief)
        try:
            forward.run()
        except ImpossibleInstruction as error:
            contradicted.append(error)
        else:
            return Executed(forward, contradicted)
    return Executed(None, contradicted)


class Compared:
    """What is known of a run by executing it again, and from its end, against what its tandem port said."""

    def __init__(self, told: DecodedTandem) -> None:
        self._told = told
        self.asked = self.known = 0

    def forward(self, forward: Forward, every: int) -> None:
        for position in range(0, len(self._told.history), every):
            self._compare(position, forward.hart_at(position).x)

    def window(self, window: Window, first: int, every: int) -> None:
        for position in range(first, len(self._told.history), every):
            self._compare(position, [window.x(position, number) for number in range(32)])

    def _compare(self, position: int, x: Sequence[KnownValue]) -> None:
        state = self._told.after(self._told.group_of(position) - 1)
        for number in range(1, 32):
            true = state.x(number)
            if true is not None:
                self.asked, self.known = self.asked + 1, self.known + (x[number] is not None)
                assert x[number] in (None, true), (position, hex(self._told.history.pc(position)), f"x{number}")


def from_end(ported: Ported, told: DecodedTandem, machine: HartMachine, hart: int, count: int) -> tuple[Window, int]:
    """A window that ends where the run ends, of which registers and memory are known there."""
    at_end, bus = ported.machine.harts[hart], ported.machine.bus
    stop = StopState(at_end.pc, list(at_end.x), [None] * 32, {}, lambda at, size: bytes(bus.read_bytes(at, size)))
    history, first = without_values(told), max(len(told.history) - count, 0)
    images, shared = ContextImages(ported.image), len(ported.machine.harts) > 1
    window = Window(history, images, machine, first, len(history), end=edge_of_stop(stop), shared=shared)
    window.solve()
    return window, first


def begun(ported: Ported, hart: int, machine: HartMachine) -> KnownState:
    """What is known of a hart at its entry, with the program loaded."""
    it = ported.machine.harts[hart]
    return KnownState(x=list(it.x), privilege=3, csrs={0xF14: hart}, memory=ported.image.segments)


@pytest.mark.parametrize("options", [(), ("-DMRET",)], ids=["ret", "mret"])
def test_tasks_that_a_timer_switches(options: tuple[str, ...], tmp_path: FilePath) -> None:
    """Three tasks with stacks of their own, interrupts in interrupts, and ecalls: a small RTOS."""
    elf = compile_program(tmp_path, TASKS / "tasks.c", TASKS / "switch.S", options=options)
    ported = Ported(elf, extensions="IMAC")
    machine = HartMachine(64, "IMAC", [RAM], machine_only=True)
    beginning = begun(ported, 0, machine)
    ported.machine.run_slice(STEPS + 14_000)
    told = ported.decoded()
    forward = Forward(without_values(told), ported.image, machine, beginning)
    compared = Compared(told)
    compared.forward(forward, 97)
    assert compared.known > 0.9 * compared.asked
    back = Compared(told)
    window, first = from_end(ported, told, machine, 0, 4_000)
    assert not window.contradicted
    back.window(window, first, 41)
    assert back.known > 0.05 * back.asked  # where tasks are switched by mret, all registers come from memory


STACK, TOP = 1 << 14, 0x8008_0000


@pytest.mark.parametrize("declared", [True, False])
def test_two_harts(declared: bool, tmp_path: FilePath) -> None:
    """Each has its stack, and both count in shared memory under a lock. Memory that is declared as one hart's own is
    believed, and nothing else. If all is believed, which is wrong, contradictions are said, and memory is not believed.
    """
    ported = Ported(compiled(tmp_path), extensions="IMAC", harts=2)
    program = KnownState(memory=ported.image.segments)
    ported.machine.run_slice(STEPS)
    low = TOP - 2 * STACK
    stacks = [MemoryRange(TOP - (hart + 1) * STACK, STACK, MemoryKind.RAM, (hart,)) for hart in (0, 1)]
    ranges = [MemoryRange(RAM[0], low - RAM[0], MemoryKind.RAM), *stacks]
    for hart in (0, 1):
        told = ported.decoded(hart)
        history = without_values(told)
        assert told.after(told.group_of(40)).x(2) in range(stacks[hart].address, stacks[hart].address + STACK + 1)
        rams = own_ram(ranges, hart, (0, 1)) if declared else [RAM]
        assert not declared or rams == [(stacks[hart].address, STACK)]
        machine = HartMachine(64, "IMAC", rams, machine_only=True)
        beginning = program._replace(x=[0] * 32, privilege=3, csrs={0xF14: hart})
        found = executed(history, ported.image, machine, beginning)
        assert bool(found.contradicted) <= (not declared)
        compared = Compared(told)
        if found.forward is not None and (declared or found.contradicted):
            compared.forward(found.forward, 37)
            assert compared.known > 0.3 * compared.asked
        back, first = from_end(ported, told, machine, hart, 3_000)
        assert bool(back.contradicted) <= (not declared)
        if declared:
            compared.window(back, first, 37)


SELF_MODIFYING = """
    .option norelax
    .option norvc
    .globl _start
_start:
    la a0, place
    li a2, 3
1:  call place
    la a4, other
    lw a5, 0(a4)
    sw a5, 0(a0)
    fence.i
    addi a2, a2, -1
    bnez a2, 1b
    la a4, tohost
    li a5, 1
    sw a5, 0(a4)
3:  j 3b
    .balign 4
place:
    addi a1, zero, 5
    ret
    .balign 4
other:
    addi a1, zero, 6
    .section .tohost, "aw"
    .balign 64
    .globl tohost, fromhost
tohost: .dword 0
fromhost: .dword 0
"""


def test_code_that_the_program_writes(tmp_path: FilePath) -> None:
    """What runs there is not the program's any more, and a trace does not say what it is."""
    elf = assemble(tmp_path, "self", SELF_MODIFYING, "rv64imac")
    run, image = run_spike(elf, tmp_path, "IMAC"), Image.from_elf(elf)
    machine = HartMachine(64, "IMAC", [RAM], machine_only=True)
    beginning = KnownState(x=(0, *run.x[1:]), privilege=3, memory=image.segments)
    history, truth = history_of(run), dict[int, dict[int, int]]()
    found = executed(history, image, machine, beginning).forward
    assert found is not None
    for position, it, _ in states(run):
        truth[position] = dict(it.x)
        for number, value in it.x.items():
            assert found.hart_at(position).x[number] in (None, value), (position, f"x{number}")
    last = max(truth)
    stop = StopState(history.pc(last), [truth[last].get(number) for number in range(32)], [None] * 32, {}, nothing)
    window = Window(history, ContextImages(image), machine, 0, last, end=edge_of_stop(stop))
    window.solve()
    for position in range(last):
        for number, value in truth[position].items():
            assert window.x(position, number) in (None, value), (position, f"x{number}")


def nothing(address: int, size: int) -> bytes:
    return b""


VECTORS = """
    .option norelax
    .option arch, +v
    .globl _start
_start:
    li t0, 0x600
    csrs mstatus, t0
    la a0, data
    lw s3, 0(a0)
    vsetvli t1, zero, e32, m1, ta, ma
    li ra, 55
    csrr s6, vl
    vle32.v v1, (a0)
    vadd.vi v1, v1, 3
    vmv.x.s s2, v1
    lw s3, 0(a0)
    vse32.v v1, (a0)
    lw s4, 0(a0)
    addi s5, s4, 1
    la a4, tohost
    li a5, 1
    sw a5, 0(a4)
3:  j 3b
    .data
    .balign 64
data: .word 7, 8, 9, 10, 11, 12, 13, 14
    .section .tohost, "aw"
    .balign 64
    .globl tohost, fromhost
tohost: .dword 0
fromhost: .dword 0
"""


def test_vectors(tmp_path: FilePath) -> None:
    """What they compute and store is unknown, what they leave alone is known."""
    elf = assemble(tmp_path, "vectors", VECTORS, "rv64imafdc")
    run, image = run_spike(elf, tmp_path, "IMAFDCV"), Image.from_elf(elf)
    machine = HartMachine(64, "IMAFDC", [RAM], machine_only=True)
    beginning = KnownState(x=(0, *run.x[1:]), privilege=3, memory=image.segments, csrs={0xC20: 99})
    forward = Forward(history_of(run), image, machine, beginning)
    last = 0
    for position, truth, _ in states(run):
        for number, value in truth.x.items():
            assert forward.hart_at(position).x[number] in (None, value), (position, f"x{number}")
        last = position
    x = forward.hart_at(last).x
    assert x[15] == 1 and x[19] == 7 and x[18] is x[20] is x[21] is None
    assert x[1] == 55  # they wrote v1, not x1


@pytest.mark.parametrize("declared", [True, False])
def test_memory_that_something_else_writes(declared: bool, tmp_path: FilePath) -> None:
    """Bytes that the debugger reads at the stop are not those that the program left. Where that was declared, nothing
    is wrong; else it is said whenever something contradicts it, and nothing crashes.
    """
    elf = compile_program(tmp_path, TASKS / "tasks.c", TASKS / "switch.S")
    ported = Ported(elf, extensions="IMAC")
    ported.machine.run_slice(STEPS + 14_000)
    told, bus = ported.decoded(), ported.machine.bus
    history, end = without_values(told), ported.hart
    sp, chance = end.x[2], Random(4)
    for _ in range(8 if LONG else 3):
        address = sp + chance.randrange(200)
        rams = [Extent.between(RAM.address, address), Extent.between(address + 1, RAM.end)] if declared else [RAM]
        machine = HartMachine(64, "IMAC", rams, machine_only=True)

        def read(at: int, size: int, address: int = address) -> bytes:
            return bytes(byte ^ 0x41 * (at + k == address) for k, byte in enumerate(bus.read_bytes(at, size)))

        stop = StopState(end.pc, list(end.x), [None] * 32, {}, read)
        first = len(history) - 3000
        window = Window(history, ContextImages(ported.image), machine, first, len(history), end=edge_of_stop(stop))
        window.solve()
        compared = Compared(told)
        if declared or window.contradicted:
            compared.window(window, first, 53)
        else:
            assert window.x(len(history) - 1, 2) == sp
