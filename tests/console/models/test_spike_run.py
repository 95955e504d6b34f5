"""Spike told ahead what steps do (`PipelinedModel`): it stops where it does anything else, and finds the same."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from rvtrace_gdb.console.models import ModelOptions, open_model
from rvtrace_gdb.console.models.spike import Spike
from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR, Group
from rvtrace_gdb.session.verify.masks import foreign_code, masks_of
from rvtrace_gdb.session.verify.model import PC, ExpectedStep, Model, ModelFailed, ModelStep, PipelinedModel
from rvtrace_gdb.session.verify.verifier import Verifier, VerifyOptions
from tests.decode.tandem.corpus import RV32, RV64, parameters_of, program_of
from tests.helpers.spike import spike_program
from tests.session.verify.faults import DATA, changed, flip, flip_state, groups_of, with_groups

X, F, MSTATUS, MSCRATCH = 0x1000, 0x1020, 0x300, 0x340
RAM, BOOT_ROM, FS = 0x8000_0000, (0x7000_0000, 0x1000), 3 << 13
FAULTS = [flip(range(GPR + 1, FPR_END), 3), flip_state(DATA, 0x10)]

ADDI, LI, STORE, LOAD, FLOAD, NOP = 0x00108093, 0x4105, 0x0021_3023, 0x0001_3183, 0x0001_3207, 0x13
"""addi x1,x1,1; c.li x2,1; sd x2,0(x2); ld x3,0(x2); fld f4,0(x2); nop."""


def spike(xlen: int = 64, python: str | None = None) -> Spike:
    spike_program()
    options = ModelOptions(memory=(BOOT_ROM,), python=python)
    found = open_model("spike", None, RV64 if xlen == 64 else RV32, options)
    assert isinstance(found, Spike) and isinstance(found, PipelinedModel)
    return found


@pytest.fixture(scope="module")
def spikes() -> Iterator[dict[int, list[Spike]]]:
    """Two of each, so that both have been asked the same before."""
    opened = {xlen: [spike(xlen), spike(xlen)] for xlen in (32, 64)}
    yield opened
    for model in (*opened[32], *opened[64]):
        model.close()


def prepared(model: Spike) -> list[ExpectedStep]:
    """A program, and what the instruction set says that its steps do."""
    model.reset()
    code = b"".join(word.to_bytes(4, "little") for word in (ADDI, ADDI, STORE, LOAD, FLOAD, NOP))
    model.write_memory(RAM, code + LI.to_bytes(2, "little"))
    for regno, value in ((PC, RAM), (X + 1, 6), (X + 2, RAM + 0x2000), (MSTATUS, FS)):
        model.write_register(regno, value)
    at = RAM + 0x2000
    return [
        ExpectedStep(RAM, ADDI, RAM + 4, {X + 1: 7}),
        ExpectedStep(RAM + 4, ADDI, RAM + 8, {X + 1: 8}),
        ExpectedStep(RAM + 8, STORE, RAM + 12, {}, store=(at, 8, at)),
        ExpectedStep(RAM + 12, LOAD, RAM + 16, {X + 3: at}, load=at),
        ExpectedStep(RAM + 16, FLOAD, RAM + 20, {F + 4: at}, load=at),
        ExpectedStep(RAM + 20, NOP, RAM + 24, {}),
        ExpectedStep(RAM + 24, LI, RAM + 26, {X + 2: 1}),
    ]


def test_all_as_expected(spikes: dict[int, list[Spike]]) -> None:
    model = spikes[64][0]
    expected = prepared(model)
    assert model.run(expected) == (len(expected), None)
    assert model.read_register(PC) == RAM + 26 and model.read_register(X + 2) == 1
    assert model.read_memory(RAM + 0x2000, 8) == (RAM + 0x2000).to_bytes(8, "little")


OTHERWISE = [
    {"pc": RAM + 2}, {"instr": 0x93}, {"next_pc": RAM}, {"registers": {X + 1: 9, X + 5: 0}}, {"registers": {X + 31: 8}},
    {"load": RAM}, {"load": RAM + 0x2001}, {"load": None}, {"store": None}, {"store": (RAM + 0x2000, 8, 1)},
    {"store": (RAM + 0x2000, 4, RAM + 0x2000)}, {"store": (RAM, 8, RAM + 0x2000)}, {"registers": {F + 4: 1}},
]  # fmt: skip


def test_it_stops_where_anything_is_another(spikes: dict[int, list[Spike]]) -> None:
    """In the step it is in, which is told as `step` tells it; the model is behind that one."""
    told, alone = spikes[64]
    for at in range(7):
        right = prepared(alone)
        steps = [alone.step() for _ in right]
        for other in OTHERWISE:
            wrong = prepared(told)
            wrong[at] = wrong[at]._replace(**other)  # type: ignore[arg-type]
            if wrong == right:
                continue
            assert told.run(wrong) == (at, steps[at]), other
            assert told.read_register(PC) == right[at].next_pc
            assert told.read_register(X + 1) == min(at + 7, 8)


def test_many_registers_are_read_at_once(spikes: dict[int, list[Spike]]) -> None:
    """As one by one; also those that the hart does not have."""
    model = spikes[64][0]
    prepared(model)
    numbers = [PC, X + 2, 0x7, MSTATUS, F + 4, X + 1, 0x5C0]
    assert model.read_registers(numbers) == [model.read_register(regno) for regno in numbers]
    assert model.read_registers(numbers)[1:4] == [RAM + 0x2000, None, model.read_register(MSTATUS)]


def test_steps_that_are_queued(spikes: dict[int, list[Spike]]) -> None:
    """They are executed if those before were as expected, and not at all otherwise."""
    model = spikes[64][0]
    right = prepared(model)
    model.queue(right[:2])
    model.queue(right[2:])
    assert model.executed() == (2, None) and model.executed() == (5, None)
    assert model.read_register(PC) == RAM + 26
    wrong = prepared(model)
    wrong[1] = wrong[1]._replace(registers={X + 1: 9})
    model.queue(wrong[:2])
    model.queue(wrong[2:])
    agreed, step = model.executed()
    assert agreed == 1 and step is not None and step.registers == {X + 1: 8}
    assert model.executed() == (0, None)
    assert model.read_register(PC) == RAM + 8
    assert model.run(right[2:]) == (5, None)


def test_a_question_waits_for_what_is_queued(spikes: dict[int, list[Spike]]) -> None:
    """Nobody has waited for it, as after Ctrl-C."""
    model = spikes[64][0]
    right = prepared(model)
    model.queue(right[:2])
    model.queue(right[2:4])
    assert model.read_register(X + 1) == 8
    assert model.run(right[4:]) == (3, None)


def test_a_trap_and_a_csr_are_never_as_expected(spikes: dict[int, list[Spike]]) -> None:
    model = spikes[64][0]
    for word in (0x00000073, 0x30046073, 0x00000000, 0x30200073):  # ecall, csrsi mstatus, illegal, mret
        model.reset()
        model.write_memory(RAM, word.to_bytes(4, "little"))
        model.write_register(PC, RAM)
        agreed, step = model.run([ExpectedStep(RAM, word, RAM + 4, {}), ExpectedStep(RAM + 4, NOP, RAM + 8, {})])
        assert agreed == 0 and step is not None and (step.trap is not None or step.registers)


def faulty(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """With wrong registers and stores, and a group that is missing."""
    found = list(groups)
    for fault in FAULTS:
        for at in range(100, len(groups), 9):
            found[at] = changed(found[at], fault) or found[at]
    del found[len(found) * 3 // 4]
    return tuple(found)


class Alone:
    """A model without what is optional."""

    def __init__(self, model: Model) -> None:
        for name in ("read_register", "write_register", "read_memory", "write_memory", "step", "reset"):
            setattr(self, name, getattr(model, name))


@pytest.mark.parametrize("name", ["flute_rv64ud-p-ldst", "piccolo_rv32um-p-div", "flute_rv64si-p-scall"])
def test_a_verifier_finds_the_same(spikes: dict[int, list[Spike]], name: str) -> None:
    """With faults in the trace: each divergence, each count."""
    reports = []
    tandem, program = with_groups(name, faulty(groups_of(name))), program_of(name)
    code = [*foreign_code(tandem, program), *program.segments]
    ahead, alone = spikes[parameters_of(name).xlen]
    for model in (ahead, Alone(alone)):
        verifier = Verifier(tandem, model, VerifyOptions(masks_of([]), every=100), program, code)  # type: ignore[arg-type]
        reports.append((list(verifier.run()), asdict(verifier.counts), verifier.refused))
    assert reports[0] == reports[1]
    assert len(reports[0][0]) > 3


def test_a_spike_that_dies_in_a_run(tmp_path: Path) -> None:
    """What it did is known, and the next question says how it ended."""
    home = Path(__file__).resolve().parents[3]
    program = (
        "import os, runpy, sys\n"
        f"sys.path.append({str(home)!r})\n"
        "import rvtrace_gdb.console.spike_worker.machine as machine\n"
        "run, executed, left = machine.SpikeMachine.run, machine.SpikeMachine._executed, []\n"
        "def armed(self, *expected):\n"
        "    left.append(5)\n"
        "    return run(self, *expected)\n"
        "def dying(self):\n"
        "    if left:\n"
        "        left[0] -= 1\n"
        "        left[0] or os._exit(3)\n"
        "    return executed(self)\n"
        "machine.SpikeMachine.run, machine.SpikeMachine._executed = armed, dying\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    (tmp_path / "dying.py").write_text(program)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/dying.py "$@"\n')
    python.chmod(0o755)
    model = spike(python=str(python))
    try:
        assert model.run(prepared(model)) == (4, None)
        for ask in (model.step, lambda: model.read_register(PC)):
            with pytest.raises(ModelFailed, match=r"^Spike, run by .*, ended with status 3"):
                ask()
        assert model.run(prepared_without_asking()) == (0, None)
    finally:
        model.close()


PATCHED = """
import runpy, sys
sys.path.append({home!r})
import rvtrace_gdb.console.spike_worker.commit_stream as commit_stream
commit_stream.{name} = {other}
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
"""


@pytest.mark.parametrize(("name", "other"), [("stream_of", "lambda *_: None"), ("_BUF_END", "commit_stream._BUF_BASE")])
def test_a_log_whose_buffer_is_not_found(name: str, other: str, tmp_path: Path) -> None:
    """It is read through a pipe, with the same lines."""
    home = str(Path(__file__).resolve().parents[3])
    (tmp_path / "patched.py").write_text(PATCHED.format(home=home, name=name, other=other))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/patched.py "$@"\n')
    python.chmod(0o755)
    model = spike(python=str(python))
    try:
        expected = prepared(model)
        wrong = [*expected[:5], expected[5]._replace(next_pc=RAM)]
        assert model.run(wrong) == (5, ModelStep(RAM + 20, NOP, RAM + 24, {}))
        assert model.run(expected[6:]) == (1, None)
    finally:
        model.close()


def prepared_without_asking() -> list[ExpectedStep]:
    return [ExpectedStep(RAM, ADDI, RAM + 4, {X + 1: 7})]


def test_the_simulated_hart_tells_every_change_of_a_csr() -> None:
    """Also back to what it held before it was written, and by a compressed load of a floating-point register."""
    model = open_model("simulated", None, RV64)
    code = b"".join(word.to_bytes(4, "little") for word in (0x3400_1073, 0x3400_1073))  # csrw mscratch,x0, twice
    model.write_memory(RAM, code + (0x2000).to_bytes(2, "little"))  # c.fld f8,0(x8)
    for regno, value in ((PC, RAM), (X + 8, RAM + 0x2000), (MSTATUS, 1 << 13)):
        model.write_register(regno, value)
    model.step()
    model.write_register(MSCRATCH, 5)
    assert model.step().registers == {MSCRATCH: 0}
    assert (model.step().registers[MSTATUS] & FS) == FS
