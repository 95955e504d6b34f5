"""`trace start -range, -function, -priv` in the real gdb, through a real OpenOCD, to an encoder with filters.

What the history has to be is what the hart says it retired, cut down to where nm says the functions are.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tests.endtoend.retired_instructions import ROW
from tests.gdbext.filter_rig import FilterRig
from tests.gdbext.gdb_process import SOME_GDBS, SOURCE, ask_gdb, every_gdb
from tests.gdbext.runs_in_turn import Run, in_turn
from tests.helpers.amounts import LONG, long_only
from tests.helpers.cross_compiler import EXAMPLES, compile_program, demo

ALL = "trace history /a 1,1000000"
TO_THE_END = ["break finish", "continue", ALL, "trace gaps 1,10000", "trace status"]
Places = dict[str, tuple[int, int]]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("filters"))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose functions have dots in their names, as parts of functions have; without debug information."""
    folder = tmp_path_factory.mktemp("parts")
    source = folder / "parts.c"
    source.write_text(
        'int __attribute__((noinline)) part(int n) __asm__("work.part.0");\n'
        "int part(int n) { return n * n + 1; }\nint main(void) { return part(7); }\n"
    )
    return compile_program(folder, source, options=("-g0",))


def places(elf: Path) -> Places:
    out = subprocess.run(["riscv64-unknown-elf-nm", "-S", str(elf)], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in out.splitlines()]
    return {f[3]: (int(f[0], 16), int(f[0], 16) + int(f[1], 16)) for f in lines if len(f) == 4}


def listed(listing: str) -> list[int]:
    """The instructions; between them there may be gaps."""
    return [int(pc, 16) for _, pc in ROW.findall(listing)]


def inside(pcs: list[int], *ranges: tuple[int, int]) -> list[int]:
    found = [pc for pc in pcs if any(start <= pc < end for start, end in ranges)]
    assert 20 < len(found) < len(pcs)
    return found


def lines_of(text: str) -> int:
    """The line of demo.c that begins with *text*."""
    source = (EXAMPLES / "demo.c").read_text().splitlines()
    return next(number for number, line in enumerate(source, 1) if line.strip().startswith(text))


FUNCTIONS = {"add,mul,classify": "-timestamps -repeated-history", "fib,on_trap": ""}
FUNCTIONS |= {"fib": "", "on_trap,main": ""} if LONG else {}
DATA = "-format etrace -data -function on_trap"
MODES = ("-priv m,u", "-priv u")


def forms(elf: Path) -> list[str]:
    """Commands that trace fib alone."""
    start, end = places(elf)["fib"]
    assert places(elf)["classify"][0] == end
    line = lines_of("static int fib")
    ranges = [f"'&fib, {end:#x}'", f"demo.c:{line},+{end - start}", "fib,fib+6 -range fib+4,&classify"]
    ranges += long_only("fib,classify", f"fib,+{end - start}", f"demo.c:{line},&classify", f"{start},{end}")
    return [f"trace start -range {it}" for it in ranges]


DOTTED = ["trace start -function work.part.0", "trace start -range work.part.0,main",
          "trace start -function work.part.1"]  # fmt: skip
REFUSED = {
    "trace start -range main": "trace start: -range main: give FROM,TO or FROM,+SIZE",
    "trace start -range main,": "trace start: -range main,: give FROM,TO or FROM,+SIZE",
    "trace start -range nowhere,+4": 'trace start: -range nowhere,+4: No symbol "nowhere" in current context.',
    "trace start -range ticks,+4": "trace start: -range ticks,+4: ticks is neither a function nor an address",
    "trace start -range 8,8": "trace start: -range 8,8: there is nothing from 0x8 to before 0x8",
    "trace start -range": "trace start: -range takes FROM,TO or FROM,+SIZE, got: none.",
    "trace start -range -btm": "trace start: -range takes FROM,TO or FROM,+SIZE, got: -btm.",
    "trace start -function ticks": "trace start: -function ticks: that is not a function",
    "trace start -function fibb": 'trace start: -function fibb: No symbol "fibb" in current context.',
    "trace start -function": "trace start: -function takes names of functions, got: none.",
    "trace start -priv x": "trace start: -priv takes privilege modes, separated by commas, got: x."
    " There are u, s, m, vu, vs.",
    "trace start -priv s": "encoder0 at 0x20000000: cannot select privilege mode S"
    " (trTeFilter0MatchInst reads 0x0)",
    "trace start -range " + " -range ".join(f"{name},+2" for name in ("fib", "add", "mul", "main", "finish")):
        "encoder0 at 0x20000000: has 4 filters, 5 separate ranges need one each: trace fewer ranges",
}  # fmt: skip


def rig(elf: Path, folder: Path) -> tuple[FilterRig, Path]:
    """And the log of what it retires."""
    return FilterRig(elf, folder / "rig", "--log-retired", str(folder / "log")), folder / "log"


