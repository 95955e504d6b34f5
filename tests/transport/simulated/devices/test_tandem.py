"""The tandem port of the simulated hart: the trace, decoded, is the hart's own state after every step."""

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.encoder import Forms
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, FPR, GPR, STORE_DATA, MemoryOp, MemoryRequest, StateId
from rvtrace_gdb.transport.simulated.devices.tandem import Addresses
from tests.decode.tandem.corpus import Step, golden_steps
from tests.helpers.amounts import LONG, long_only
from tests.transport.simulated.devices.tandem_port import CSRS, Ported, Snapshot, differences, memory_differences
from tests.transport.simulated.hart.programs import build
from tests.transport.simulated.harts import compiled

DATA = Path(__file__).resolve().parents[3] / "data"
# Those every run has differ in their instructions, and in the dialect, forms and addresses `random_build` gives them.
SEVERAL = {
    "rv32mi-p-breakpoint", "rv32mi-p-csr", "rv32ua-p-lrsc", "rv32ui-p-sb", "rv32um-p-div", "rv32-irq",
    "rv64mi-p-illegal", "rv64mi-p-ma_addr", "rv64si-p-scall", "rv64ua-p-amoadd_d", "rv64uc-p-rvc", "rv64ud-p-fadd",
    "rv64ud-p-ldst", "rv64uf-p-fadd", "rv64ui-p-sd",
}  # fmt: skip
RISCV_TESTS = sorted(
    path for path in (DATA / "riscv-tests").iterdir() if path.suffix != ".md" and (LONG or path.name in SEVERAL)
)
STEPS = 240
EXACT = ("specification", "flute", "piccolo", "piccolo-2018", "toooba")
"""Dialects that lose nothing."""
DATA0, DATA1, COMMAND, DMCONTROL = 0x04, 0x05, 0x17, 0x10
SBCS, SBADDRESS0, SBDATA0, SBDATA1 = 0x38, 0x39, 0x3C, 0x3D
HALTREQ, RESUMEREQ, NDMRESET, DMACTIVE = 1 << 31, 1 << 30, 2, 1
MRET = 0x3020_0073
STEP, STEPIE = 1 << 2, 1 << 11
DPC, DCSR, MSCRATCH, FCSR = 0x7B1, 0x7B0, 0x340, 0x003


def random_build(name: str) -> dict[str, Any]:
    """Any forms the document allows, always the same of a program."""
    rng = random.Random(name)
    return {
        "dialect": DIALECTS[rng.choice(EXACT)],
        "forms": Forms(*(rng.random() < 0.5 for _ in Forms.__dataclass_fields__)),
        "addresses": rng.choice(list(Addresses)),
        "pc_physical": rng.random() < 0.3,
    }


def stepped(ported: Ported, steps: int = STEPS, size: int = 1) -> list[Snapshot]:
    """Before, and after each step: *size* instructions or traps."""
    snapshots = [ported.snapshot()]
    for _ in range(steps):
        ported.machine.run_slice(size)
        snapshots.append(ported.snapshot())
    return snapshots


def test_each_dialect_and_kind_of_address_is_given_to_a_program() -> None:
    builds = [random_build(elf.name) for elf in RISCV_TESTS]
    assert {build["dialect"].name for build in builds} == {DIALECTS[name].name for name in EXACT}
    assert {build["addresses"] for build in builds} == set(Addresses)
    assert {build["pc_physical"] for build in builds} == {False, True}
    for form in Forms.__dataclass_fields__:
        assert {getattr(build["forms"], form) for build in builds} == {False, True}, form


@pytest.mark.parametrize("elf", RISCV_TESTS, ids=lambda path: path.name)
def test_state_after_every_step_is_the_harts_own(elf: Path) -> None:
    ported = Ported(elf, **random_build(elf.name))
    snapshots = stepped(ported)
    found = ported.decoded()
    assert found.history.accounting.skipped == 0 and not list(found.trace.flaws()) and not list(found.index.breaks)
    assert differences(found, snapshots) == []
    assert memory_differences(found, ported, len(found.trace) - 1) == []
    retired = [before.pc for before, after in pairwise(snapshots) if after.retired > before.retired]
    assert list(found.history.pcs()) == retired


