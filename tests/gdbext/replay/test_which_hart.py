"""Which hart a thread is: core IDs in another order or with holes, a gdb server for each hart, tasks, exchanged harts.

Through a real OpenOCD. What is expected follows from mhartid, which gdb reads, and from the programs: in
tests/data/core-ids hart n calls fn alone.
"""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig, held_port
from tests.gdbext.gdb_process import SOURCE, run_gdb, some_gdbs
from tests.helpers.amounts import long_only, thorough
from tests.helpers.compiled import elf_bytes
from tests.helpers.cross_compiler import EXAMPLES, HOME, compile_program, demo

LOOPS = HOME / "tests" / "data" / "core-ids" / "loops.S"
_TARGET = re.compile(r"target create sim\.cpu(\d+) .*\n#.*\nriscv set_enable_virt2phys off\n(?:riscv expose.*\n)?")


class Ordered(Rig):
    """A target whose harts OpenOCD knows by their core IDs in the order given; others are left out of its
    configuration and of the description, which numbers them in OpenOCD's order.
    """

    def __init__(self, elf: Path, folder: Path, order: tuple[int, ...], *options: str) -> None:
        super().__init__(elf, folder, "--harts", str(max(order) + 1), *options)
        self.order = order

    def start_simulator(self) -> None:
        super().start_simulator()
        path = self.folder / "openocd.cfg"
        text = path.read_text()
        blocks = {int(found[1]): found[0] for found in _TARGET.finditer(text)}
        for block in blocks.values():
            text = text.replace(block, "")
        smp = "target smp " + " ".join(f"sim.cpu{core}" for core in self.order)
        made = "".join(blocks[core] for core in self.order)
        text = re.sub(r"target smp .*\n", f"{made}{smp}\n", text)
        path.write_text(re.sub(r"\ntargets .*\n", f"\ntargets sim.cpu{self.order[0]}\n", text))
        head, *parts = self.target_file.read_text().split("\n[[component]]\n")
        described = [head]
        for part in parts:
            encoder = re.search(r'name = "encoder(\d+)"', part)
            if encoder is None:
                described.append(part)
            elif int(encoder[1]) in self.order:
                described.append(re.sub(r"hart = \d+", f"hart = {self.order.index(int(encoder[1]))}", part))
        self.target_file.write_text("\n[[component]]\n".join(described))


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    elf = tmp_path_factory.mktemp("loops") / "loops.elf"
    command = ["riscv64-unknown-elf-gcc", "-march=rv64imac_zicsr", "-mabi=lp64", "-mcmodel=medany", "-g", "-nostdlib"]
    elf.write_bytes(
        elf_bytes([*command, "-nostartfiles", "-Wl,-n", "-Wl,-Ttext=0x80000000", str(LOOPS)], [LOOPS])
    )
    return elf


def functions(printed: str) -> set[str]:
    """The functions that a listing names, besides _start."""
    return set(re.findall(r"<(\w+)\+", printed)) - {"_start"}


IN = 'python any(gdb.execute("continue") or gdb.parse_and_eval("$pc == (long)&{}") for _ in range(20))'
"""Where two harts run, OpenOCD may report the stop of the one that it halts with the other, as `Thread 1 stopped`."""
IN_F1 = ["hbreak f1", "continue", "continue ", IN.format("f1"), "info registers mhartid"]
SELECT = 'python next(t for t in gdb.selected_inferior().threads() if t.name == "sim.cpu{}").switch()'


@thorough("test_core_ids_with_a_hole")
@some_gdbs
def test_core_ids_in_another_order(loops: Path, tmp_path: Path, gdb: str) -> None:
    """The hart with mhartid 1 is OpenOCD's first target, and its second thread number."""
    with Ordered(loops, tmp_path / "rig", (1, 0), "--run") as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}", "trace start"]
        commands += [*IN_F1, "trace history", "reverse-stepi", "reverse-continue", "print $pc", "trace live"]
        said = run_gdb(loops, commands, gdb=gdb)
    assert said["info registers mhartid"].split()[1] == "0x1"
    assert functions(said["trace history"]) == {"f1"} and "note:" not in said["trace history"]
    assert "_start () at" in said["reverse-stepi"] and "not traced" not in said["reverse-stepi"]
    assert "<f1>" in said["print $pc"]  # the breakpoint before
    assert "f1 () at" in said["trace live"]


