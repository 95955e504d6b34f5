"""What follows from the stop, where the beginning is not known: nothing may be wrong, and contradictions are said."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, StopState
from rvtrace_gdb.session.past.past import PastWrite
from rvtrace_gdb.session.past.reconstructed import windows
from rvtrace_gdb.session.past.reconstructed.facts import Dropped, HartFacts
from rvtrace_gdb.session.past.reconstructed.past import ReconstructedPast
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.spike_history import Truth, history_of, states
from tests.helpers.amounts import sparse
from tests.transport.simulated.hart import torture
from tests.transport.simulated.hart.programs import assemble, build, with_macros
from tests.transport.simulated.hart.spike import Commit, SpikeRun, run_spike

RAM = Extent(0x8000_0000, 1 << 22)
LATE = 9000
"""Instructions that are overwritten in the ring of the trace."""


class Late(NamedTuple):
    """The end of a run. *truth*: after its last instruction; *initial*: what memory the program had at first."""

    image: Image
    run: SpikeRun
    history: History
    commits: Sequence[Commit]
    truth: Truth
    initial: dict[int, int]

    def stop(self, changed: dict[int, int] | None = None) -> StopState:
        memory = {**self.initial, **self.truth.memory, **(changed or {})}

        def read(address: int, size: int) -> bytes:
            return bytes(memory.get(at, 0) for at in range(address, address + size))

        x = [self.truth.x[number] for number in range(32)]
        return StopState(self.commits[-1].pc, x, [self.truth.f.get(number) for number in range(32)], {}, read)

    def past(self, stop: StopState | None) -> ReconstructedPast:
        machine = HartMachine(64, "IMAFDC", [RAM], machine_only=True)
        return ReconstructedPast(self.history, ContextImages(self.image), HartFacts(machine, stop=stop))


def ran_late(folder: Path, elf: Path, first: int) -> Late:
    """A run whose first instructions are overwritten in the ring of the trace."""
    run = run_spike(elf, folder, "IMAFDC")
    image, truth = Image.from_elf(elf), Truth(x=dict(enumerate(run.x)))
    before: dict[int, int] = {}
    for position, now, commit in states(run):
        if position == first:
            before = dict(now.memory)
        truth.apply(commit)
    assert all(isinstance(step, Commit) for step in run.steps[:first])
    initial = {begin + at: byte for begin, content in image.segments for at, byte in enumerate(content)} | before
    end = SpikeRun(run.x, run.steps[first:])
    return Late(image, end, history_of(end), [it for it in end.steps if isinstance(it, Commit)], truth, initial)


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Late:
    folder = tmp_path_factory.mktemp("late")
    elf = build(folder, "start.S", with_macros(folder, "workload.c", ROUNDS=1), march="rv64imafdc")
    return ran_late(folder, elf, LATE)


def compared(past: ReconstructedPast, late: Late) -> float:
    """Compare registers and memory, and return the share of integer registers that are known."""
    asked = known = 0
    memory = dict(late.initial)
    for position, truth, commit in states(late.run):
        if position % sparse(31) == 0:
            found = past.integers(position)
            wanted = truth.x
            asked, known = asked + len(wanted), known + len(found.keys() & wanted.keys())
            assert all(wanted.get(number, value) == value for number, value in found.items()), position
            for address, _, _ in commit.stores:
                for at, byte in enumerate(past.memory(position, address, 8), address):
                    assert byte in (None, memory.get(at, 0)), (position, hex(at))
        for address, size, value in commit.stores:
            memory |= dict(enumerate(value.to_bytes(size, "little"), address))
    return known / asked


def test_from_the_stop(late: Late) -> None:
    """More is known than without it."""
    past = late.past(late.stop())
    past.prepare()
    share = compared(past, late)
    assert share > 0.8 > 0.4 > compared(late.past(None), late)
    assert not past.disagreements
    assert past.registers(len(late.history))["pc"] == late.commits[-1].pc
    assert past.integers(len(late.history)) == late.truth.x


def test_windows_grow_and_blocks_are_elsewhere(late: Late, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "FIRST", 1000)
    monkeypatch.setattr(windows, "LONGEST", 4000)
    monkeypatch.setattr(windows, "_BLOCK", 500)
    assert len(late.history) > 6000
    assert compared(late.past(late.stop()), late) > 0.5


COUNTER = """
    li s0, 0
    li s1, 3000
    li s2, 77