@pytest.mark.parametrize("march", ["rv64imafdc", *long_only("rv32imac")])
def test_interrupts_and_sleep(march: str, tmp_path: Path) -> None:
    """Timer and software interrupts in M and U mode, WFI; mip is told when it changes."""
    ported = Ported(build(tmp_path, "interrupts.S", march=march), extensions=march[4:].upper())
    snapshots = stepped(ported, 150, 140)
    found = ported.decoded()
    assert differences(found, snapshots) == []
    interrupts = [trap for trap in found.index.traps if trap.interrupt]
    assert {trap.cause for trap in interrupts} == {3, 7} and len(interrupts) > 3
    assert {snapshot.privilege for snapshot in snapshots} == {0, 3}
    assert found.after(len(found.trace) - 1).mtime is not None


@pytest.mark.parametrize(
    ("name", "elf"),
    [("flute_rv64ui-p-add", "rv64ui-p-add"), ("flute_rv64ud-p-fadd", "rv64ud-p-fadd"),
     ("flute_rv64ua-p-amoadd_d", "rv64ua-p-amoadd_d"), ("flute_rv64uc-p-rvc", "rv64uc-p-rvc"),
     ("flute_rv64ui-p-sd", "rv64ui-p-sd"), ("piccolo_rv32um-p-div", "rv32um-p-div")],
)  # fmt: skip
def test_agrees_with_spike(name: str, elf: str) -> None:
    """From where the test itself begins: before, Spike has S-mode to set up, and this hart has none. Of floating-point
    exceptions Spike's log has fflags.
    """
    ported = Ported(DATA / "riscv-tests" / elf)
    ported.machine.run_slice(1000)
    found = ported.decoded()
    spike = [step for step in golden_steps(name) if step.cause is None]
    begins = 1 + next(number for number, step in enumerate(spike) if step.word == MRET)
    ours = [told(found, position) for position in range(len(found.history))]
    ours = ours[1 + next(number for number, step in enumerate(ours) if step[1] == MRET) :]
    theirs = [as_told(step) for step in spike[begins : begins + 400]]
    length = min(len(ours), len(theirs))
    assert length > 30 and ours[:length] == theirs[:length]


def told(found: DecodedTandem, position: int) -> tuple[object, ...]:
    """Of an instruction: address, word, registers, store data."""
    group = found.trace.group(found.group_of(position))
    xs = {n - GPR: value for n, value in group.registers.items() if GPR <= n < FPR}
    fs = {n - FPR: value for n, value in group.registers.items() if n >= FPR}
    stored = {size: group.state(state) for state, size in STORE_DATA.items() if group.state(state) is not None}
    stores = [(group.state(StateId.EFFECTIVE_ADDRESS), (data or 0).to_bytes(n, "little")) for n, data in stored.items()]
    assert group.instr is not None
    return found.before(position).pc, group.instr.word, xs, fs, stores


def as_told(step: Step) -> tuple[object, ...]:
    return step.pc, step.word, step.x, step.f, step.stores


def test_what_a_debugger_writes(tmp_path: Path) -> None:
    """Registers by abstract commands, memory by system bus access, pc and privilege; then the hart goes on with it."""
    ported = Ported(DATA / "riscv-tests" / "rv64ud-p-ldst", dialect=DIALECTS["flute"])
    module = ported.machine.debug_module
    ported.machine.run_slice(50)
    module.write(DMCONTROL, HALTREQ | DMACTIVE)
    values = {GPR + 10: 0x1234_5678_9ABC_DEF0, FPR + 3: 0x4000_0000_0000_0001, MSCRATCH: 77, FCSR: 0x85}
    for regno, value in values.items():
        write_register(ported, regno, value)
    write_register(ported, DPC, 0x8000_0100)
    write_register(ported, DCSR, 0)  # on in U mode
    module.write(SBCS, 3 << 17)
    module.write(SBADDRESS0, 0x8000_2000)
    module.write(SBDATA1, 0x0102_0304)
    module.write(SBDATA0, 0x0506_0708)
    halted = ported.decoded()
    state = halted.after(len(halted.trace) - 1)
    assert {regno: state.register(regno) for regno in values} == values
    assert bytes(byte or 0 for byte in state.memory(0x8000_2000, 8)) == (0x0102_0304_0506_0708).to_bytes(8, "little")
    assert state.pc == 0x8000_0100 and state.privilege == 0 and state.csr(CSRS["fflags"]) == 5
    module.write(DMCONTROL, RESUMEREQ | DMACTIVE)
    snapshots = stepped(ported, 20)
    assert differences(ported.decoded(), snapshots) == []
    assert snapshots[0].pc == 0x8000_0100 and snapshots[0].privilege == 0


