"""States that are kept for the next time: what is said of a history with them is what is said when all is executed."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause, Start, StartReason
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.reconstruction import forward as forward_module
from rvtrace_gdb.decode.reconstruction.checkpoints import Checkpoints
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState, StopState
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.session import kept_files
from rvtrace_gdb.session.past.past import WantedAccess
from rvtrace_gdb.session.past.reconstructed import execution as execution_module
from rvtrace_gdb.session.past.reconstructed import kept_states
from rvtrace_gdb.session.past.reconstructed.facts import HartFacts
from rvtrace_gdb.session.past.reconstructed.kept_states import KeptStates
from rvtrace_gdb.session.past.reconstructed.past import ReconstructedPast
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.test_machines import SELF_MODIFYING, TASKS, without_values
from tests.helpers.cross_compiler import compile_program
from tests.transport.simulated.devices.tandem_port import Ported
from tests.transport.simulated.hart.programs import assemble
from tests.transport.simulated.harts import compiled

RAM = Extent(0x8000_0000, 1 << 20)
STEPS = 4_000
STRIDE = 300


class Ran:
    """A hart of a run with all that is known of it. *losses*: positions at which something is lost, nobody knows where.
    """

    def __init__(self, ported: Ported, hart: int = 0, losses: Sequence[int] = (), *, stops: bool = True) -> None:
        it = ported.machine.harts[hart]
        beginning = KnownState(x=list(it.x), privilege=3, csrs={0xF14: hart}, memory=ported.image.segments)
        ported.machine.run_slice(STEPS)
        self.told: DecodedTandem = ported.decoded(hart)
        lost = [Event(at, EventKind.LOSS, 0, Loss(LossCause.MESSAGES_MISSING, (3, 1))) for at in losses]
        syncs = [Event(at - 700, EventKind.SYNC, 0, Start(StartReason.PERIODIC)) for at in losses]
        self.history: History = without_values(self.told)
        if losses:
            self.history = self.history.with_events([*lost, *syncs])
        self.program = ContextImages(ported.image)
        stop = StopState(it.pc, list(it.x), [None] * 32, {}, lambda at, size: b"")
        machine = HartMachine(64, "IMAC", [RAM], machine_only=True)
        self.facts = HartFacts(machine, beginning, stop=stop if stops else None)

    def past(self, states: KeptStates | None = None) -> ReconstructedPast:
        return ReconstructedPast(self.history, self.program, self.facts, states)


class Executed:
    """Counts the stretches that are executed for the first time."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.times = 0
        keep = Checkpoints.keep

        def counted(checkpoints: Checkpoints, position: int) -> None:
            self.times += 1
            keep(checkpoints, position)

        patch.setattr(Checkpoints, "keep", counted)

    def by(self, past: ReconstructedPast) -> int:
        """While a past is prepared."""
        before = self.times
        past.prepare()
        return self.times - before


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> Executed:
    return Executed(monkeypatch)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files are kept. Short histories have some."""
    monkeypatch.setenv(kept_files.FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(forward_module, "STRIDE", STRIDE)
    monkeypatch.setattr(execution_module, "LEAST", 100)
    return tmp_path / "cache"


@pytest.fixture
def tasks(tmp_path: Path) -> Ported:
    return Ported(compile_program(tmp_path, TASKS / "tasks.c", TASKS / "switch.S"), extensions="IMAC")


def kept() -> KeptStates:
    return KeptStates(lambda: "name")


def said(past: ReconstructedPast, positions: Sequence[int]) -> list[object]:
    """What a user may see at some places, in this order."""
    found: list[object] = []
    for at in positions:
        registers = past.registers(at)
        sp = registers.get("sp", RAM.address)
        found += [{name: registers[name] for name in registers}, past.memory(at, sp & -64, 256)]
        found += [past.values_stay_known(at, ["a0"]), past.has_unmapped_stores(at, at + 500)]
        for forward in (True, False):
            wanted = WantedAccess(sp & -8, 64, forward=forward, stores=True, loads=not forward)
            found.append(past.nearest_access(at, wanted))
        found.append(past.unknown_accesses(max(at - 300, 0), at, loads=True))
        found.append(past.memory_writer(at, sp & -8, 16))
    return [*found, past.knowledge(), list(past.disagreements)]


def places(history: History) -> list[int]:
    return [len(history), *Random(3).sample(range(len(history)), 8), 0, len(history) - 1]


@pytest.mark.parametrize("most", [1 << 11, 4])
@pytest.mark.parametrize("losses", [(), (1_500, 3_700)])
def test_nothing_is_executed_again_and_everything_is_as_before(
    most: int, losses: tuple[int, ...], tasks: Ported, executed: Executed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that a timer switches; also where trace is lost, and with few checkpoints."""
    monkeypatch.setattr(kept_states, "_PLACES", most)
    ran = Ran(tasks, losses=losses)
    assert executed.by(ran.past(kept())) > 10
    past = ran.past(kept())
    assert not executed.by(past)
    positions = places(ran.history)
    assert said(past, positions) == said(ran.past(), positions)
    known = asked = 0
    for at in positions[1:]:
        state, found = ran.told.after(ran.told.group_of(at) - 1), past.integers(at)
        for number in range(1, 32):
            true = state.x(number)
            assert true is None or found.get(number) in (None, true), (at, number)
            asked, known = asked + 1, known + (number in found)
    assert known > (0.3 if losses else 0.9) * asked


