"""Triggers in several harts: each has its own, and its encoder goes on and off when that hart is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.commands.test_start_filters import places
from tests.gdbext.commands.test_start_triggers import connected, joined, listed, slices
from tests.gdbext.gdb_process import run_gdb
from tests.transport.simulated.harts import PROGRAMS, compiled

HARTS = 2
TO_THE_END = ["hbreak done", "continue", "continue"]
"""Each hart comes there once."""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("apart"), PROGRAMS / "apart.c")


def whole(elf: Path, folder: Path) -> list[list[int]]:
    """All that each hart executes up to there, and further; the same in every run."""
    with connected(Rig(elf, folder / "rig", "--harts", str(HARTS), "--log-retired", str(folder / "log"))) as begin:
        run_gdb(elf, [*begin, "trace start", *TO_THE_END])
    return [retired_pcs(folder / f"log.{hart}") for hart in range(HARTS)]


@pytest.fixture(scope="module")
def retired(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> list[list[int]]:
    return whole(elf, tmp_path_factory.mktemp("whole"))


@pytest.fixture
def begin(elf: Path, tmp_path: Path) -> Iterator[list[str]]:
    with connected(Rig(elf, tmp_path / "rig", "--harts", str(HARTS))) as commands:
        yield commands


def test_each_hart_by_itself(elf: Path, retired: list[list[int]], begin: list[str]) -> None:
    known = places(elf)
    shows = [f"trace history /a 1,{1000000 + hart}" for hart in range(HARTS)]
    start = "trace start -trigger-on first -trigger-off second"
    out = run_gdb(elf, [*begin, start, *TO_THE_END, "set trace hart 0", shows[0], "set trace hart 1", shows[1]])
    for hart, pcs in enumerate(retired):
        wanted = slices(pcs, {known["first"][0]}, {known["second"][0]})
        assert len(wanted) == 4 + hart
        assert listed(out[shows[hart]]) == joined(wanted)
        note = f"encoder{hart} begins to trace at {known['first'][0]:#x}, ends at {known['second'][0]:#x}\n"
        assert note in out[start]


def test_of_one_hart_alone(elf: Path, retired: list[list[int]], begin: list[str]) -> None:
    known = places(elf)
    free = [f"targets sim.cpu{hart}; set_reg {{tselect 3}}; return [get_reg -force tdata1]" for hart in range(HARTS)]
    start, show = "trace start -hart 1 -trigger-off second", "trace history /a 1,1000"
    asked = [f"monitor {line}" for line in free]
    out = run_gdb(elf, [*begin, start, *asked, *TO_THE_END, show, "trace stop", *(f"{line} " for line in asked)])
    assert "encoder1 ends at" in out[start] and "encoder0 ends" not in out[start]
    assert listed(out[show]) == joined(slices(retired[1], set(), {known["second"][0]}))
    values = [out[line].split()[-1] for line in asked] + [out[f"{line} "].split()[-1] for line in asked]
    unused = "0x2000000000000000"
    assert [value == unused for value in values] == [True, False, True, True]
