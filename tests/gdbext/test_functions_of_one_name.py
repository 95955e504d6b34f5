"""Functions that have one name: static ones of several files, one that is also inlined, one that is mapped twice.

Real gdb, real OpenOCD. What is expected is what the hart retired, at the addresses nm and the line table have.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.console.scripts.script_runs import run_script
from tests.endtoend.retired_instructions import ROW, retired_pcs
from tests.gdbext.filter_rig import FilterRig
from tests.gdbext.gdb_process import GDBS, SOURCE, ask_gdb, run_gdb
from tests.helpers.cross_compiler import compile_program

FOLDER = Path(__file__).resolve().parent.parent / "programs" / "same"
SOURCES = [FOLDER / name for name in ("main.c", "first.c", "second.c")]
FOUND = re.compile(r"^\d+\t@(\d+) 0x([0-9a-f]+)", re.M)
ALL = "trace history /a 1,1000000"
AWAY = 0x100_0000


class Program(NamedTuple):
    """*inits*: from where to before where each `init` is, by file; *pcs*: what runs until `finish`."""

    elf: Path
    inits: dict[str, tuple[int, int]]
    step: int
    pcs: list[int]

    def entered(self, *files: str) -> list[int]:
        """Positions from 1 on: one behind a call of it."""
        starts = {self.inits[file][0]: self.inits[file] for file in files}
        numbered = enumerate(zip([0, *self.pcs[:-1]], self.pcs, strict=True), 1)
        return [n for n, (before, pc) in numbered if pc in starts and not starts[pc][0] <= before < starts[pc][1]]

    def inside(self, *files: str) -> list[int]:
        ranges = [self.inits[file] for file in files]
        return [pc for pc in self.pcs if any(start <= pc < end for start, end in ranges)]


def connected(rig: FilterRig) -> list[str]:
    return [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("same")
    elf, log = compile_program(folder, *SOURCES, options=("-O1",)), folder / "retired"
    with FilterRig(elf, folder / "rig", "--log-retired", str(log)) as rig:
        run_gdb(elf, [*connected(rig), "trace start", "break finish", "continue"])
    table = subprocess.run(["riscv64-unknown-elf-nm", "-lS", elf], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in table.splitlines()]
    inits = {
        Path(row[4]).name.partition(":")[0]: (int(row[0], 16), int(row[0], 16) + int(row[1], 16))
        for row in rows if row[3:4] == ["init"]
    }  # fmt: skip
    step = next(int(row[0], 16) for row in rows if row[3:4] == ["step"])
    return Program(elf, inits, step, retired_pcs(log))


@pytest.fixture(scope="module", params=GDBS)
def said(request: pytest.FixtureRequest, program: Program, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    commands = ["trace start", "break finish", "continue", ALL, *(f"trace find {name} 1,99" for name in NAMES)]
    commands += ["trace find *init 1,99", "trace find step 1,99", "trace find init,main", "trace coverage init"]
    commands += [word for _ in range(6) for word in ("trace goto init", "info line *$pc", "print $trace_pos")]
    gone = [f"{command}{' ' * (i // 3)}" for i, command in enumerate(commands[-18:])]  # told apart
    with FilterRig(program.elf, tmp_path_factory.mktemp("said") / "rig") as rig:
        return run_gdb(program.elf, [*connected(rig), *commands[:-18], *gone], gdb=request.param)


NAMES = {"init": ("first.c", "second.c"), "first.c:init": ("first.c",), "second.c:init": ("second.c",),
         "'second.c'::init": ("second.c",)}  # fmt: skip


def test_the_program_is_what_it_should_be(program: Program) -> None:
    """The one in second.c begins with a loop; `step` is inlined in main, and called there."""
    assert [len(program.entered(file)) for file in ("first.c", "second.c")] == [2, 3]
    assert program.pcs.count(program.inits["second.c"][0]) > 3
    assert program.pcs.count(program.step) == 1


@pytest.mark.parametrize("name", NAMES)
def test_find(said: dict[str, str], program: Program, name: str) -> None:
    found = [int(position) for position, _ in FOUND.findall(said[f"trace find {name} 1,99"])]
    assert found == program.entered(*NAMES[name]) != []


def test_executions_of_their_first_instructions(said: dict[str, str], program: Program) -> None:
    starts = {start for start, _ in program.inits.values()}
    found = [int(position) for position, _ in FOUND.findall(said["trace find *init 1,99"])]
    assert found == [number for number, pc in enumerate(program.pcs, 1) if pc in starts]


def test_also_where_it_is_inlined(said: dict[str, str], program: Program) -> None:
    found = [int(pc, 16) for _, pc in FOUND.findall(said["trace find step 1,99"])]
    assert len(found) == 2 and program.step in found


def test_goto_goes_to_each_of_them(said: dict[str, str], program: Program) -> None:
    gone = [int(re.findall(r"= (\d+)", said[f"print $trace_pos{' ' * i}"])[0]) for i in range(5)]
    assert gone == list(reversed(program.entered("first.c", "second.c")))
    assert "there is none before this place" in said["trace goto init" + 5 * " "]


def test_what_takes_one_place_says_which_there_are(said: dict[str, str]) -> None:
    line = said["trace find init,main"].strip()
    assert line.startswith("trace find: init,main: there are 2 functions of that name, give one of ")
    assert sorted(line.rpartition(" give one of ")[2].split(", ")) == ["first.c:init", "second.c:init"]


def test_coverage_shows_both(said: dict[str, str]) -> None:
    shown = said["trace coverage init"]
    assert re.search(r"^ +2: \d+\t    state\+\+", shown, re.M) and "init(int rounds)" in shown


def in_order(pcs: list[int], listing: str) -> bool:
    return [int(pc, 16) for _, pc in ROW.findall(listing)] == pcs


@pytest.mark.parametrize("name", ["init", "first.c:init", "*{first}"])
def test_filters(program: Program, name: str, tmp_path: Path) -> None:
    files = NAMES.get(name, ("first.c",))
    start = f"trace start -function {name.format(first=hex(program.inits['first.c'][0]))}"
    with FilterRig(program.elf, tmp_path / "rig") as rig:
        out = run_gdb(program.elf, [*connected(rig), start, "break finish", "continue", ALL])
    assert in_order(program.inside(*files), out[ALL]), out


def test_a_range_takes_one(program: Program, tmp_path: Path) -> None:
    with FilterRig(program.elf, tmp_path / "rig") as rig:
        commands = [f"trace start -range {name},+4" for name in ("init", "first.c:init")]
        out = run_gdb(program.elf, [*connected(rig), *commands])
    assert "-range init,+4: there are 2 functions of that name, give one of" in out["trace start -range init,+4"]
    start = program.inits["first.c"][0]
    assert f"traces only {start:#x} to {start + 3:#x}" in out["trace start -range first.c:init,+4"]


def test_triggers(program: Program, tmp_path: Path) -> None:
    """Marked where either of them begins: also in each round of the loop."""
    with FilterRig(program.elf, tmp_path / "rig") as rig:
        commands = ["trace start -trigger-notify init", "break finish", "continue", "trace events sync 1,1000"]
        out = run_gdb(program.elf, [*connected(rig), *commands])
    starts = [start for start, _ in program.inits.values()]
    marked = re.findall(r"0x([0-9a-f]+) <[^>]*>:\tsync: trace event", out["trace events sync 1,1000"])
    assert {int(pc, 16) for pc in marked} >= set(starts), (out["trace events sync 1,1000"], out[commands[0]])


@pytest.fixture(scope="module")
def capture(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("kept")
    with FilterRig(program.elf, folder / "rig") as rig:
        kept = folder / "x.rvt"
        run_gdb(program.elf, [*connected(rig), "trace start", "break finish", "continue", f"trace save {kept}"])
        yield kept


@pytest.mark.parametrize("gdb", GDBS)
def test_mapped_twice(program: Program, capture: Path, gdb: str) -> None:
    """gdb takes the name for both mappings, whichever of them its expressions mean."""
    commands = [f"add-symbol-file {program.elf} -o {AWAY:#x}", f"trace open {capture}", "trace find init 1,99"]
    before = ask_gdb(program.elf, [SOURCE, *commands], gdb=gdb)["trace find init 1,99"]
    swapped = [f"add-symbol-file {program.elf} -o {AWAY:#x}", f"add-symbol-file {program.elf} -o 0", *commands[1:]]
    after = ask_gdb(None, [SOURCE, f"trace open {capture}", *swapped], gdb=gdb)["trace find init 1,99"]
    for found in (before, after):
        assert [int(position) for position, _ in FOUND.findall(found)] == program.entered("first.c", "second.c"), found


def test_scripts(program: Program, tmp_path: Path) -> None:
    text = (
        "run until finish within 60s\n"
        "assert calls init == 5\nassert ran first.c:init\nassert calls second.c:init == 3\n"
    )
    with FilterRig(program.elf, tmp_path / "rig") as rig:
        words = ["--elf", program.elf, "--target", rig.target_file, "--connect", f":{rig.gdb_port}"]
        done = run_script(tmp_path, f"connect\nstart\n{text}", *words)
    assert done.asserts == [True, True, True], done
