"""Real gdb and real QEMU: gdb goes back in what QEMU's own log says ran, and in the present nothing has changed.

A trace of the log is made while the program stands at a breakpoint, as a user would do. What is expected comes from the
log, from objdump (`tests.endtoend.reverse.walk_model`) and from the source.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.endtoend.reverse.qemu_session import captures, ran
from tests.endtoend.reverse.walk_model import Code, Walk
from tests.gdbext.gdb_process import GDB, GDB16, NEWEST, SOURCE, run_gdb
from tests.helpers import qemu
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import HOME, compile_program

PROGRAMS = HOME / "tests" / "programs" / "reverse"
WHERE = "print $trace_pos"
RV64, RV32, NEW = "rv64imac_zicsr", "rv32imac_zicsr", GDB16 or GDB


class Machine:
    """A program that stopped at `finish`, gdb connected through rvtrace, and the capture of what ran opened."""

    def __init__(self, folder: Path, march: str = "rv64imac_zicsr", harts: int = 1) -> None:
        self.folder, self.harts = folder, harts
        sources = [PROGRAMS / "two_harts.c"] if harts > 1 else [PROGRAMS / "lines.c", PROGRAMS / "bare.S"]
        self.elf = compile_program(folder, *sources, march=march, options=("-DPERIOD=2",))
        self.code = Code(self.elf)
        self.log, self.capture = folder / "qemu.log", folder / "now.rvt"

    def captured(self) -> list[str]:
        """Commands: what ran by now is the past."""
        return [f"shell {captures(self.elf, self.log, self.folder, range(self.harts))}", f"trace open {self.capture}"]

    def run(self, commands: Sequence[str], gdb: str, **environ: str) -> dict[str, str]:
        """What gdb said; afterwards the log is that of this run."""
        with qemu.running(self.elf, self.folder, self.harts) as machine:
            begin = [SOURCE, f"trace connect :{machine.port}", "break finish", "continue", *self.captured()]
            return run_gdb(self.elf, [*begin, *commands, "kill"], gdb=gdb, **environ)

    def walk(self, pcs: list[int]) -> Walk:
        return Walk(self.code, pcs, frozenset([self.code.symbols["on_trap"]]))


def place(said: dict[str, str], nth: int) -> int:
    """What the *nth* print of $trace_pos said, counted from 1."""
    return int(said[numbered(nth)].split()[-1])


def numbered(nth: int) -> str:
    return WHERE + " " * nth


def with_places(commands: Sequence[str]) -> list[str]:
    """A print of $trace_pos behind each command."""
    return [one for nth, command in enumerate(commands, 1) for one in (command, numbered(nth))]


SESSION = [
    "reverse-stepi", "reverse-step", "reverse-next", "reverse-nexti", "break sum_to if $trace_pos < 900",
    "reverse-continue", "backtrace", "up", "frame 0", "reverse-finish", "delete", "finish", "next", "reverse-until",
    "until", "trace goto leaf", "backtrace ", "finish ", "trace goto begin", "break finish", "continue ",
    "print value", "stepi", "print value ", "CAPTURE", "reverse-stepi ", "print value  ", "continue  ", "stepi ",
]  # fmt: skip


TARGETS = [(RV32, NEW), *long_only((RV64, GDB), (RV32, GDB), (RV64, NEW), (RV64, NEWEST))]


@pytest.mark.parametrize(("march", "gdb"), TARGETS)
def test_a_session_with_every_command(march: str, gdb: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, march)
    commands = with_places(SESSION)
    i = commands.index("CAPTURE")
    commands[i : i + 1] = [command + " " for command in machine.captured()]
    said = machine.run(["set trace values off", *commands], gdb)
    at = dict(zip(SESSION, (place(said, nth) for nth in range(1, len(SESSION) + 1)), strict=True))
    all_pcs, symbols = ran(machine.log), machine.code.symbols
    pcs = all_pcs[: at["reverse-stepi"]]
    walk = machine.walk(pcs)
    assert machine.code.calls[pcs[-1]] and all_pcs[len(pcs)] == symbols["finish"]  # the call of finish ran last
    assert at["reverse-stepi"] > at["reverse-step"] > at["reverse-next"] > at["reverse-nexti"] > 0
    hit = at["reverse-continue"]
    assert hit == max(p + 1 for p, pc in enumerate(pcs) if pc == symbols["sum_to"] and p + 1 < 900)
    assert "Breakpoint" in said["reverse-continue"]
    calls = walk.called_at[hit - 1]
    frames = re.findall(r"^#\d+ .*?(\w+) \(", said["backtrace"], re.M)
    assert frames[0] == "sum_to" and frames[-2:] == ["round_of", "main"] and len(frames) == len(calls)  # not _start
    assert at["up"] == calls[-1] + 1 and at["frame 0"] == hit
    assert at["reverse-finish"] == calls[-1] + 1
    assert at["finish"] == walk.finish(calls[-1], 1) + 1
    assert at["trace goto leaf"] == max(p + 1 for p in range(at["until"] - 1) if pcs[p] == symbols["leaf"])
    assert at["finish "] == walk.finish(at["trace goto leaf"] - 1, 1) + 1
    assert at["trace goto begin"] == 1 and at["continue "] == -1
    assert re.fullmatch(r"\$\d+ = \d+\n", said["print value"]) and at["stepi"] == -1
    assert at["reverse-stepi "] == len(pcs) + 1 and all_pcs[len(pcs)] == symbols["finish"]
    assert "<unavailable>" in said["print value  "] or "optimized out" in said["print value  "]
    assert at["continue  "] == -1 and len(all_pcs) == len(pcs) + 2
    for command, output in said.items():
        assert "Traceback" not in output and "Python Exception" not in output, (command, output)


@thorough("test_a_session_with_every_command")
def test_what_the_log_does_not_have_yet_is_told(tmp_path: Path) -> None:
    """QEMU's log says that an instruction was entered: whether the last one retired, `rvtrace encode` leaves open."""
    machine = Machine(tmp_path)
    encode = captures(machine.elf, machine.log, tmp_path, [0]).replace("0.pcs --format pcs", str(machine.log))
    said = machine.run([f"shell {encode}", f"trace open {machine.capture} ", "reverse-stepi", WHERE], GDB)
    number = int(said[WHERE].split()[-1])
    pcs = ran(machine.log)
    assert number == len(pcs) - 1
    ends = f"The trace ends at {number}: what ran between there and where the program is now"
    assert f"{ends} ({machine.code.symbols['finish']:#x}) was not traced." in said["reverse-stepi"]


