"""Triggers in several harts: each has its own, and its encoder goes on and off when that hart is there."""

from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.commands.test_start_filters import Places, listed, places
from tests.gdbext.commands.test_start_triggers import joined, slices
from tests.gdbext.runs_in_turn import said_in_turn
from tests.transport.simulated.harts import PROGRAMS, compiled

HARTS = 2
TO_THE_END = ["hbreak done", "continue", "continue"]
"""Each hart comes there once."""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("apart"), PROGRAMS / "apart.c")


BEGIN = 0x8000_0000
"""Where each hart begins."""


def last_start(log: Path) -> list[int]:
    """What a hart retired in the last run that was traced from the beginning: each begins at the same place."""
    pcs = retired_pcs(log)
    return pcs[len(pcs) - pcs[::-1].index(BEGIN) - 1 :]


def whole(elf: Path, folder: Path) -> list[list[int]]:
    """All that each hart executes up to there, and further; the same in every run."""
    said_in_turn(rig(elf, folder), {"": ["trace start", *TO_THE_END]})
    return [last_start(folder / f"log.{hart}") for hart in range(HARTS)]


def rig(elf: Path, folder: Path) -> Rig:
    return Rig(elf, folder / "rig", "--harts", str(HARTS), "--log-retired", str(folder / "log"))


EACH, SHOWS = "trace start -trigger-on first -trigger-off second", [f"trace history /a 1,{1000 + n}" for n in range(2)]
ONE = "trace start -hart 1 -trigger-off second"
FREE = [
    f"monitor targets sim.cpu{hart}; set_reg {{tselect 3}}; return [get_reg -force tdata1]" for hart in range(HARTS)
]
FREE_AGAIN = [command.replace("3}", "3} ") for command in FREE]


class Traced(NamedTuple):
    """Where functions are, what gdb said in each run, and all that each hart executes."""

    known: Places
    said: dict[str, dict[str, str]]
    retired: list[list[int]]


@pytest.fixture(scope="module")
def traced(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp("runs")
    of_each = [one for hart, show in enumerate(SHOWS) for one in (f"set trace hart {hart}", show)]
    runs = {
        "each": [EACH, *TO_THE_END, *of_each, "set trace hart"],
        "one": [ONE, *FREE, *TO_THE_END, SHOWS[0], "trace stop", *FREE_AGAIN],
        "whole": ["trace start", *TO_THE_END],
    }
    said = said_in_turn(rig(elf, folder), runs)
    return Traced(places(elf), said, [last_start(folder / f"log.{hart}") for hart in range(HARTS)])


def test_each_hart_by_itself(traced: Traced) -> None:
    known, said = traced.known, traced.said["each"]
    for hart, pcs in enumerate(traced.retired):
        wanted = slices(pcs, {known["first"][0]}, {known["second"][0]})
        assert len(wanted) == 4 + hart
        assert listed(said[SHOWS[hart]]) == joined(wanted)
        note = f"encoder{hart} begins to trace at {known['first'][0]:#x}, ends at {known['second'][0]:#x}\n"
        assert note in said[EACH]


def test_of_one_hart_alone(traced: Traced) -> None:
    known, said = traced.known, traced.said["one"]
    assert "encoder1 ends at" in said[ONE] and "encoder0 ends" not in said[ONE]
    assert listed(said[SHOWS[0]]) == joined(slices(traced.retired[1], set(), {known["second"][0]}))
    values = [said[line].split()[-1] for line in (*FREE, *FREE_AGAIN)]
    unused = "0x2000000000000000"
    assert [value == unused for value in values] == [True, False, True, True]
