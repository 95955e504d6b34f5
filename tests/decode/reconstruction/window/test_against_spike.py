"""Windows of programs that Spike ran, with what Spike says that registers and memory were: no value may be wrong."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from rvtrace_gdb.decode.program.csrs import FCSR
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownValue
from rvtrace_gdb.decode.reconstruction.window.edges import WindowEdge
from rvtrace_gdb.decode.reconstruction.window.window import UNKNOWN, Window
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.spike_history import Truth, history_of, states
from tests.helpers.amounts import LONG, long_only
from tests.transport.simulated.hart import torture
from tests.transport.simulated.hart.programs import assemble, build, with_macros
from tests.transport.simulated.hart.spike import SpikeRun, run_spike

RAM = Extent(0x8000_0000, 1 << 22)


def _edge(truth: Truth, memory: dict[int, int], march: str) -> WindowEdge:
    """Return everything that is true at a position."""
    content = dict(memory)

    def read(address: int, size: int) -> Sequence[KnownValue]:
        return [content.get(address + k, 0) for k in range(size)]

    x = [truth.x.get(number) for number in range(32)]
    f: list[KnownValue] = [None] * 32
    if "d" in march:
        f = [truth.f[number] & (1 << 64) - 1 if number in truth.f else None for number in range(32)]
    return WindowEdge(x, f, {FCSR: truth.csrs[FCSR]} if FCSR in truth.csrs else {}, read)


Shares = tuple[float, float]


def compare(elf: Path, run: SpikeRun, march: str, first: int, last: int, *, begins: bool = False) -> Shares:
    """Compare a window, of which the end is known, and the beginning if it *begins*. Return which shares of the written
    integer registers, and of the memory of random bytes, are known.
    """
    image, history = Image.from_elf(elf), history_of(run)
    loaded = {begin + at: byte for begin, data in image.segments for at, byte in enumerate(data)}
    edges: dict[int, WindowEdge] = {}
    last = min(last, len(history) - 1)
    for position, truth, _ in states(run):
        if position in (first, last):
            edges[position] = _edge(truth, loaded | truth.memory, march)
    machine = HartMachine(image.xlen, march[4:].upper(), [RAM], machine_only=True)
    begin = edges[first] if begins else UNKNOWN
    window = Window(history, image, machine, first, last, begin=begin, end=edges[last])
    window.solve()
    assert not window.contradicted
    return _compared(window, run, first, last, loaded)


def _compared(window: Window, run: SpikeRun, first: int, last: int, loaded: dict[int, int]) -> tuple[float, float]:
    counts, random = [0, 0, 0, 0], Random(1)
    for position, truth, commit in states(run):
        if not first <= position < last:
            continue
        for number, value in commit.x.items():
            found = window.x(position + 1, number)
            assert found in (None, value), (position, hex(commit.pc), number)
            counts[0] += found is not None
            counts[1] += 1
        for number, value in commit.f.items():
            assert window.f(position + 1, number) in (None, value & (1 << 64) - 1), (position, hex(commit.pc), number)
        if position % (1 if LONG else 7) == 0 and truth.memory:
            for address in random.sample(sorted(truth.memory), min(len(truth.memory), 8)):
                found = window.byte(position, address)
                assert found in (None, truth.memory[address]), (position, hex(commit.pc), hex(address))
                counts[2] += found is not None
                counts[3] += 1
    return counts[0] / max(counts[1], 1), counts[2] / max(counts[3], 1)


@pytest.mark.parametrize("march", ["rv64imafdc", *long_only("rv32imac")])
def test_a_compiled_program(march: str, tmp_path: Path) -> None:
    """From the end alone, and with the beginning, where everything is known."""
    elf = build(tmp_path, "start.S", with_macros(tmp_path, "workload.c", ROUNDS=1), march=march)
    run = run_spike(elf, tmp_path, march[4:].upper())
    registers, memory = compare(elf, run, march, 3000, 6000)
    assert registers > 0.2 and memory > 0.05, (registers, memory)
    assert compare(elf, run, march, 3000, 4000, begins=True) == (1, 1)


@pytest.mark.parametrize("march", ["rv64imafdc", *long_only("rv32imafdc")])
@pytest.mark.parametrize(
    "generate",
    [torture.memory, *long_only(torture.integer, torture.floating_point, torture.floating_point_state)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_generated_programs(generate: Callable[[int], str], march: str, tmp_path: Path) -> None:
    elf = assemble(tmp_path, "generated", generate(int(march[2:4])), march)
    run = run_spike(elf, tmp_path)
    random = Random(2)
    for _ in range(20 if LONG else 2):
        first = random.randrange(len(run.steps) // 2)
        compare(elf, run, march, first, first + random.choice((50, 500, 2000)), begins=random.random() < 0.5)


@pytest.mark.parametrize("name", ["interrupts.S", *long_only("traps.S")])
def test_traps(name: str, tmp_path: Path) -> None:
    elf = build(tmp_path, name, march="rv64imac")
    run = run_spike(elf, tmp_path, "IMAC")
    for first in range(0, 600, 200):
        compare(elf, run, "rv64imac", first, first + 2000)
