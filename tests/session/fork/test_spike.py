"""A fork in which a variable or a register was changed does what Spike does with it."""

import struct
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.image import read_elf
from rvtrace_gdb.session.fork.fork import ForkedHart
from tests.helpers.cross_compiler import symbol_address
from tests.helpers.spike import needs_spike
from tests.session.fork.runs import ForkRun, fork_run, opened
from tests.transport.simulated.hart.spike import Commit, run_spike

SOURCE = Path(__file__).with_name("choice.c")
STEPS = 700


@pytest.fixture(scope="module", params=["rv64imac_zicsr", "rv32imac_zicsr"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ForkRun:
    return fork_run(tmp_path_factory.mktemp("choice"), request.param, STEPS, SOURCE)


def commits(elf: Path, folder: Path) -> list[Commit]:
    return [step for step in run_spike(elf, folder, "IMAC", steps=STEPS).steps if isinstance(step, Commit)]


def with_limit(run: ForkRun, limit: int) -> Path:
    """The program with another initial value of `limit`."""
    address = symbol_address(run.elf, "limit")
    segment = next(it for it in read_elf(str(run.elf)).segments if 0 <= address - it.vaddr < len(it.data))
    image = run.elf.read_bytes()
    at = image.index(segment.data) + address - segment.vaddr
    assert image[at : at + 4] == struct.pack("<I", 5)
    changed = run.elf.with_name("changed.elf")
    changed.write_bytes(image[:at] + struct.pack("<I", limit) + image[at + 4 :])
    return changed


@needs_spike
@pytest.mark.parametrize("name", ["tandem", "ntrace"])
def test_a_changed_variable(run: ForkRun, name: str, tmp_path: Path) -> None:
    expected = commits(with_limit(run, 11), tmp_path)
    it = opened(run.files[name])
    place = run.witness.pcs.index(symbol_address(run.elf, "main"))
    fork = ForkedHart(it.past, it.selected, it.capture, place)
    assert fork.write_memory(symbol_address(run.elf, "limit"), struct.pack("<I", 11))
    pcs = [step.pc for step in expected[place:]]
    assert pcs != run.witness.pcs[place : place + len(pcs)], "it makes a difference"
    for step, after in zip(expected[place:], pcs[1:], strict=False):
        assert fork.hart.pc == step.pc and fork.hart.advance(1) == 1
        for number, value in step.x.items():
            assert fork.registers().get(f"x{number}") == value & (1 << fork.hart.xlen) - 1
        assert fork.hart.pc == after


@needs_spike
def test_a_changed_register(run: ForkRun, tmp_path: Path) -> None:
    """The argument of the first call of mixed is what main passes in the fifth one: what it returns is the same."""
    steps = commits(run.elf, tmp_path)
    entry = symbol_address(run.elf, "mixed")
    places = [n for n, step in enumerate(steps) if step.pc == entry]
    x = dict.fromkeys(range(32), 0)
    arguments = []
    for n, step in enumerate(steps):
        if n in places:
            arguments.append(x[10])
        x |= step.x
    it = opened(run.files["ntrace"])
    fork = ForkedHart(it.past, it.selected, it.capture, places[0])
    fork.set_register(0x1000 + 10, arguments[4])
    later = steps[places[4] :]
    for step in later:
        if step.pc != fork.hart.pc:
            break
        fork.hart.advance(1)
    returned = next(n for n, step in enumerate(later) if step.pc == fork.hart.pc or n > 50)
    assert fork.registers()["a0"] == next(step.x[10] for step in reversed(later[: returned + 9]) if 10 in step.x)
