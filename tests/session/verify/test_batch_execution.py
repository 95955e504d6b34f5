"""A model that is told ahead what a trace says finds what one finds that is asked for each step, and runs no further.

The model is Spike's log, with a `run` written here.
"""

from collections.abc import Sequence
from dataclasses import asdict

import pytest

from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR, Group, StateId
from rvtrace_gdb.session.verify.masks import masks_of
from rvtrace_gdb.session.verify.model import Divergence, ExpectedStep, ModelFailed, ModelStep
from rvtrace_gdb.session.verify.verifier import Verifier, VerifyOptions
from tests.decode.tandem.corpus import program_of
from tests.helpers.amounts import thorough
from tests.session.verify.faults import (
    DATA,
    Change,
    changed,
    entry_of,
    flip,
    flip_state,
    groups_of,
    other_instruction,
    with_groups,
)
from tests.session.verify.logged_model import Replay

MIE, MIP = 0x304, 0x344
NAMES = ["flute_rv64ui-p-add", "piccolo_rv32ui-p-sb", "flute_rv64uc-p-rvc", "flute_rv64ud-p-fadd"]
FAULTS: dict[str, Change] = {
    "register": flip(range(GPR + 1, FPR_END), 3),
    "store": flip_state(DATA, 0x10),
    "address": flip_state((StateId.EFFECTIVE_ADDRESS,), 8),
    "next pc": flip_state((StateId.PC,), 4),
    "instruction": other_instruction,
    "CSR": flip(frozenset({0x300, 0x305, 0x341, 0x342}), 7),
}


class Runner(Replay):
    """*runs*: the first group's pc of each run, and how many steps were expected of it and done."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.runs: list[tuple[int, int, int]] = []

    def run(self, expected: Sequence[ExpectedStep]) -> tuple[int, ModelStep | None]:
        for done, wanted in enumerate(expected):
            try:
                step = self.step()
            except ModelFailed:
                self.runs.append((expected[0].pc, len(expected), done))
                return done, None
            if not is_as(step, wanted):
                self.runs.append((expected[0].pc, len(expected), done))
                return done, step
        self.runs.append((expected[0].pc, len(expected), len(expected)))
        return len(expected), None


class Queue(Runner):
    """It has the next steps before it is asked for the result of those before, and nothing else is asked meanwhile.

    most  that it had at once
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.queued: list[tuple[Sequence[ExpectedStep], bool]] = []
        self.agreed, self.most = False, 0

    def queue(self, expected: Sequence[ExpectedStep]) -> None:
        self.queued.append((expected, bool(self.queued)))
        self.most = max(self.most, len(self.queued))

    def executed(self) -> tuple[int, ModelStep | None]:
        later = self.queued[1:]
        expected, goes_on = self.queued[0]
        self.queued = []
        done, other = (0, None) if goes_on and not self.agreed else self.run(expected)
        self.agreed, self.queued = done == len(expected), later
        return done, other

    def step(self) -> ModelStep:
        assert not self.queued
        return super().step()

    def read_register(self, regno: int) -> int | None:
        assert not self.queued
        return super().read_register(regno)

    def write_register(self, regno: int, value: int) -> None:
        assert not self.queued
        super().write_register(regno, value)

    def read_memory(self, address: int, size: int) -> bytes | None:
        assert not self.queued
        return super().read_memory(address, size)


def is_as(step: ModelStep, wanted: ExpectedStep) -> bool:
    stores = [(stored.address, len(stored.data), int.from_bytes(stored.data, "little")) for stored in step.stores]
    return step.trap is None and (step.pc, step.instr, step.next_pc, step.registers, stores) == (
        wanted.pc, wanted.instr, wanted.next_pc, wanted.registers, [] if wanted.store is None else [wanted.store],
    )  # fmt: skip


Report = tuple[list[Divergence], dict[str, object], list[object], dict[int, int]]


def report(name: str, tandem: DecodedTandem, model: Replay, choices: VerifyOptions) -> Report:
    """Everything that is found, counted and said; at each divergence the model has made the steps up to it, no more."""
    verifier = Verifier(tandem, model, choices, program_of(name))
    said: list[object] = []
    found: list[Divergence] = []
    try:
        for divergence in verifier.run(lambda *words: said.append(words)):
            found.append(divergence)
            said.append(model.steps)
    except ModelFailed as error:
        said.append(str(error))
    return found, asdict(verifier.counts), [*said, model.steps], verifier.refused


