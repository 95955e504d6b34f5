"""The recorder of the simulated hart against the independent model, on whole programs and with all settings.

The model (tests/ctr_model/model.py) was written from the documents by itself, decodes the program's bytes itself, and
is compared with QEMU 10's recorder elsewhere. What it is told here is what the hart retired, not what the recorder saw.
"""

import random
from itertools import product
from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from tests.ctr_model import programs
from tests.ctr_model.model import Model
from tests.helpers.amounts import LONG, crossed
from tests.helpers.cross_compiler import compile_program, demo
from tests.transport.simulated.ctr.program_run import CONTROL, HIGH, STATUS, Followed
from tests.transport.simulated.encoder.traces import compiled
from tests.transport.simulated.hart.programs import build

DATA = Path(__file__).resolve().parents[3] / "data"
HARD = Path(__file__).resolve().parents[3] / "programs" / "hard"
RISCV_TESTS = sorted(path for path in (DATA / "riscv-tests").iterdir() if "-p-" in path.name)
BENCHMARKS = ("dhrystone", "mt-matmul", "qsort", "rsort")
VERSIONS = ("1.0", "0.1.4")
FILTERS = 0xFF3E << 32
# M and U enables, RASEMU, xTE, freezing, filters: what a hart with M and U mode has (1.0: with S and STE besides).
WRITABLE = {"1.0": FILTERS | 0x1B87, "0.1.4": FILTERS | 1 << 38 | 0xF << 16 | 0x1D05}
MODES = {"1.0": 0b101, "0.1.4": 0b101}  # M and U
RASEMU = {"1.0": 1 << 7, "0.1.4": 1 << 10}
EXTERNAL = {"1.0": 1 << 8 | 1 << 9, "0.1.4": 1 << 8 | 1 << 38}
DRAFT_DEPTHS = (0b0000, 0b0001, 0b0011, 0b0111, 0b1111)

both = pytest.mark.parametrize("version", VERSIONS)


def control(version: str, chance: random.Random) -> int:
    """Any setting, the likely ones often: nearly all on, one filter or some, RAS emulation in a third of all cases."""
    value = chance.choice([MODES[version]] * 3 + [0b001, 0b100, 0b000])
    value |= chance.choice([0, 0, chance.getrandbits(64), 1 << chance.randrange(33, 48)]) & FILTERS
    value |= 1 << 36 if chance.random() < 0.5 else 0
    value |= RASEMU[version] if chance.random() < 0.3 else 0
    value |= EXTERNAL[version] if chance.random() < 0.5 else 0
    value |= chance.choice([0, 0, 1 << 11, 1 << 12])
    return value


def settings(target: Followed, version: str, chance: random.Random) -> None:
    """A debugger changes something between two runs."""
    value, depth = control(version, chance), chance.randrange(5)
    if version == "1.0":
        target.write(0x15F, depth)
    else:
        value |= DRAFT_DEPTHS[depth] << 16 | (1 << 7 if chance.random() < 0.2 else 0)
        if target.hart.xlen == 32:
            target.write(HIGH, value >> 32)
    target.write(CONTROL[version], value & (1 << target.hart.xlen) - 1)
    if chance.random() < 0.7:
        target.write(STATUS[version], chance.randrange(256))


def check(elf: Path, version: str, *, extensions: str = "IMAFDC", steps: int = 8, instructions: int = 400) -> int:
    """Run with changing settings, and compare at each change. Returns the records that were compared."""
    chance = random.Random(f"{elf.name} {version}")
    bits = chance.randrange(5)
    target = Followed(elf, CtrBuild(version, exponent_bits=bits), extensions)
    model = Model(elf, version, writable=WRITABLE[version], exponent_bits=bits)
    compared = 0
    for _ in range(steps):
        settings(target, version, chance)
        target.run(chance.randrange(1, 2 * instructions), chance.choice([1, 7, 1000]))
        compared += sum(source & 1 for source, _, _ in target.compare(model))
    return compared


@pytest.mark.parametrize(
    ("round", "version_march"), crossed(range(4), list(product(VERSIONS, ("rv32imac", "rv64imac"))))
)
def test_a_kernel_with_a_user_program(tmp_path: Path, version_march: tuple[str, str], round: int) -> None:
    """System calls, exceptions, timer interrupts, all kinds of jumps in M and U mode."""
    version, march = version_march
    elf = compiled(tmp_path, march).rename(tmp_path / f"round{round}.elf")
    assert check(elf, version, extensions="IMAC", steps=25) > 50


@both
@pytest.mark.parametrize("march", ["rv32imac_zicsr", "rv64gc"])
def test_the_demo(tmp_path: Path, version: str, march: str) -> None:
    check(demo(tmp_path, march), version)


@both
@pytest.mark.parametrize(
    ("name", "march"),
    [("interrupts.S", "rv64imac"), ("traps.S", "rv64imac"), ("traps.S", "rv32imac"), ("misaligned_jumps.S", "rv64ima")],
)
def test_traps(tmp_path: Path, version: str, name: str, march: str) -> None:
    check(build(tmp_path, name, march=march), version, extensions=march[4:].upper(), instructions=100)


@both
@pytest.mark.parametrize("name", ["nested_traps.S", "bad_jumps.S"])
def test_hard_programs(tmp_path: Path, version: str, name: str) -> None:
    check(compile_program(tmp_path, HARD / name), version, extensions="IMAC")


@pytest.mark.parametrize(("name", "version"), crossed(BENCHMARKS, VERSIONS))
def test_benchmarks(version: str, name: str) -> None:
    assert check(DATA / "ntrace-reference" / f"{name}.elf", version, instructions=2000) > 100


@both
def test_programs_of_another_suite(version: str) -> None:
    """Each with one version of the two; in the long run with both."""
    programs = RISCV_TESTS if LONG else RISCV_TESTS[VERSIONS.index(version) :: 2]
    compared = sum(check(elf, version, steps=12, instructions=40) for elf in programs)
    assert compared > 40 * len(programs)


@both
@pytest.mark.parametrize(("name", "xlen"), [("jumps", 64), ("depths", 64), ("ras", 64), ("small", 32)])
def test_programs_that_set_up_ctr_themselves(tmp_path: Path, version: str, name: str, xlen: int) -> None:
    elf = programs.build(tmp_path, name, version, f"rv{xlen}imac_zicsr")
    target = Followed(elf, CtrBuild(version), "IMAC")
    model = Model(elf, version, writable=WRITABLE[version], exponent_bits=4)
    compared = 0
    for _ in range(300 if LONG else 100):
        target.run(7 if LONG else 21)
        compared += sum(source & 1 for source, _, _ in target.compare(model))
    assert compared > (300 if LONG else 100)