def test_of_two_harts_that_share_memory_the_same_contradictions_are_said(
    tmp_path: Path, executed: Executed
) -> None:
    """All memory is believed to be one hart's own, which is wrong."""
    ported = Ported(compiled(tmp_path), extensions="IMAC", harts=2)
    ran = Ran(ported, hart=1)
    past, again = ran.past(kept()), ran.past(kept())
    assert executed.by(past) and past.disagreements
    assert not executed.by(again) and again.disagreements == past.disagreements
    positions = places(ran.history)
    assert said(again, positions) == said(ran.past(), positions)


@pytest.mark.parametrize("what", ["cut", "changed", "empty", "of another length", "no file"])
def test_a_file_that_does_not_fit_is_not_used(what: str, tasks: Ported, folder: Path, executed: Executed) -> None:
    ran = Ran(tasks)
    expected = ran.past(kept())
    expected.prepare()
    (file,) = folder.iterdir()
    content = file.read_bytes()
    if what == "no file":
        file.unlink()
    elif what == "of another length":
        assert kept().read(len(ran.history)) is not None and kept().read(len(ran.history) + 1) is None
        return
    else:
        file.write_bytes({"cut": content[:-9], "changed": content[:500] + b"x" + content[501:], "empty": b""}[what])
    past = ran.past(kept())
    assert executed.by(past) and past.registers(900) == expected.registers(900)
    assert file.read_bytes() == content  # it is written again


def test_what_is_not_kept(tmp_path: Path, tasks: Ported, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too much memory, code that the program writes, and everything where nothing is to be kept."""
    ran = Ran(tasks)
    monkeypatch.setattr(kept_states, "_BYTES", 4096)
    ran.past(kept()).prepare()
    monkeypatch.undo()
    monkeypatch.setattr(execution_module, "LEAST", 1)
    monkeypatch.setenv(kept_files.FOLDER_VARIABLE, "")
    ran.past(kept()).prepare()
    monkeypatch.setenv(kept_files.FOLDER_VARIABLE, str(folder))
    ran.past(KeptStates(lambda: None)).prepare()
    Ran(Ported(assemble(tmp_path, "self", SELF_MODIFYING, "rv64imac"), extensions="IMAC")).past(kept()).prepare()
    assert not folder.exists()


def test_what_was_asked_before_does_not_matter(tasks: Ported, executed: Executed) -> None:
    """A part was executed already when the states are looked for."""
    ran = Ran(tasks)
    ran.past(kept()).prepare()
    past = ran.past(kept())
    before = [past.registers(20), past.registers(50)]
    assert not executed.by(past)
    assert [past.registers(20), past.registers(50)] == before
    positions = places(ran.history)
    assert said(past, positions) == said(ran.past(), positions)