def both(name: str, groups: Sequence[Group], choices: VerifyOptions | None = None) -> Report:
    tandem = with_groups(name, tuple(groups))
    choices = choices or VerifyOptions(masks_of([]))
    alone, ahead, queued = (report(name, tandem, model(name), choices) for model in (Replay, Runner, Queue))
    assert ahead == alone
    assert queued == alone
    return ahead


def runs_of(name: str) -> list[tuple[int, int]]:
    """Of the trace as it is, its runs: the first group, and how many."""
    model = Runner(name)
    tandem = with_groups(name, groups_of(name))
    report(name, tandem, model, VerifyOptions(masks_of([])))
    found, at = [], 0
    for pc, size, done in model.runs:
        at = next(group for group in range(at, len(tandem.trace)) if tandem.index.origin(group) == pc)
        if size == done:
            found.append((at, size))
        at += done
    return found


@pytest.mark.parametrize("name", NAMES)
def test_most_groups_are_run_at_once(name: str) -> None:
    model = Runner(name)
    tandem = with_groups(name, groups_of(name))
    verifier = Verifier(tandem, model, VerifyOptions(masks_of([])), program_of(name))
    try:
        assert list(verifier.run()) == []
    except ModelFailed as error:
        assert str(error) == "the log ends here"
    done = sum(run[2] for run in model.runs)
    assert done > 0.6 * verifier.counts.executed
    assert done > 4 * len(model.runs)


def test_the_next_groups_are_queued_meanwhile() -> None:
    """Two batches are on the way at most, and what is found is the same."""
    model, name = Queue(NAMES[0]), NAMES[0]
    tandem = with_groups(name, groups_of(name))
    report(name, tandem, model, VerifyOptions(masks_of([])))
    assert model.most == 2 and not model.queued


@thorough("session/verify/test_faults.py::test_a_flipped_value_is_found_in_its_group")
@pytest.mark.parametrize("name", ["flute_rv64ui-p-lb", "piccolo_rv32ui-p-sb", "flute_rv64ud-p-ldst"])
def test_faults_in_the_first_and_the_last_step_of_a_run(name: str) -> None:
    """And in between: the same divergences with the same counts, whatever else is said."""
    groups, seen = groups_of(name), 0
    begin, size = max(runs_of(name), key=lambda run: run[1])
    stop = VerifyOptions(masks_of([]), stop=begin + size + 20)
    for fault in FAULTS.values():
        able = [at for at in range(begin, begin + size) if changed(groups[at], fault) is not None]
        for at in {at for some in (able[:1], able[len(able) // 2 :][:1], able[-1:]) for at in some}:
            faulty = changed(groups[at], fault)
            assert faulty is not None
            found, counts, *_ = both(name, [*groups[:at], faulty, *groups[at + 1 :]], stop)
            assert found[0].group == at and counts["divergences"] == len(found)
            seen += 1
    both(name, [*groups[: begin + size - 1], *groups[begin + size :]], stop)
    both(name, [*groups[: begin + 1], *groups[begin:]], stop)
    assert seen > 6


@pytest.mark.parametrize("choices", [
    VerifyOptions(masks_of(["stores"]), every=3),
    VerifyOptions(masks_of(["a0", "mstatus:0x600"]), every=64, states=True),
    VerifyOptions(masks_of(["addresses"]), devices=((0x8000_2000, 0x1000),), start=90),
    VerifyOptions(masks_of([]), stop=301),
])  # fmt: skip
def test_choices_are_kept(choices: VerifyOptions) -> None:
    name = NAMES[0]
    groups = list(groups_of(name))
    for at in range(entry_of(name) + 40, len(groups) - 20, 31):
        groups[at] = changed(groups[at], FAULTS["register"]) or groups[at]
    found, *_ = both(name, groups, choices)
    assert found


class Pending(Runner):
    """Its timer's interrupt is pending and enabled, but for mstatus."""

    def reset(self) -> None:
        super().reset()
        self.registers |= {MIE: 0x80, MIP: 0x80}


def test_a_pending_interrupt_is_kept_away_from_each_step() -> None:
    """So nothing is run at once where one is, before the program writes mie."""
    name = NAMES[0]
    tandem = with_groups(name, groups_of(name))
    columns = tandem.index.registers.columns
    stop = columns[MIE].groups[0] if MIE in columns else len(tandem.trace)
    for model, expected in ((Runner(name), True), (Pending(name), False)):
        report(name, tandem, model, VerifyOptions(masks_of([]), stop=stop))
        assert bool(model.runs) == expected
