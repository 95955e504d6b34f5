"""Executing histories again, against what Spike says that registers and memory were: no value may be wrong."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.program.csrs import FCSR
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction import forward as forward_module
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.decode.semantics.encodings import _rows
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.spike_history import Truth, history_of, states
from tests.helpers.amounts import LONG, long_only
from tests.transport.simulated.hart import torture
from tests.transport.simulated.hart.programs import assemble, build, with_macros
from tests.transport.simulated.hart.spike import SpikeRun, SpikeTrap, run_spike

RAM = Extent(0x8000_0000, 1 << 22)
FULL = ("rv64imafdc", *long_only("rv32imafdc"))
_LOW = {"op": 0, "f3": 12, "f7": 25, "f6": 26, "f12": 20, "rs2": 20}
_ZCB = (
    0x9C61, 0x9C65, 0x9C69, 0x9C6D, 0x9C75, 0x9C45,  # c.zext.b, c.sext.b, c.zext.h, c.sext.h, c.not, c.mul x8, x9
    0x8080, 0x80A0, 0x8480, 0x84C0, 0x8880, 0x8C80,  # c.lbu, c.lbu 2, c.lhu, c.lh x8, 0(x9); c.sb, c.sh x8, 0(x9)
)  # fmt: skip


class Tally(NamedTuple):
    """How many values were compared, and how many of these are known."""

    asked: int
    known: int

    @property
    def share(self) -> float:
        return self.known / self.asked


def compare(
    elf: Path,
    run: SpikeRun,
    march: str,
    *,
    every: int = 1,
    saved: bool = False,
    extensions: Sequence[str] = (),
) -> dict[str, Tally]:
    """Compare at every position that is a multiple of *every*: what Spike has written since its boot ROM ended.

    *saved*: all RAM and the CSRs were read at the beginning; otherwise the RAM has what a debugger loads.
    """
    image = Image.from_elf(elf)
    machine = HartMachine(image.xlen, extensions or march[4:].upper(), [RAM], machine_only=True)
    memory = [(RAM[0], bytes(RAM[1])), *image.segments] if saved else image.segments
    csrs = {FCSR: 0} if saved else {}
    f = [0 if saved else None] * 32
    beginning = KnownState(x=(0, *run.x[1:]), f=f, csrs=csrs, privilege=3, memory=memory)
    forward = Forward(history_of(run), image, machine, beginning)
    counts = {"x": [0, 0], "f": [0, 0], "memory": [0, 0]}
    forward.run()
    random = Random(1)
    for position, truth, _ in states(run):
        if position % every == 0:
            _compare_at(forward, position, truth, counts, random)
    return {name: Tally(*count) for name, count in counts.items()}


def _compare_at(forward: Forward, position: int, truth: Truth, counts: dict[str, list[int]], random: Random) -> None:
    hart = forward.hart_at(position)
    for name, values, known in (("x", truth.x, hart.x), ("f", truth.f, hart.f)):
        for number, value in values.items():
            found = known[number]
            counts[name][0] += 1
            counts[name][1] += found is not None
            if name == "f" and found is not None and value < 1 << 64:
                assert found == value, (position, hex(forward._history.pc(position)), f"f{number}")
            else:
                assert found in (None, value), (position, hex(forward._history.pc(position)), f"x{number}")
    for address in random.sample(sorted(truth.memory), min(len(truth.memory), 8)):
        (byte,) = hart.memory.bytes(address, 1)
        counts["memory"][0] += 1
        counts["memory"][1] += byte is not None
        assert byte in (None, truth.memory[address]), (position, hex(address))


@pytest.mark.parametrize("march", ["rv64imafdc", "rv32imac"])
def test_a_compiled_program(march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", with_macros(tmp_path, "workload.c", ROUNDS=1), march=march)
    found = compare(elf, run_spike(elf, tmp_path, march[4:].upper()), march, every=1 if LONG else 7, saved=True)
    assert found["x"].share == found["memory"].share == 1
    assert "F" not in march.upper() or found["f"].share == 1


@pytest.mark.parametrize("march", FULL)
@pytest.mark.parametrize("name", ["traps.S"])
def test_traps(name: str, march: str, tmp_path: Path) -> None:
    """Exceptions, in M and U mode; what a handler reads of their causes is not in the history."""
    elf = build(tmp_path, name, march=march)
    found = compare(elf, run_spike(elf, tmp_path, march[4:].upper()), march)
    assert found["x"].share > 0.5


def test_interrupts(tmp_path: Path) -> None:
    elf = build(tmp_path, "interrupts.S", march="rv64imac")
    found = compare(elf, run_spike(elf, tmp_path, "IMAC"), "rv64imac", every=1 if LONG else 13)
    assert found["x"].share > 0.8


@pytest.mark.parametrize("march", FULL)
@pytest.mark.parametrize(
    ("generate", "share"),
    [
        (torture.integer, 0.99), (torture.memory, 0.6), (torture.floating_point, 0.97),
        (torture.floating_point_state, 0.85),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_generated_programs(generate: Callable[[int], str], share: float, march: str, tmp_path: Path) -> None:
    """What is not known follows from the causes of traps, which the history does not have, and from store-conditionals
    whose outcome no branch shows.
    """
    elf = assemble(tmp_path, "generated", generate(int(march[2:4])), march)
    found = compare(elf, run_spike(elf, tmp_path), march)
    assert found["x"].share > share


def test_accesses(tmp_path: Path) -> None:
    """Each stretch has the loads and stores that Spike made, and none has an unknown address."""
    elf = build(tmp_path, "start.S", with_macros(tmp_path, "workload.c", ROUNDS=1), march="rv64imac")
    run, image = run_spike(elf, tmp_path, "IMAC"), Image.from_elf(elf)
    memory = [(RAM[0], bytes(RAM[1])), *image.segments]
    machine = HartMachine(64, "IMAC", [RAM], machine_only=True)
    forward = Forward(history_of(run), image, machine, KnownState(x=(0, *run.x[1:]), privilege=3, memory=memory))
    forward.run()
    assert forward.segments == 1 and forward.segment_of(5) == 0
    log, seen = forward.accesses(0), 0
    for position, _, commit in states(run):
        for wanted, addresses in (("stores", [it[0] for it in commit.stores]), ("loads", commit.loads)):
            for address in addresses:
                only = {"stores": wanted == "stores", "loads": wanted == "loads"}
                assert log.nearest(position, address, 1, forward=True, **only) == (position, address)
                assert log.nearest(position + 1, address, 1, forward=False, **only) == (position, address)
                assert wanted == "loads" or forward.may_store(0, address, 1)
                seen += 1
    assert seen == len(log) > 1000 and not log.unknown_between(0, len(history_of(run)), loads=True)
    assert not forward.may_store(0, RAM[0] + RAM[1] - 1, 1)


EXTENSIONS = ("Zba", "Zbb", "Zbc", "Zbs", "Zicond")


@pytest.mark.parametrize("xlen", [64, 32])
def test_bit_manipulation(xlen: int, tmp_path: Path) -> None:
    """Every instruction of these extensions, and of Zcb, on values where signs, carries and shifts go wrong."""
    march = f"rv{xlen}imafdc"
    elf = assemble(tmp_path, "bits", torture.program(_bit_lines(xlen), "bytes: .zero 64"), march)
    run = run_spike(elf, tmp_path, "_".join(("IMAFDC", *EXTENSIONS, "Zcb")))
    assert not [step for step in run.steps if isinstance(step, SpikeTrap)]
    found = compare(elf, run, march, extensions=(*"IMAFDC", *EXTENSIONS, "Zcb"), saved=True)
    assert found["x"].share == 1


def _bit_lines(xlen: int) -> Iterator[str]:
    random, values = Random(xlen), torture.edge_values(xlen)
    for extension in EXTENSIONS:
        for row in _rows([extension, f"{extension}{xlen}"]):
            fixed = dict(item.split("=") for item in row.split()[2:])
            word = sum(int(value, 16) << _LOW[field] for field, value in fixed.items())
            for _ in range(40 if LONG else 12):
                yield f"    li x11, {random.choice(values):#x}\n    li x12, {random.choice(values):#x}"
                shift = random.randrange(xlen) if row.split()[1] == "H" else 0
                if row.split()[0] in ("roriw",):
                    shift %= 32
                rs2 = 0 if "f12" in fixed or "rs2" in fixed or row.split()[1] == "H" else 12
                yield f"    .word {word | 11 << 15 | 10 << 7 | rs2 << 20 | shift << 20:#x}"
    for word in _ZCB + ((0x9C71,) if xlen == 64 else ()):
        for value in random.sample(values, 8):
            yield f"    li x8, {value:#x}\n    la x9, bytes\n    .half {word:#x}"


@pytest.mark.parametrize("xlen", [64, 32])
def test_pushes_and_pops(xlen: int, tmp_path: Path) -> None:
    """Each register list, and each size of the frame, of Zcmp."""
    march = f"rv{xlen}imac"
    elf = assemble(tmp_path, "zcmp", torture.program(_push_lines(), ".zero 512\nstack: .zero 64"), march)
    run = run_spike(elf, tmp_path, "IMA_Zca_Zcb_Zcmp_Zcmt")
    assert not [step for step in run.steps if isinstance(step, SpikeTrap)]
    found = compare(elf, run, march, extensions=(*"IMAC", "Zcb", "Zcmp"), saved=True)
    assert found["x"].share == found["memory"].share == 1


def _push_lines() -> Iterator[str]:
    random = Random(0)
    yield "    la sp, stack\n    .option arch, -c\n    .balign 4"
    for rlist, frame in product(range(4, 16), range(4)):
        operands = rlist << 4 | frame << 2 | 2
        for register in ("ra", *(f"s{number}" for number in range(12)), "a0", "a1"):
            yield f"    li {register}, {random.getrandbits(31):#x}"
        one, other = random.sample(range(8), 2)
        yield f"    .half {0xB800 | operands:#x}, {0xAC22 | one << 7 | other << 2:#x}"
        yield f"    li s2, 1\n    li ra, 2\n    .half {0xBA00 | operands:#x}, {0xAC62 | random.getrandbits(3) << 7:#x}"
        yield f"    la ra, 1f\n    .half {0xB800 | operands:#x}, {random.choice((0xBC00, 0xBE00)) | operands:#x}\n1:"


def test_going_on_to_a_later_checkpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From anywhere to anywhere, memory is that of the place: also what was written only between the two."""
    monkeypatch.setattr(forward_module, "STRIDE", 500)
    elf = build(tmp_path, "start.S", with_macros(tmp_path, "workload.c", ROUNDS=1), march="rv64imac")
    run, image = run_spike(elf, tmp_path, "IMAC"), Image.from_elf(elf)
    machine = HartMachine(64, "IMAC", [RAM], machine_only=True)
    beginning = KnownState(x=(0, *run.x[1:]), privilege=3, memory=image.segments)
    forward = Forward(history_of(run), image, machine, beginning)
    places = range(0, len(history_of(run)) + 1, 250)
    stored = {position: dict(truth.memory) for position, truth, _ in states(run) if position in places}
    stored[places[-1]] = stored.get(places[-1], {})
    forward.run()
    random = Random(2)
    for _ in range(60):
        forward.hart_at(random.choice(places))
        position = random.choice(places)
        memory = forward.hart_at(position).memory
        for address, value in stored[position].items():
            assert memory.bytes(address, 1)[0] in (None, value), (position, hex(address))
