"""`set trace disassemble-counts` in the real gdb: counts are those of the list of what the hart retired."""

import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.commands.coverage_output import INSTRUCTION, count, traced
from tests.gdbext.commands.test_dump import ELF, STREAM, imported
from tests.gdbext.gdb_process import NEWEST_GDB, SOURCE, newest_gdb, run_gdb
from tests.gdbext.tui.test_window import gdb as in_terminal
from tests.helpers import reference_streams
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo

FUNCTIONS = ("fib", "classify", "main", "add", "on_trap", "finish", "_start")
ON, OFF = "set trace disassemble-counts on", "set trace disassemble-counts off"
SHOUTS = """python
import gdb.disassembler
class Shouts(gdb.disassembler.Disassembler):
    def __init__(self): super().__init__("shouts")
    def __call__(self, info):
        result = gdb.disassembler.builtin_disassemble(info)
        return gdb.disassembler.DisassemblerResult(result.length, result.string.upper())
gdb.disassembler.register_disassembler(Shouts(), None)
end
"""


INTERRUPTS = """python
import sys
[module] = [module for name, module in sys.modules.items() if name.endswith("rvtrace_gdb.gdbext.disassembly")]
times = []
def interrupted(self, pc, length, text):
    times.append(pc)
    if len(times) == 3:
        raise KeyboardInterrupt
    return "", ""
module.InstructionCounts.around = interrupted
end
"""


def run(capture: Path, *commands: str) -> dict[str, str]:
    """What a gdb of its own prints: settings and disassemblers stay what they are in the next test."""
    return run_gdb(ELF, [SOURCE, f"trace open {capture}", *commands])


class Session(NamedTuple):
    elf: Path
    said: dict[str, str]
    retired: list[int]


@pytest.fixture(scope="module", params=NEWEST_GDB)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("disassembly")
    elf = demo(folder)
    commands = ["show trace disassemble-counts", *[f"disassemble {name}" for name in FUNCTIONS], "x/3i fib"]
    commands += ["trace history 900,+300", "trace history /r 900,+20", ON, "show trace disassemble-counts "]
    commands += [f"disassemble {name} " for name in FUNCTIONS]
    commands += ["x/3i fib ", "disassemble /s classify", "disassemble /r fib", "trace history  900,+300"]
    commands += ["trace history  /r 900,+20", "trace coverage _start", "x/i main", "stepi 3", "x/2i finish", OFF]
    commands += [f"disassemble  {name}" for name in FUNCTIONS]
    return Session(elf, *traced(elf, folder, commands, until="finish", gdb=request.param))


def test_counts(session: Session) -> None:
    ran = Counter(session.retired[: -len(session.retired) + before_steps(session)])
    for name in FUNCTIONS:
        shown = INSTRUCTION.findall(session.said[f"disassemble {name} "])
        plain = INSTRUCTION.findall(session.said[f"disassemble {name}"])
        assert [(pc, text) for pc, _, text, *_ in shown] == [(pc, text) for pc, _, text, *_ in plain]
        assert [count(times) for _, times, *_ in shown] == [ran[int(pc, 16)] for pc, *_ in shown], name
        assert not any(times for _, times, *_ in plain)


def before_steps(session: Session) -> int:
    """How many instructions ran before `finish` was stepped through."""
    [first] = re.findall(r"^=> 0x([0-9a-f]+)", session.said["disassemble finish"], re.M)
    return session.retired.index(int(first, 16))


def test_where_branches_went(session: Session) -> None:
    """By the successors in the list; traps aside, which this program returns from with mret."""
    calm = without_handler(session.retired[: before_steps(session)], session.said["disassemble on_trap"])
    went = Counter(pairwise(calm))
    seen = 0
    for name in FUNCTIONS:
        rows = INSTRUCTION.findall(session.said[f"disassemble {name} "])
        for (pc, times, text, taken, not_taken), after in pairwise([*rows, ("0", "", "", "", "")]):
            branch = re.match(r"b\w+\t.*?,?0x([0-9a-f]+) <", text)
            assert bool(branch and times != "#####") == bool(taken), (name, text)
            if branch and taken:
                at = int(pc, 16)
                assert int(taken) == went[at, int(branch[1], 16)] and int(not_taken) == went[at, int(after[0], 16)]
                seen += 1
    assert seen >= 4