TWO = [
    "thread 1", "reverse-stepi", "thread 2", "reverse-stepi ", "reverse-stepi  ", "info threads", "thread 1 ",
    "reverse-stepi   ", "stepi", "thread 2 ", "trace goto begin", "thread 1  ", "continue ", "info threads ",
    "thread 2  ", "continue  ", "info threads  ", "thread 1   ", "print $sp", "reverse-stepi    ", "thread 2   ",
    "reverse-stepi     ", "trace live", "thread 1    ", "show scheduler-locking",
]  # fmt: skip


@pytest.mark.parametrize("gdb", [GDB, *long_only(NEW, NEWEST)])
def test_each_of_two_harts_has_its_place(tmp_path: Path, gdb: str) -> None:
    machine = Machine(tmp_path, harts=2)
    said = machine.run(with_places(TWO), gdb)
    first, second = (len(ran(machine.log, hart)) for hart in (0, 1))
    assert first > 300 and second > 300
    both = [-1, first, -1, second, second - 1, second - 1, first, first - 1, first, second - 1, 1, first]
    # each comes to its end by itself; they are in the present when both are there
    both += [first + 1, first + 1, 1, -1, -1, -1, -1, first, -1, second, -1, -1, -1]
    assert [place(said, nth) for nth in range(1, len(TWO) + 1)] == both
    for text in ("info threads", "info threads ", "info threads  "):
        assert re.search(r"^\* \d ", said[text], re.M) and len(re.findall(r"Thread 1\.[12] ", said[text])) == 2
    assert "finish (" in said["info threads  "] and "<unavailable>" not in said["print $sp"]
    assert '"replay"' in said["show scheduler-locking"]
    assert "Traceback" not in "".join(said.values())
