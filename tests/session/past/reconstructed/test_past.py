"""Registers, memory, writers and accesses that are reconstructed, against what Spike says: none may be wrong."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import FCSR
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction import forward
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState
from rvtrace_gdb.session.past.past import INSTRUCTION, NoWrite, PastWrite, WantedAccess
from rvtrace_gdb.session.past.reconstructed.facts import HartFacts
from rvtrace_gdb.session.past.reconstructed.past import ReconstructedPast
from rvtrace_gdb.session.proxy.protocol.target_xml import TargetXml
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.spike_history import history_of, states
from tests.helpers.amounts import sparse
from tests.transport.simulated.hart.programs import build, with_macros
from tests.transport.simulated.hart.spike import Commit, SpikeRun, run_spike

RAM = Extent(0x8000_0000, 1 << 22)
MARCH = "rv64imafdc"


class Ran(NamedTuple):
    """What Spike did, and the commit at each position."""

    elf: Path
    run: SpikeRun
    history: History
    commits: Sequence[Commit]

    @property
    def beginning(self) -> KnownState:
        memory = [(RAM[0], bytes(RAM[1])), *Image.from_elf(self.elf).segments]
        return KnownState(x=(0, *self.run.x[1:]), f=[0] * 32, csrs={FCSR: 0}, privilege=3, memory=memory)

    def past(self, beginning: KnownState | None, *, memory: bool = True) -> ReconstructedPast:
        image = Image.from_elf(self.elf)
        machine = HartMachine(64, "IMAFDC", [RAM], machine_only=True)
        return ReconstructedPast(self.history, ContextImages(image), HartFacts(machine, beginning, memory=memory))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("ran")
    elf = build(folder, "start.S", with_macros(folder, "workload.c", ROUNDS=1), march=MARCH)
    run = run_spike(elf, folder, MARCH[4:].upper())
    return Ran(elf, run, history_of(run), [step for step in run.steps if isinstance(step, Commit)])


@pytest.fixture(autouse=True)
def short_stretches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward, "STRIDE", 1024)
        patch.setattr(forward, "_STEP", 64)
        patch.setattr(forward, "_FINEST", 8)
        yield


@pytest.fixture(scope="module")
def full(ran: Ran) -> ReconstructedPast:
    """From a beginning at which registers and RAM are known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward, "STRIDE", 1024)
        past = ran.past(ran.beginning)
        past.prepare()
        return past


def test_registers_and_memory_in_any_order(ran: Ran, full: ReconstructedPast) -> None:
    """All are known, and as gdb names and stores them."""
    wanted = {}
    for position, truth, _ in states(ran.run):
        if position % sparse(23) == 0:
            wanted[position] = dict(truth.x), dict(truth.f), dict(truth.memory)
    order = list(wanted)
    Random(1).shuffle(order)
    random = Random(2)
    for position in order:
        x, f, memory = wanted[position]
        registers = full.registers(position)
        assert registers["pc"] == ran.history.pc(position)
        assert {number: registers[f"x{number}"] for number in x} == x
        assert {it: registers[f"f{it}"] for it in f} == {it: value & (1 << 64) - 1 for it, value in f.items()}
        assert full.integers(position).items() >= x.items()
        for address in random.sample(sorted(memory), min(len(memory), 8)):
            assert full.memory(position, address, 1) == [memory[address]]
    assert "pc" not in full.registers(len(ran.history)) and full.registers(0)["sp"] == ran.run.x[2]


def test_gdb_finds_the_registers(full: ReconstructedPast) -> None:
    told = full.traced_registers()
    names = TargetXml.of_hart(64, told).by_name
    assert told.flen == 64 and {"zero", "pc", "mstatus", "mepc", "fcsr", "ft0"} <= set(names)


def last_writers(ran: Ran, position: int) -> dict[int, int]:
    """Return the position of the last instruction that wrote each integer register."""
    return {number: at for at in range(position) for number in ran.commits[at].x}


@pytest.mark.parametrize("beginning", [True, False])
def test_the_last_writer_of_each_register(beginning: bool, ran: Ran, full: ReconstructedPast) -> None:
    """It is certain, also if no value is known."""
    past = full if beginning else ran.past(None)
    random = Random(3)
    for position in random.sample(range(len(ran.commits)), 12):
        writers = last_writers(ran, position)
        for number in range(32):
            found = past.register_writer(position, 0x1000 + number)
            if number not in writers:
                assert found == NoWrite()
                continue
            assert isinstance(found, PastWrite)
            assert (found.kind, found.position, found.register) == (INSTRUCTION, writers[number], 0x1000 + number)
            assert found.new in (ran.commits[found.position].x[number], None)
            assert not beginning or (found.new is not None and not found.doubts)


def test_the_writer_before_a_writer(ran: Ran, full: ReconstructedPast) -> None:
    wrote = [position for position, commit in enumerate(ran.commits) if 10 in commit.x]
    below: int | None = None
    for position in wrote[:-40:-1]:
        found = full.register_writer(len(ran.history), 0x100A, below)
        assert isinstance(found, PastWrite) and found.position == position
        assert found.old == full.registers(position)["a0"]
        below = found.below
    assert full.register_writer(wrote[0], 0x100A) == NoWrite()