def without_handler(retired: list[int], handler: str) -> list[int]:
    pcs = {int(pc, 16) for pc, *_ in INSTRUCTION.findall(handler)}
    return [pc for pc in retired if pc not in pcs]


def test_it_shows_in_all_that_disassembles(session: Session) -> None:
    said = session.said
    assert "is off." in said["show trace disassemble-counts"] and "is on." in said["show trace disassemble-counts "]
    assert len(re.findall(r"\t +41: ", said["x/3i fib "])) == 3 and "41:" not in said["x/3i fib"]
    assert re.search(r"^27\t.*\n   0x[0-9a-f]+ <\+\d+>:\t +\d+: ", said["disassemble /s classify"], re.M)
    assert len(re.findall(r"^   0x[0-9a-f]+ <\+\d+>:\t[0-9a-f ]+\t +41: ", said["disassemble /r fib"], re.M)) == 13


def test_it_is_never_in_a_listing(session: Session) -> None:
    said = session.said
    assert said["trace history 900,+300"] == said["trace history  900,+300"]
    assert said["trace history /r 900,+20"] == said["trace history  /r 900,+20"]
    for name in FUNCTIONS:
        again = said[f"disassemble  {name}"].replace("=>", "  ")
        assert said[f"disassemble {name}"].replace("=>", "  ") == again, "off again"


def test_it_goes_with_the_program(session: Session) -> None:
    """After three more steps the instructions of `finish` have run."""
    assert len(re.findall(r"\t +1: ", session.said["x/2i finish"])) == 2
    assert len(re.findall(r"\t +#####: ", session.said["disassemble finish "])) == 3


@newest_gdb
def test_without_a_trace_nothing_changes(gdb: str) -> None:
    commands = ["disassemble main", "x/i main", ON, "disassemble main ", "x/i main ", "x/i 0", OFF]
    out = run_gdb(ELF, [SOURCE, *commands], gdb=gdb)
    assert out["disassemble main"] == out["disassemble main "] and out["x/i main"] == out["x/i main "] != ""
    assert " # 0x800" in out["disassemble main"], "an address that two instructions make"
    assert "Cannot access memory at address 0x0" in out["x/i 0"] and out[ON] == out[OFF] == ""


@newest_gdb
def test_another_disassembler_is_kept(gdb: str, tmp_path: Path) -> None:
    capture = imported(tmp_path, STREAM)
    (tmp_path / "shouts.gdb").write_text(SHOUTS)
    commands = [
        SOURCE,
        f"trace open {capture}",
        f"source {tmp_path / 'shouts.gdb'}",
        "x/2i main",
        ON,
        "x/2i main ",
        OFF,
    ]
    out = run_gdb(ELF, [*commands, "x/2i  main"], gdb=gdb)
    shouted = re.findall(r":\t([A-Z].*)$", out["x/2i main"], re.M)
    assert len(shouted) == 2 and out["x/2i main"] == out["x/2i  main"]
    assert re.findall(r":\t +\d+: ([A-Z].*)$", out["x/2i main "], re.M) == shouted


def test_a_second_source_begins_anew(tmp_path: Path) -> None:
    capture = imported(tmp_path, STREAM)
    opened, script = f"trace open {capture}", tmp_path / "again.gdb"
    script.write_text(
        f"{SOURCE}\nshow trace disassemble-counts\n{opened}\nx/2i main\n{ON}\nx/2i main\n{OFF}\nx/2i main\n"
    )
    out = run_gdb(ELF, ["x/2i main", SOURCE, opened, ON, "x/2i  main", f"source {script}"])
    plain, counted = out["x/2i main"], out["x/2i  main"]
    assert re.search(r":\t +1: ", counted) and "is off.\n" in out[f"source {script}"]
    assert out[f"source {script}"].endswith(plain + counted + plain)


