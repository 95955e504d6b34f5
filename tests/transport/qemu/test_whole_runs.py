"""`rvtrace qemu -o`: all that ran from reset to the end, by both sources, as QEMU's log of another run has it."""

import subprocess
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.session.capture import file as capture_file
from tests.helpers.amounts import LONG, thorough
from tests.helpers.cross_compiler import HOME, compile_program, symbol_address
from tests.helpers.started_python import rvtrace
from tests.transport.qemu.machine import arguments, histories, logged, recorded, same, ticks

MARCHES = ("rv64imac_zicsr", "rv32imac_zicsr")
SOURCES = ("plugin", "log")


class Program:
    """*ran*: by the log, which has traps of all kinds that are asked for."""

    def __init__(self, folder: Path, march: str) -> None:
        self.folder = folder
        self.elf = ticks(folder, march, "-DPATCHING")
        (self.ran,) = logged(self.elf)
        self.finish = symbol_address(self.elf, "finish")


@pytest.fixture(scope="module", params=MARCHES)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path_factory.mktemp("program"), request.param)


def test_the_program_does_what_is_hard(program: Program) -> None:
    """What the other tests rest on: interrupts within loops, faults in the middle of blocks, code that changes."""
    kinds = [(interrupt, cause) for _, interrupt, cause in program.ran.traps]
    assert kinds.count((True, 7)) > 20 and kinds.count((False, 11)) == 20 and kinds.count((False, 5)) == 20
    assert program.ran.pcs.count(symbol_address(program.elf, "patched")) == 20


@pytest.mark.parametrize("source", SOURCES)
def test_every_instruction_and_trap(program: Program, source: str) -> None:
    found, said = recorded(program.elf, program.folder, "--source", source)
    assert list(found.histories) == [0]
    same(found.histories[0], program.ran, to=program.finish)
    assert "instructions are in" in said


@pytest.mark.parametrize("options", [["--etrace"], ["--context", "--quiet"]], ids=lambda it: it[0])
def test_other_encoders(program: Program, options: list[str]) -> None:
    found, said = recorded(program.elf, program.folder, *options)
    same(found.histories[0], program.ran, to=program.finish)
    assert ("rvtrace" in said) != ("--quiet" in options)


_MEASURED = """
import sys
from rvtrace_gdb.console.main import main
status = main(sys.argv[1:])
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM:")).split()[1], file=sys.stderr)
sys.exit(status)
"""
"""The peak of the program itself: what getrusage says is at least that of the tests, which started it."""


def peak(folder: Path, rounds: int, source: str) -> tuple[int, int]:
    """KiB of memory that rvtrace needed for a run, and how many instructions ran. With a ring that is full in each:
    how much of a larger one is used depends on how busy the machine is.
    """
    elf = ticks(folder, MARCHES[0], f"-DROUNDS={rounds}")
    file = folder / f"{rounds}.rvt"
    words = ["qemu", "--source", source, "-o", str(file), "--elf", str(elf), "--ring", "64K", "--", *arguments(elf)]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *words], cwd=HOME, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ran = next(line for line in done.stderr.splitlines() if "instructions are in" in line)
    return int(done.stderr.split()[-1]), int(ran.split("rvtrace qemu: ")[1].split()[0])


@thorough("decode/check/test_long_traces.py::test_memory_does_not_grow")
@pytest.mark.parametrize(("source", "longer"), [("plugin", 1000 if LONG else 200), ("log", 250 if LONG else 50)])
def test_a_long_run_needs_no_more_memory(tmp_path: Path, source: str, longer: int) -> None:
    short, few = peak(tmp_path, 10, source)
    long, many = peak(tmp_path, longer, source)
    assert many > 1000 * longer, "each round takes more than that, however long the program then waits for its end"
    assert long < short + 4096, f"{long} KiB for {many} instructions, {short} KiB for {few}"
    assert capture_file.load(tmp_path / f"{longer}.rvt").sinks[0].data
    assert not histories(tmp_path / f"{longer}.rvt").histories[0].gaps


@pytest.mark.parametrize(
    ("icount", "source"), [(False, "plugin"), (True, "plugin"), (True, "log")], ids=["threads", "in-turn", "log"]
)
def test_two_harts(tmp_path: Path, icount: bool, source: str) -> None:
    """Without -icount QEMU runs harts at the same time, with it on one thread, where it gives a plugin wrong numbers of
    harts. What each does here does not depend on the other.
    """
    elf = compile_program(tmp_path, HOME / "tests" / "programs" / "qemu" / "pair.c")
    expected = logged(elf, "-smp", "2")
    file = tmp_path / "pair.rvt"
    words = arguments(elf, "-smp", "2", icount=icount)
    done = rvtrace("qemu", "--source", source, "-o", str(file), "--elf", str(elf), "--", *words)
    assert done.returncode == 0, done.stderr
    found = histories(file).histories
    assert sorted(found) == [0, 1]
    for hart, name in enumerate(("first", "second")):
        same(found[hart], expected[hart], to=symbol_address(elf, name), beyond=False)  # there one waits for the other