def test_core_ids_with_a_hole(loops: Path, tmp_path: Path) -> None:
    """Core 0 is not in OpenOCD's configuration: the harts are 0 and 1, their threads 2 and 3."""
    with Ordered(loops, tmp_path / "rig", (1, 2), "--run") as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}", "trace start"]
        commands += [*IN_F1, SELECT.format(1), "trace history", "reverse-stepi", "trace live", SELECT.format(2)]
        commands += ["hbreak f2", "delete 1", "continue   ", IN.format("f2"), "info registers mhartid "]
        commands += ["trace history ", "reverse-stepi ", "trace live "]
        said = run_gdb(loops, commands)
    assert said["info registers mhartid"].split()[1] == "0x1"
    assert functions(said["trace history"]) == {"f1"} and "note:" not in said["trace history"]
    assert "_start () at" in said["reverse-stepi"]
    assert said["info registers mhartid "].split()[1] == "0x2"
    assert functions(said["trace history "]) == {"f2"} and "note:" not in said["trace history "]
    assert "_start () at" in said["reverse-stepi "]


@thorough("test_core_ids_with_a_hole")
def test_records_of_core_ids_with_a_hole(loops: Path, tmp_path: Path) -> None:
    """No hart runs meanwhile: with one that does, a register takes several times as long."""
    with Ordered(loops, tmp_path / "rig", (1, 2), "--ctr", "1.0") as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}"]
        said = run_gdb(loops, [*commands, "trace ctr start -all -depth 16"])
    assert re.findall(r"^ctr(\d)", said["trace ctr start -all -depth 16"], re.MULTILINE) == ["0", "1"]


@pytest.fixture(scope="module")
def separate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A gdb server for each hart: hart 1's is at the port after hart 0's. The trace RAM holds what hart 0 sends while
    it waits, however long gdb takes.
    """
    folder = tmp_path_factory.mktemp("separate")
    example = EXAMPLES / "two_harts"
    elf = compile_program(folder, example / "two_harts.c", start=example / "start.S")
    with Rig(elf, folder / "rig", "--harts", "2", "--separate-harts", "--trace-size", f"{1 << 20}") as rig:
        yield rig


STOPPED = [
    "monitor reset halt", "trace start", "hbreak deposit", "monitor targets sim.cpu0", "monitor resume",
    "monitor targets sim.cpu1", "continue", "info registers mhartid", "monitor targets sim.cpu0", "monitor halt",
    "monitor targets sim.cpu1",
]  # fmt: skip
"""Hart 1 is at its breakpoint in `deposit`, hart 0 was halted where it waits."""


def test_a_server_for_each_hart(separate: Rig) -> None:
    past = ["trace history", "reverse-stepi", "print/x $pc == *(long *)$sp", "trace status", "set trace hart 0"]
    past += ["trace goto end", "set trace hart auto", "show trace hart", "trace goto 3", "trace live"]
    other = ["add-inferior -no-connection", "inferior 2", f"trace connect :{separate.gdb_port} ", "inferior 1"]
    commands = [SOURCE, f"set trace target {separate.target_file}", f"trace connect :{separate.gdb_port + 1}"]
    said = run_gdb(separate.elf, [*commands, *STOPPED, *past, *other, "info threads"])
    assert said["info registers mhartid"].split()[1] == "0x1"
    last = said["trace history"].strip().splitlines()[-1]
    assert re.fullmatch(r"\d+\s+0x\w+ <main\+\d+>:\s+jal\s+0x\w+ <deposit>", last), said["trace history"]
    assert "warning" not in said["trace history"] and "note:" not in said["trace history"]
    number = last.split()[0]
    assert f"[{number} of {number}]" in said["reverse-stepi"] and "not traced" not in said["reverse-stepi"]
    assert f"past:     hart 1 at instruction {number} of {number}" in said["trace status"]
    assert "`set trace hart auto` selects the past of hart 1" in said["trace goto end"]
    assert "is not set" in said["show trace hart"] and f"[3 of {number}]" in said["trace goto 3"]
    refused = said[f"trace connect :{separate.gdb_port} "]
    assert refused.startswith("trace connect: rvtrace is between inferior 1 and its target") and "Nothing" in refused
    assert "deposit (hart" in said["info threads"]


def test_harts_that_are_exchanged_in_the_description(separate: Rig, tmp_path: Path) -> None:
    """The trace of each ends where the other hart is: 0 and 1 are those of the simulated target's own description."""
    text, wrong = separate.target_file.read_text(), tmp_path / "exchanged.toml"
    wrong.write_text(re.sub(r"hart = (\d)", lambda found: f"hart = {1 - int(found[1])}", text))
    commands = [SOURCE, f"set trace target {wrong}", f"trace connect :{separate.gdb_port + 1}", *STOPPED]
    said = run_gdb(separate.elf, [*commands, "trace history", "trace history 1,2", "trace status"])
    told = "warning: hart 0's trace ends where hart 1 is, and hart 1's where hart 0 is: exchange `hart` of encoder1 and"
    for command in ("trace history", "trace status"):
        assert f"{told} encoder0 in the target description" in said[command], said[command]
    assert "warning" not in said["trace history 1,2"]  # once


