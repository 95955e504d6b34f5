"""The target loses power, or the probe its cable, under an OpenOCD that goes on and a gdb that is connected through
rvtrace: what was traced before is not lost. gdb goes back in it, lists and saves it.

Real gdb, real OpenOCD, simulated target. What is expected comes from what the hart itself says it retired.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import ROW, retired_pcs
from tests.endtoend.reverse.typed_gdb import Typed, beginning, power_off, typed, without_prompts
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import demo

ALL = "trace history /a 1,10000000"
GONE = "the target no longer reports its registers: going back works within the trace"
STAYS = "the target does not report its registers, so gdb stays in the past"
GDBS_OWN = "Could not read registers"


class Program(NamedTuple):
    """*pcs*: what runs until `finish`."""

    elf: Path
    pcs: list[int]


class Gone(NamedTuple):
    """A gdb at `finish` whose trace was read, and whose target is gone."""

    gdb: Typed
    program: Program

    def run(self, command: str) -> str:
        said = self.gdb.run(command)
        assert GDBS_OWN not in said, said
        return said

    def check(self, number: int) -> None:
        """That gdb is at this number."""
        pc = int(re.findall(r"= (0x[0-9a-f]+)", self.run("print/x $pc"))[-1], 16)
        assert (self.gdb.place(), pc) == (number, self.program.pcs[number - 1])

    def check_kept(self, folder: Path) -> None:
        """What was traced is listed, and saved."""
        capture = folder / "kept.rvt"
        assert listed(self.run(ALL)) == self.program.pcs
        assert f"to {capture}" in self.run(f"trace save {capture}")
        assert listed(run_gdb(self.program.elf, [SOURCE, f"trace open {capture}", ALL])[ALL]) == self.program.pcs


def listed(listing: str) -> list[int]:
    return [int(pc, 16) for _, pc in ROW.findall(without_prompts(listing))]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("whole")
    elf, log = demo(folder), folder / "retired"
    with Rig(elf, folder / "rig", "--log-retired", str(log)) as rig:
        run_gdb(elf, beginning(rig))
    return Program(elf, retired_pcs(log))


@contextmanager
def gone(program: Program, folder: Path) -> Iterator[Gone]:
    with Rig(program.elf, folder / "rig") as rig, typed(rig) as gdb:
        assert listed(gdb.run(ALL)) == program.pcs
        power_off(rig)
        yield Gone(gdb, program)


@thorough("endtoend/reverse/test_failures.py::test_openocd_dies_in_the_present")
def test_back_from_the_present(program: Program, tmp_path: Path) -> None:
    end = len(program.pcs)
    with gone(program, tmp_path) as session:
        assert session.run("reverse-stepi").count(GONE) == 1
        session.check(end)
        session.run("reverse-stepi")
        session.check(end - 1)
        session.run("break classify")
        assert "Breakpoint 2, classify" in session.run("reverse-continue")
        assert re.search(r"#1 .* in main \(\)", session.run("backtrace"))
        session.run("trace goto begin")
        session.check(1)
        session.run("delete 2")
        for forward in ("continue", "trace live"):
            assert STAYS in session.run(forward)
            session.check(end)
        session.check_kept(tmp_path)
        assert session.gdb.said.count(GONE) == 1


@thorough("test_gdb_has_no_registers_any_more")
def test_a_command_that_fails_before_it_goes_back(program: Program, tmp_path: Path) -> None:
    """The present would be of no use: gdb stays at the end of the past, where it has what the target said last."""
    end = len(program.pcs)
    with gone(program, tmp_path) as session:
        assert 'No symbol "nosuch" in current context.' in session.run("reverse-next nosuch")
        assert session.gdb.place() == end + 1
        assert "<finish>" in session.run("print $pc") and "= 257735" in session.run("print value")
        session.run("reverse-stepi")
        session.check(end)


@pytest.mark.parametrize("command", ["reverse-stepi", *long_only("trace goto -1")])
def test_gdb_has_no_registers_any_more(program: Program, command: str, tmp_path: Path) -> None:
    """But the target's last answer is known."""
    end = len(program.pcs)
    with gone(program, tmp_path) as session:
        assert GDBS_OWN in session.gdb.run("maintenance flush register-cache")
        session.gdb.run(command)
        session.check(end)
        assert session.run("echo").count(GDBS_OWN) == 0