def test_single_steps_of_a_debugger(tmp_path: Path) -> None:
    """All of a step is told when the hart stands again, also when the step was an interrupt (dcsr.stepie)."""
    ported = Ported(build(tmp_path, "interrupts.S", march="rv64imafdc"))
    module = ported.machine.debug_module
    ported.machine.run_slice(100)
    module.write(DMCONTROL, HALTREQ | DMACTIVE)
    write_register(ported, DCSR, STEP | STEPIE | 3)
    snapshots = []
    for _ in range(150):
        module.write(DMCONTROL, RESUMEREQ | DMACTIVE)
        snapshots.append(ported.snapshot()._replace(pc=ported.hart.csr_read(DPC, debug=True)))
    found = ported.decoded()
    assert differences(found, snapshots) == [] and any(trap.interrupt for trap in found.index.traps)


def write_register(ported: Ported, regno: int, value: int) -> None:
    module = ported.machine.debug_module
    module.write(DATA0, value & 0xFFFF_FFFF)
    module.write(DATA1, value >> 32)
    module.write(COMMAND, 3 << 20 | 3 << 16 | regno)


def test_a_reset(tmp_path: Path) -> None:
    """Registers keep their values, and so does memory; CSRs do not."""
    ported = Ported(DATA / "riscv-tests" / "rv64ui-p-sd")
    ported.machine.run_slice(300)
    ported.machine.debug_module.write(DMCONTROL, NDMRESET | DMACTIVE)
    ported.machine.debug_module.write(DMCONTROL, DMACTIVE)
    snapshots = stepped(ported, 40)
    found = ported.decoded()
    assert len(found.index.resets) == 2 and differences(found, snapshots) == []
    assert snapshots[0].pc == ported.hart.reset_pc and any(snapshots[0].x) and snapshots[0].csrs["mtvec"] == 0
    assert memory_differences(found, ported, len(found.trace) - 1) == []


def test_several_harts_know_of_each_others_stores(tmp_path: Path) -> None:
    """mip apart, which a hart is told of when it executes next."""
    ported = Ported(compiled(tmp_path), harts=2, extensions="IMAC")
    for _ in range(40):
        ported.machine.run_slice(1)
    for hart in range(2):
        found = ported.decoded(hart)
        snapshot = ported.snapshot(hart)
        del snapshot.csrs["mip"]
        assert differences(found, [snapshot]) == [] and len(found.history) == ported.machine.harts[hart].instret > 1000
        assert memory_differences(found, ported, len(found.trace) - 1) == []


def test_memory_requests_of_every_kind(tmp_path: Path) -> None:
    """Atomic operations are told as such, with the operand and the old value; fetches, too."""
    ported = Ported(DATA / "riscv-tests" / "rv64ua-p-amoadd_d", forms=Forms(memory=True, fetch=True))
    ported.machine.run_slice(200)
    found = ported.decoded()
    requests = [e.op for group in found.trace.groups() for e in group.elements if isinstance(e, MemoryRequest)]
    assert {MemoryOp.INSTRUCTION_FETCH, MemoryOp.STORE, MemoryOp.LOAD, MemoryOp.AMO_ADD} <= set(requests)
    assert requests.count(MemoryOp.INSTRUCTION_FETCH) >= len(found.history)


def test_nothing_is_told_without_a_port() -> None:
    """And nothing is slower: the hart runs whole blocks."""
    ported = Ported(DATA / "riscv-tests" / "rv64ui-p-add")
    size = len(ported.traces[0])
    ported.hart.witness = None
    ported.hart.retired = []
    ported.machine.run_slice(100)
    assert len(ported.traces[0]) == size and any(getattr(block, "n", 1) > 1 for block in ported.hart.retired or ())