def test_the_writer_of_the_pc(ran: Ran, full: ReconstructedPast) -> None:
    found = full.register_writer(100, -1)
    assert isinstance(found, PastWrite)
    assert (found.position, found.old, found.new) == (99, ran.history.pc(99), ran.history.pc(100))


def test_the_last_store_to_memory(ran: Ran, full: ReconstructedPast) -> None:
    random = Random(4)
    stores = [(at, store) for at, commit in enumerate(ran.commits) for store in commit.stores]
    for position in random.sample(range(len(ran.commits)), 30):
        address = random.choice(stores)[1][0]
        before = [(at, it) for at, it in stores if at < position and it[0] < address + 4 and address < it[0] + it[1]]
        found = full.memory_writer(position, address, 4)
        if not before:
            assert found == NoWrite()
            continue
        at, (begin, size, value) = before[-1]
        assert isinstance(found, PastWrite) and (found.position, found.store) == (at, (begin, size, value))
        assert not found.doubts and found.window is not None
        if len(before) > 1:
            again = full.memory_writer(position, address, 4, found.below)
            assert isinstance(again, PastWrite) and again.position == before[-2][0]


def test_the_nearest_accesses(ran: Ran, full: ReconstructedPast) -> None:
    """In both directions, loads and stores, over many stretches."""
    random = Random(5)
    accesses = [
        (at, kind, address, size)
        for at, commit in enumerate(ran.commits)
        for kind, address, size in (
            *(("store", it[0], it[1]) for it in commit.stores), *(("load", it, 1) for it in commit.loads)
        )
    ]  # fmt: skip
    for position in random.sample(range(len(ran.commits)), 30):
        address = random.choice(accesses)[2]
        for kind in ("store", "load"):
            at = [it[0] for it in accesses if it[1] == kind and it[2] <= address < it[2] + it[3]]
            stores, loads = kind == "store", kind == "load"
            for is_forward in (True, False):
                near = [it for it in at if (it >= position) == is_forward]
                found = full.nearest_access(position, WantedAccess(address, 1, is_forward, stores, loads))
                assert kind == "load" or near == [] or found is not None
                if found is not None and near:
                    wanted = min(near) if is_forward else max(near)
                    # a load that Spike logs by its first byte may have reached the address as well
                    assert found.position == wanted or (kind == "load" and (found.position < wanted) == is_forward)
    assert not full.unknown_accesses(0, len(ran.history), loads=True)


def test_registers_of_results_that_stay_known(ran: Ran, full: ReconstructedPast) -> None:
    assert full.values_stay_known(0, ["a0", "fa0", "pc"]) and not full.values_stay_known(0, ["a0", "s3"])
    unknown = ran.past(None)
    assert not unknown.values_stay_known(0, ["a0"]) and unknown.values_stay_known(0, ["zero"])


def test_without_a_beginning_nothing_is_wrong(ran: Ran) -> None:
    """As if older trace had been overwritten."""
    run = SpikeRun(ran.run.x, ran.run.steps[5000:])
    commits = ran.commits[5000:]
    late = Ran(ran.elf, run, history_of(run), commits)
    past, known = late.past(None), 0
    for position, truth, _ in states(run):
        if position % sparse(41) == 0:
            found = past.integers(position)
            known += len(found)
            assert all(truth.x.get(number, value) == value for number, value in found.items())
    assert known > 100
    unknown = past.unknown_accesses(0, len(late.history), loads=False)
    assert unknown and all(commits[position].stores for position in unknown)
    stores = [position for position, commit in enumerate(commits) if commit.stores]
    position = stores[len(stores) // 2]
    written = past.memory_writer(position + 1, commits[position].stores[0][0], 1)
    doubts = written.doubts if isinstance(written, PastWrite) else written.notes
    since = written.position if isinstance(written, PastWrite) else -1
    count = sum(since < it <= position for it in unknown)
    assert not count or f"The address of {count} store" in doubts[-1]


def test_registers_without_memory(ran: Ran) -> None:
    """`set trace values registers`: constants of the program are known, and nothing else of memory."""
    past = ran.past(ran.beginning, memory=False)
    position = len(ran.history) - 1
    assert past.memory(position, RAM[0] + RAM[1] - 8, 1) == [None]
    assert past.memory(position, ran.history.pc(0), 4) == list(ran.commits[0].word.to_bytes(4, "little"))


def test_what_is_interrupted_goes_on(ran: Ran) -> None:
    past, calls = ran.past(ran.beginning), 0

    class Stopped(Exception):
        pass

    def stop(label: str, done: int, total: int | None = None) -> None:
        nonlocal calls
        calls += 1
        raise Stopped

    while True:
        try:
            past.prepare(stop)
        except Stopped:
            continue
        break
    assert calls == -(-len(ran.history) // 1024)
    assert past.integers(len(ran.history) - 5) == ran.past(ran.beginning).integers(len(ran.history) - 5)