1:  addiw s0, s0, 1
    nop
    bne s0, s1, 1b
"""


def test_counter_where_a_window_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 32-bit number before it is counted on follows from the round before, in which it was extended."""
    monkeypatch.setattr(windows, "FIRST", 1000)
    elf = assemble(tmp_path, "counter", torture.program(iter(COUNTER.splitlines())), "rv64imac")
    counter = ran_late(tmp_path, elf, 1000)
    length, begin = len(counter.history), counter.run.x[8]
    asked = [length - back + at for back in (1000, 2000, 4000) for at in range(4)]
    wanted = {position: now.x.get(8, begin) for position, now, _ in states(counter.run) if position in asked}
    known = {position: counter.past(counter.stop()).integers(position).get(8) for position in asked}
    assert known == wanted


def test_what_nothing_has_written_is_what_it_is_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also long before the window at the stop; a register that is written stays unknown there, or is right."""
    for name in ("FIRST", "LONGEST", "_BLOCK"):
        monkeypatch.setattr(windows, name, 1000)
    elf = assemble(tmp_path, "kept", torture.program(iter(COUNTER.splitlines())), "rv64imac")
    counter = ran_late(tmp_path, elf, 1000)
    past = counter.past(counter.stop())
    for position, now, _ in states(counter.run):
        if position in (0, 1, 2, 100, 2000):
            found = past.integers(position)
            assert found[18] == 77
            assert all(now.x.get(number, value) == value for number, value in found.items()), position
    assert 8 not in past.integers(1)


def test_writers_and_accesses(late: Late) -> None:
    """Each is the last one, but for those that may have been in between and are counted."""
    past, stores = late.past(late.stop()), [(at, it) for at, c in enumerate(late.commits) for it in c.stores]
    certain = 0
    for at, (address, size, value) in stores[:: sparse(17)]:
        found = past.memory_writer(at + 1, address, size)
        if isinstance(found, PastWrite) and found.position == at:
            certain += 1
            assert found.store == (address, size, value) or (found.store is not None and found.store.value is None)
        else:
            assert at in past.unknown_accesses(at, at + 1, loads=False)
    assert certain > 10


def test_memory_that_something_else_has_written(late: Late) -> None:
    """A byte at the stop is not what the last store to it left: no memory is believed, and it is said where."""
    stores = [(at, it[0]) for at, commit in enumerate(late.commits[:-50]) for it in commit.stores]
    at, address = stores[-1]
    past = late.past(late.stop({address: late.truth.memory[address] ^ 1}))
    past.prepare()
    assert past.disagreements and past.disagreements[0].dropped is Dropped.RAM
    assert 0 <= past.disagreements[0].position < len(late.history)
    assert past.memory(at, RAM[0] + RAM[1] - 8, 1) == [None]


def test_registers_at_the_stop_that_do_not_fit(late: Late) -> None:
    """Something else has written them: they are not believed where the execution says otherwise."""
    known, stop = late.past(None).integers(len(late.history)), late.stop()
    number = max(known)
    past = late.past(stop._replace(x=[*stop.x[:number], known[number] ^ 1, *stop.x[number + 1 :]]))
    past.prepare()
    assert past.disagreements[0].at_stop and past.disagreements[0].position == len(late.history) - 1
    assert past.disagreements[-1].dropped is Dropped.EVERYTHING and past.integers(5) == {0: 0}