@thorough("gdbext/commands/test_find.py::test_of_several_harts_the_one_that_is_set")
def test_of_several_harts_the_one_that_is_set(tmp_path: Path) -> None:
    """Both run the same program; of the second one the trace has only the beginning."""
    harts = [reference_streams.from_source(STREAM, 2, 1), reference_streams.from_source(STREAM[:400], 2, 2)]
    capture = imported(tmp_path, reference_streams.in_turn(*harts), "--src-bits", "2")
    commands = []
    for hart in (1, 2):
        commands += [f"set trace hart {hart}", f"trace history {' ' * hart}1,100000", f"disassemble {' ' * hart}main"]
    out = run(capture, ON, *commands)
    shown = []
    for hart in (1, 2):
        ran = Counter(re.findall(r"^\d+\t(?:=> |   )0x([0-9a-f]+)", out[f"trace history {' ' * hart}1,100000"], re.M))
        rows = INSTRUCTION.findall(out[f"disassemble {' ' * hart}main"])
        assert [count(times) for _, times, *_ in rows] == [ran[pc] for pc, *_ in rows]
        shown.append(rows)
    assert shown[0] != shown[1] and len(shown[0]) > 10


@thorough("test_counts")
def test_a_session_that_died_does_not_stop_it(tmp_path: Path) -> None:
    capture = imported(tmp_path, STREAM)
    kill = "python import os, signal, subprocess; [os.kill(int(it), signal.SIGKILL) for it in subprocess.run("
    kill += "['pgrep', '-P', str(os.getpid())], capture_output=True, text=True).stdout.split()[:1]]"
    looks = ["x/2i main", ON, "x/2i main ", kill, "x/2i  main", "x/2i   main"]
    out = run_gdb(ELF, [SOURCE, f"trace open {capture}", *looks], RVTRACE_PYTHON=sys.executable)
    assert ":\t        1: " in out["x/2i main "]
    assert out["x/2i  main"] == out["x/2i   main"] == out["x/2i main"]


@newest_gdb
def test_an_interrupt_is_one_line(gdb: str, tmp_path: Path) -> None:
    """Ctrl-C while the session counts ends the command, and nothing else."""
    script = tmp_path / "interrupts.gdb"
    script.write_text(INTERRUPTS)
    out = run_gdb(ELF, [SOURCE, ON, f"source {script}", "disassemble main", "x/2i main", OFF, "x/2i  main"], gdb=gdb)
    assert "Quit" in out["disassemble main"] and "Python" not in out["disassemble main"]
    assert len(out["disassemble main"].splitlines()) <= 5
    assert out["x/2i main"] == out["x/2i  main"] != ""


def test_the_assembly_window(tmp_path: Path) -> None:
    """`layout asm` in a terminal."""
    elf = demo(tmp_path)
    with (
        Rig(elf, tmp_path / "rig") as rig,
        in_terminal(
            elf, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}", "trace start",
            "break finish", "continue", ON,
        ) as debugger,
    ):  # fmt: skip
        terminal = debugger.terminal
        terminal.enter("layout asm")
        counts = (r"<main> +1: ", r"<finish> +#####: auipc")
        terminal.wait(lambda screen: all(re.search(it, screen) for it in counts), "counts of main and finish")
        terminal.enter(OFF)
        terminal.enter("refresh")
        terminal.enter("up")
        assert terminal.wait_for("#1 ")


def test_the_reference_elf_is_what_the_tests_take_it_for() -> None:
    names = subprocess.run(["riscv64-unknown-elf-nm", ELF], check=True, capture_output=True, text=True).stdout
    assert " T main\n" in names
