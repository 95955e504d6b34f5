"""An unchanged fork does what was traced, up to the first read of a device by the hart's own account."""

import random
from bisect import bisect_left
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from rvtrace_gdb.decode.semantics.operations import BRANCHES
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.fork.check import fork_checks
from rvtrace_gdb.session.fork.errors import NoFork
from rvtrace_gdb.session.fork.following import END, OTHER_PATH, ForkFollower, Left
from rvtrace_gdb.session.fork.fork import ForkedHart
from rvtrace_gdb.support.errors import silent
from rvtrace_gdb.transport.simulated.partial.stops import StopCause
from tests.endtoend.past.hiding_past import HidingPast
from tests.helpers.amounts import some_of
from tests.session.fork.runs import ForkRun, Opened, fork_run, opened

STEPS = 7700
MARCHES = ("rv64imac_zicsr", "rv32imac_zicsr")
UNKNOWN_REASONS = {
    StopCause.BRANCH, StopCause.JUMP, StopCause.STORE_ADDRESS, StopCause.CSR, StopCause.CODE, StopCause.HANDLER
}  # fmt: skip


@pytest.fixture(scope="module", params=MARCHES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ForkRun:
    return fork_run(tmp_path_factory.mktemp("fork"), request.param, STEPS)


kept = cache(opened)
"""An open capture: a fork leaves it as it is."""


def followed(it: Opened, position: int, *, through: bool = False, stop: int = STEPS) -> Left:
    fork = ForkedHart(it.past, it.selected, it.capture, position)
    return ForkFollower(fork, stop, through_devices=through).follow(silent)


@pytest.mark.parametrize("name", ["tandem", "ntrace", "etrace"])
def test_it_leaves_the_trace_at_the_first_read_of_a_device(run: ForkRun, name: str) -> None:
    it, witness = kept(run.files[name]), run.witness
    length = len(it.selected.history)
    assert list(it.selected.history.pcs()) == witness.pcs[:length] and len(witness.reads) > 3
    for position in [0, *random.Random(7).sample(range(length), some_of(60) // 2)]:
        left = followed(it, position)
        next_read = bisect_left(witness.reads, position)
        if next_read == len(witness.reads) or witness.reads[next_read] >= length:
            assert (left.reason, left.position) == (END, length)
        else:
            assert (left.reason, left.position) == (StopCause.DEVICE_READ, witness.reads[next_read])
            assert left.stop and left.stop.access and left.stop.access.address == 0x0200_BFF8


@pytest.mark.parametrize("name", ["tandem", "ntrace", "etrace"])
def test_with_what_devices_were_read_as_it_follows_to_the_end(run: ForkRun, name: str) -> None:
    it = kept(run.files[name])
    history = it.selected.history
    interrupts = [event.position for event in history.events if event.kind.name == "TRAP"]
    for position in [0, *random.Random(8).sample(range(len(history)), some_of(30) // 3)]:
        left = followed(it, position, through=True)
        assert (left.reason, left.position, left.pc) == (END, len(history), None)
        assert left.interrupts == len(interrupts) - bisect_left(interrupts, position + 1)
        reads = run.witness.reads
        assert left.passed == bisect_left(reads, len(history)) - bisect_left(reads, position)


@pytest.mark.parametrize("share", [10, 50])
def test_where_values_are_hidden_it_never_goes_another_way(
    run: ForkRun, share: int
) -> None:
    """It follows to the end, or says what it does not know."""
    it, reasons = kept(run.files["tandem"]), set()
    assert it.past is not None
    hidden = it._replace(past=HidingPast(it.past, share))
    for position in random.Random(share).sample(range(len(it.selected.history)), some_of(120)):
        left = followed(hidden, position, through=True)
        assert left.reason == END or left.reason in UNKNOWN_REASONS, left
        reasons.add(left.reason)
    assert reasons & UNKNOWN_REASONS


def test_values_in_a_fork_are_the_harts_own(run: ForkRun) -> None:
    """After as many instructions, without interrupts on the way."""
    it = kept(run.files["ntrace"])
    for position in random.Random(9).sample(range(2000), some_of(20) // 2):
        fork = ForkedHart(it.past, it.selected, it.capture, position)
        count = fork.hart.advance(300)
        registers = fork.registers()
        x = run.witness.x[position + count - 1]
        assert count == 300 and fork.hart.pc == run.witness.pcs[position + count]
        assert [registers.get(f"x{n}") for n in range(1, 32)] == x[1:]


def test_a_branch_that_goes_the_other_way_is_where_it_leaves(run: ForkRun) -> None:
    """A register that decides has another value: the next instruction is the first that was traced otherwise."""
    it, witness = kept(run.files["ntrace"]), run.witness
    hart = ForkedHart(it.past, it.selected, it.capture, 0).hart
    branches = [n for n in range(200, STEPS - 100) if hart.operation_at(witness.pcs[n]).name in BRANCHES]
    for position in random.Random(11).sample(branches, some_of(100)):
        fork = ForkedHart(it.past, it.selected, it.capture, position)
        operation, x = fork.hart.operation_at(fork.hart.pc), fork.hart.x
        a, b = x[operation.rs1], x[operation.rs2]
        if not operation.rs1 or (operation.name not in ("beq", "bne") and (a == b or not operation.rs2)):
            continue
        if operation.name in ("beq", "bne"):
            x[operation.rs1] = b ^ 1 if a == b else b
        else:
            x[operation.rs1], x[operation.rs2] = b, a
        ways = {fork.hart.pc + operation.length, fork.hart.pc + operation.imm}
        left = ForkFollower(fork, STEPS).follow(silent)
        assert (left.reason, left.position) == (OTHER_PATH, position + 1)
        assert {left.pc, witness.pcs[position + 1]} == ways


def test_a_part_is_followed_to_its_end_alone(run: ForkRun) -> None:
    it = kept(run.files["ntrace"])
    (found,) = fork_checks(it.session, Context(), "11,+50")
    assert (found.start.number, found.last, found.followed, found.end.reason) == (11, 60, 50, "end")
    assert found.place is None and found.start.line


def test_a_capture_without_values_has_no_fork(run: ForkRun, tmp_path: Path) -> None:
    file = tmp_path / "bare.rvt"
    save(replace(load(run.files["ntrace"]), registers=(), memory=(), ranges=()), file)
    it = opened(file)
    with pytest.raises(NoFork, match="no values of registers"):
        ForkedHart(None, it.selected, it.capture, 0)
    with pytest.raises(NoFork, match="where the hart went on is not known"):
        ForkedHart(it.past, it.selected, it.capture, len(it.selected.history))
