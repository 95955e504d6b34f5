"""Real gdb, OpenOCD and simulated target: why the trap was taken in whose handler the hart stands is in no N-Trace;
it is read from the hart. What is expected is what gdb prints of the hart's registers.

tests/session/test_trap_causes.py has the cases in which nothing is shown, tests/session/sources/test_ctr.py those of
Control Transfer Records.
"""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.csrs import trap_text
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import HOME, compile_program

MARK = ", read from the hart"
REGISTERS = "info registers mcause mtval"
LAST = "trace events trap 1,100"
TRAP = re.compile(r"^\d+\t@\d+\t\S+ <on_trap\+0>:\ttrap: (.*), at \S+ <(\w+)\+\d+>(?:, time \d+)?; trace byte", re.M)


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    return compile_program(folder, HOME / "tests" / "programs" / "trap_causes.c", march="rv64ima_zicsr")


def run(rig: Rig, start: str, stops: int, then: list[str]) -> dict[str, str]:
    """What gdb printed: at a stop in a handler, each command has as many blanks behind it as stops came before."""
    commands = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}", start]
    commands += ["set trust-readonly-sections on", "break entered", "break nested"]
    commands += [look + " " * number for number in range(stops) for look in ("continue", LAST, REGISTERS)]
    return run_gdb(rig.elf, [*commands, *then])


def expected(said: dict[str, str], number: int) -> str:
    """The words for what gdb prints of the registers."""
    cause, value = (int(it, 16) for it in re.findall(r"^m\w+ +(0x[0-9a-f]+)", said[REGISTERS + " " * number], re.M))
    return trap_text(cause & (1 << 63) - 1, bool(cause >> 63)) + (f", tval 0x{value:x}" if value else "") + MARK


def test_ntrace(elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also in a capture, at the shell, and of a trace that was stopped before the hart ran on."""
    saved = [tmp_path / "in_handler.rvt", tmp_path / "stopped.rvt"]
    then = ["trace history 1,1000", "trace functions 1,100", f"trace save {saved[0]}", "trace stop", "delete"]
    then += ["break returned", "continue\t", f"{LAST}\t", f"trace save {saved[1]}"]
    with Rig(elf, tmp_path / "rig") as rig:
        said = run(rig, "trace start", 6, then)
    causes = [expected(said, number) for number in range(6)]
    assert len(set(causes)) == 5, "two are of an illegal instruction"
    for number, hit in enumerate(["illegal", "load_fault", "call", "interrupt", "illegal", "on_trap"]):
        *before, last = TRAP.findall(said[LAST + " " * number])
        assert last == (causes[number], hit)
        assert len(before) == number and {text for text, _ in before} <= {"exception", "interrupt"}
    assert f"on_trap [{causes[-1]}]\n" in said["trace functions 1,100"]
    assert f"\t     [{causes[-1]}, at 0x" in said["trace history 1,1000"]
    assert "Breakpoint 3, returned" in said["continue\t"]
    assert TRAP.findall(said[f"{LAST}\t"])[-1] == (causes[-1], "on_trap")
    for capture in saved:
        assert main(["events", str(capture), "--kind", "trap"]) == 0
        assert TRAP.findall(capsys.readouterr().out)[-1] == (causes[-1], "on_trap")