@pytest.fixture(scope="module", params=SOME_GDBS)
def runs(
    request: pytest.FixtureRequest, elf: Path, parts: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Run]:
    """What is asked of one target, and what it executes. The last run is without a filter, after all the others."""
    asked = {names: [f"trace start {options} -function {names}", *TO_THE_END] for names, options in FUNCTIONS.items()}
    asked |= {options: [f"trace start {options}", *TO_THE_END] for options in (DATA, *MODES)}
    asked[DATA].append("trace data 1,100000")
    switched = [f"file {parts}", *DOTTED, f"file {elf}"]
    asked["all"] = [*forms(elf), *switched, *REFUSED, "trace start", *TO_THE_END]
    return in_turn(*rig(elf, tmp_path_factory.mktemp("runs")), asked, request.param)


@pytest.mark.parametrize("names", FUNCTIONS)
def test_functions(elf: Path, runs: dict[str, Run], names: str) -> None:
    known, (said, retired) = places(elf), runs[names]
    assert listed(said[ALL]) == inside(retired, *(known[name] for name in names.split(",")))
    assert "traces only 0x" in said["trace status"]


def test_loads_and_stores_of_a_function(elf: Path, runs: dict[str, Run]) -> None:
    """Those of the trap handler alone."""
    start, end = places(elf)["on_trap"]
    said, retired = runs[DATA]
    assert listed(said[ALL]) == [pc for pc in retired if start <= pc < end]
    rows = [line for line in said["trace data 1,100000"].splitlines() if line[:1].isdecimal()]
    pcs = [int(pc, 16) for pc in re.findall(r"@\d+\t0x([0-9a-f]+) <on_trap", "\n".join(rows))]
    access = re.compile(r"^\d+\t.{3}0x([0-9a-f]+) <[^>]*>:\t[ls][bhwd]u?\t", re.M)
    assert len(rows) == len(pcs) > 10
    assert pcs == [int(pc, 16) for pc in access.findall(said[ALL])]


def test_what_is_left_out_is_a_gap(elf: Path, runs: dict[str, Run]) -> None:
    """Two functions that run apart from each other: nobody takes one for the continuation of the other."""
    known, (said, retired) = places(elf), runs["fib,on_trap"]
    apart = [[pc for pc in retired if known[n][0] <= pc < known[n][1]] for n in ("fib", "on_trap")]
    rows = said[ALL].splitlines()
    gaps = [number for number, row in enumerate(rows) if "[trace disabled, then trace enabled at another place" in row]
    assert gaps and gaps[0] == len(apart[0])
    assert len(rows) - len(gaps) == sum(map(len, apart))
    assert len(said["trace gaps 1,10000"].strip().splitlines()) == len(gaps)


def test_forms_of_a_range(elf: Path, runs: dict[str, Run]) -> None:
    start, end = places(elf)["fib"]
    for command in forms(elf):
        assert f"encoder0 traces only {start:#x} to {end - 1:#x}\n" in runs["all"].said[command], command


def test_names_that_are_no_expressions(parts: Path, runs: dict[str, Run]) -> None:
    known, said = places(parts), runs["all"].said
    for command, end in zip(DOTTED[:2], (known["work.part.0"][1], known["main"][0]), strict=True):
        assert f"encoder0 traces only {known['work.part.0'][0]:#x} to {end - 1:#x}" in said[command]
    line = said[DOTTED[2]].strip()
    assert line == 'trace start: -function work.part.1: No symbol "work.part.1" in current context.'


def test_modes(runs: dict[str, Run]) -> None:
    """The program runs in machine mode alone."""
    both, user = (runs[options] for options in MODES)
    assert listed(both.said[ALL]) == both.retired and "traces only mode U, M" in both.said["trace status"]
    assert user.retired and "nothing has been traced yet" in user.said[ALL]


def test_what_cannot_be_done(runs: dict[str, Run]) -> None:
    """One line each, and then everything can still be traced."""
    said, retired = runs["all"]
    assert {command: said[command].strip() for command in REFUSED} == REFUSED
    assert listed(said[ALL]) == retired
    assert "0 gaps" in said["trace status"] and "only" not in said["trace status"]


@every_gdb
def test_completion(gdb: str) -> None:
    offered = {
        "-ra": ["-range"],
        "-pri": ["-priv"],
        "-priv ": ["-priv m", "-priv s", "-priv u", "-priv vs", "-priv vu"],
        "-priv u,v": ["-priv u,vs", "-priv u,vu"],
        "-range fib,+4 -fu": ["-range fib,+4 -full-addresses", "-range fib,+4 -full-data-addresses",
                              "-range fib,+4 -function"],
    }  # fmt: skip
    commands = {typed: f"complete trace start {typed}" for typed in offered}
    said = ask_gdb(None, [SOURCE, *commands.values()], gdb=gdb)
    assert {typed: said[command].split("\n")[:-1] for typed, command in commands.items()} == {
        typed: [f"trace start {text}" for text in texts] for typed, texts in offered.items()
    }
