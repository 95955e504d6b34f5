"""Functions that have one name: static ones of several files, one that is also inlined, one that is mapped twice.

Real gdb, real OpenOCD. What is expected is what the hart retired, at the addresses nm and the line table have.
"""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.console.scripts.script_runs import run_script
from tests.endtoend.retired_instructions import ROW
from tests.gdbext.filter_rig import FilterRig
from tests.gdbext.gdb_process import SOME_GDBS, SOURCE, ask_gdb, some_gdbs
from tests.gdbext.runs_in_turn import THROUGH_RVTRACE, in_turn
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import compile_program

FOLDER = Path(__file__).resolve().parent.parent / "programs" / "same"
SOURCES = [FOLDER / name for name in ("main.c", "first.c", "second.c")]
FOUND = re.compile(r"^\d+\t@(\d+)\t0x([0-9a-f]+)", re.M)
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


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("same"), *SOURCES, options=("-O1",))


NAMES = {"init": ("first.c", "second.c"), "first.c:init": ("first.c",), "second.c:init": ("second.c",),
         "'second.c'::init": ("second.c",)}  # fmt: skip


FILTERS = ("init", *long_only("first.c:init"))
PLAIN, BY_ADDRESS, MARKED = "trace start", "trace start -function *{:#x}", "trace start -trigger-notify init"
RANGES = [f"trace start -range {name},+4" for name in ("init", "first.c:init")]


class Said(NamedTuple):
    """What a gdb said in each of its runs of the program, and the capture it saved of the whole one."""

    program: Program
    runs: dict[str, dict[str, str]]
    capture: Path


@pytest.fixture(scope="module", params=SOME_GDBS)
def all_said(request: pytest.FixtureRequest, elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Said:
    folder, inits, to_the_end = tmp_path_factory.mktemp("said"), places(elf)[0], ["break finish", "continue"]
    asked = [ALL, *(f"trace find {name} 1,99" for name in NAMES)]
    asked += ["trace find *init 1,99", "trace find step 1,99", "trace find init,main", "trace coverage init"]
    for i in range(6):
        asked += [f"{word}{' ' * i}" for word in ("trace goto init", "info line *$pc", "print $trace_pos")]
    runs = {PLAIN: [PLAIN, *to_the_end, *asked, "trace live", f"trace save {folder / 'x.rvt'}"]}
    for start in (*(f"trace start -function {name}" for name in FILTERS), BY_ADDRESS.format(inits["first.c"][0])):
        runs[start] = [start, *to_the_end, ALL]
    runs[MARKED] = [*RANGES, MARKED, *to_the_end, "trace events sync 1,1000"]
    rig = FilterRig(elf, folder / "rig", "--log-retired", str(folder / "log"))
    found = in_turn(rig, folder / "log", runs, request.param, THROUGH_RVTRACE)
    program = Program(elf, *places(elf), found[PLAIN].retired)
    return Said(program, {name: run.said for name, run in found.items()}, folder / "x.rvt")


@pytest.fixture(scope="module")
def program(all_said: Said) -> Program:
    return all_said.program


@pytest.fixture(scope="module")
def said(all_said: Said) -> dict[str, str]:
    return all_said.runs[PLAIN]


def places(elf: Path) -> tuple[dict[str, tuple[int, int]], int]:
    """Where each `init` is, by file, and where `step`."""
    table = subprocess.run(["riscv64-unknown-elf-nm", "-lS", elf], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in table.splitlines()]
    inits = {
        Path(row[4]).name.partition(":")[0]: (int(row[0], 16), int(row[0], 16) + int(row[1], 16))
        for row in rows if row[3:4] == ["init"]
    }  # fmt: skip
    return inits, next(int(row[0], 16) for row in rows if row[3:4] == ["step"])


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


@pytest.mark.parametrize("name", [*FILTERS, "*"])
def test_filters(all_said: Said, name: str) -> None:
    program = all_said.program
    files = NAMES.get(name, ("first.c",))
    start = BY_ADDRESS.format(program.inits["first.c"][0]) if name == "*" else f"trace start -function {name}"
    listing = all_said.runs[start][ALL]
    assert program.inside(*files) == [int(pc, 16) for _, pc in ROW.findall(listing)], listing


def test_a_range_takes_one(all_said: Said) -> None:
    two, one = (all_said.runs[MARKED][command] for command in RANGES)
    assert "-range init,+4: there are 2 functions of that name, give one of" in two
    start = all_said.program.inits["first.c"][0]
    assert f"traces only {start:#x} to {start + 3:#x}" in one


def test_triggers(all_said: Said) -> None:
    """Marked where either of them begins: also in each round of the loop."""
    out = all_said.runs[MARKED]
    starts = [start for start, _ in all_said.program.inits.values()]
    marked = re.findall(r"0x([0-9a-f]+) <[^>]*>:\tsync: trace event", out["trace events sync 1,1000"])
    assert {int(pc, 16) for pc in marked} >= set(starts), (out["trace events sync 1,1000"], out[MARKED])


@some_gdbs
def test_mapped_twice(all_said: Said, gdb: str) -> None:
    """gdb takes the name for both mappings, whichever of them its expressions mean."""
    program, _, capture = all_said
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