@contextlib.contextmanager
def tasks(rig: Rig, running: str, blocked: str, pc: int) -> Iterator[int]:
    """A port at which the rig's hart has two tasks."""
    with held_port() as port:
        script = HOME / "tests" / "gdbext" / "replay" / "task_threads.py"
        words = [sys.executable, str(script), str(port), str(rig.gdb_port), running, blocked, f"{pc:x}"]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"listens\n"
            try:
                yield port
            finally:
                process.kill()


TASKS = [("80001234", "80005678"), *long_only(("20001234", "20005678"), ("1", "2"))]


@pytest.mark.parametrize(("running", "blocked"), TASKS)
def test_a_task_that_is_blocked_has_no_past(running: str, blocked: str, tmp_path: Path) -> None:
    """It waits at main; the other one runs."""
    with Rig(demo(tmp_path), tmp_path / "rig") as rig:
        nm = subprocess.run(["riscv64-unknown-elf-nm", rig.elf], capture_output=True, text=True, check=True).stdout
        pc = next(int(line.split()[0], 16) for line in nm.splitlines() if line.endswith(" main"))
        commands = [SOURCE, f"set trace target {rig.target_file}", "trace start", "break finish", "continue"]
        mi = 'interpreter-exec mi "-rvtrace-position"'
        commands += ["thread 2", "trace history", "reverse-stepi", "trace goto 5", "trace native", mi]
        commands += ["thread 1", "reverse-stepi "]
        commands += ["trace goto 661", "info threads", "thread 2 ", "trace position", "print $pc", "reverse-stepi  "]
        commands += ["thread 1 ", "trace position ", "trace live", "info threads "]
        with tasks(rig, running, blocked, pc) as port:
            said = run_gdb(rig.elf, [*commands[:2], f"trace connect :{port}", *commands[2:]])
    refused = "this task is not on a hart, so it has no past of its own: thread 1 is, and has one (`thread 1`)"
    for command in ("reverse-stepi", "trace goto 5", "trace native", "reverse-stepi  "):
        assert said[command].strip() == refused
    assert 'state="live"' in said[mi] and "hart=" not in said[mi]
    note = "note:     the selected thread is a task that is not on a hart: this is hart 0, which thread 1 is on"
    assert said["trace history"].startswith(note)
    assert "[2006 of 2006]" in said["reverse-stepi "] and "[661 of 2006]" in said["trace goto 661"]
    assert re.search(r"^\* 1 .*\) +fib", said["info threads"], re.MULTILINE), said["info threads"]
    assert re.search(r"^  2 .*\) +main", said["info threads"], re.MULTILINE), said["info threads"]
    assert said["trace position"].strip() == "In the present." and "<main>" in said["print $pc"]
    assert "instruction 661 of 2006" in said["trace position "]
    assert re.search(r"^\* 1 .*\) +finish", said["info threads "], re.MULTILINE), said["info threads "]
