"""`trace start -range, -function, -priv` in the real gdb, through a real OpenOCD, to an encoder with filters.

What the history has to be is what the hart says it retired, cut down to where nm says the functions are.
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import ROW, retired_pcs
from tests.gdbext.filter_rig import FilterRig
from tests.gdbext.gdb_process import GDB, SOURCE, ask_gdb, every_gdb, run_gdb
from tests.helpers.cross_compiler import EXAMPLES, compile_program, demo

ALL = "trace history /a 1,1000000"
TO_THE_END = ["break finish", "continue", ALL, "trace gaps 1,10000", "trace status"]
Places = dict[str, tuple[int, int]]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("filters"))


@pytest.fixture(scope="module")
def elf32(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("filters32"), "rv32imac_zicsr")


def places(elf: Path) -> Places:
    out = subprocess.run(["riscv64-unknown-elf-nm", "-S", str(elf)], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in out.splitlines()]
    return {f[3]: (int(f[0], 16), int(f[0], 16) + int(f[1], 16)) for f in lines if len(f) == 4}


@contextmanager
def connected(rig: Rig) -> Iterator[list[str]]:
    """The commands that gdb begins with."""
    with rig:
        yield [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]


def traced(elf: Path, folder: Path, command: str, gdb: str = GDB, *more: str) -> tuple[dict[str, str], list[int]]:
    """What gdb printed of the program traced to its end, and what the hart retired."""
    log = folder / "retired.log"
    with connected(FilterRig(elf, folder / "rig", "--log-retired", str(log))) as begin:
        out = run_gdb(elf, [*begin, command, *TO_THE_END, *more], gdb=gdb)
    return out, retired_pcs(log)


def listed(listing: str) -> list[int]:
    """The instructions; between them there may be gaps."""
    return [int(pc, 16) for _, pc in ROW.findall(listing)]


def inside(pcs: list[int], *ranges: tuple[int, int]) -> list[int]:
    found = [pc for pc in pcs if any(start <= pc < end for start, end in ranges)]
    assert 20 < len(found) < len(pcs)
    return found


@pytest.mark.parametrize("names", [["fib"], ["add", "mul", "classify"], ["on_trap", "main"]])
def test_functions(elf: Path, names: list[str], tmp_path: Path) -> None:
    known = places(elf)
    out, retired = traced(elf, tmp_path, f"trace start -function {','.join(names)}")
    assert listed(out[ALL]) == inside(retired, *(known[name] for name in names))
    assert "traces only 0x" in out["trace status"]


@pytest.mark.parametrize("options", ["-btm", "-format etrace", "-format etrace -data", "-timestamps -repeated-history"])
def test_functions_with_other_options(elf32: Path, options: str, tmp_path: Path) -> None:
    known = places(elf32)
    out, retired = traced(elf32, tmp_path, f"trace start {options} -function classify -function on_trap")
    assert listed(out[ALL]) == inside(retired, known["classify"], known["on_trap"])


def test_loads_and_stores_of_a_function(elf: Path, tmp_path: Path) -> None:
    """Those of the trap handler alone."""
    start, end = places(elf)["on_trap"]
    out, retired = traced(
        elf, tmp_path, "trace start -format etrace -data -function on_trap", GDB, "trace data 1,100000"
    )
    assert listed(out[ALL]) == [pc for pc in retired if start <= pc < end]
    rows = [line for line in out["trace data 1,100000"].splitlines() if line[:1].isdecimal()]
    pcs = [int(pc, 16) for pc in re.findall(r"@\d+ 0x([0-9a-f]+) <on_trap", "\n".join(rows))]
    access = re.compile(r"^\d+\t.{3}0x([0-9a-f]+) <[^>]*>:\t[ls][bhwd]u?\t", re.M)
    assert len(rows) == len(pcs) > 10
    assert pcs == [int(pc, 16) for pc in access.findall(out[ALL])]


@every_gdb
def test_what_is_left_out_is_a_gap(elf: Path, gdb: str, tmp_path: Path) -> None:
    """Two functions that run apart from each other: nobody takes one for the continuation of the other."""
    known = places(elf)
    out, retired = traced(elf, tmp_path, "trace start -function fib,on_trap", gdb)
    apart = [[pc for pc in retired if known[n][0] <= pc < known[n][1]] for n in ("fib", "on_trap")]
    rows = out[ALL].splitlines()
    gaps = [number for number, row in enumerate(rows) if "[trace disabled, then trace enabled at another place" in row]
    assert gaps and gaps[0] == len(apart[0])
    assert len(rows) - len(gaps) == sum(map(len, apart))
    assert len(out["trace gaps 1,10000"].strip().splitlines()) == len(gaps)


def lines_of(text: str) -> int:
    """The line of demo.c that begins with *text*."""
    source = (EXAMPLES / "demo.c").read_text().splitlines()
    return next(number for number, line in enumerate(source, 1) if line.strip().startswith(text))


def test_forms_of_a_range(elf: Path, tmp_path: Path) -> None:
    start, end = places(elf)["fib"]
    assert places(elf)["classify"][0] == end
    line = lines_of("static int fib")
    forms = ["fib,classify", f"fib,+{end - start}", f"'&fib, {end:#x}'", f"{start},{end}", f"demo.c:{line},&classify",
             "fib,fib+6 -range fib+4,classify"]  # fmt: skip
    commands = [f"trace start -range {form}" for form in forms]
    with connected(FilterRig(elf, tmp_path / "rig")) as begin:
        out = run_gdb(elf, [*begin, *commands])
    for command in commands:
        assert f"encoder0 traces only {start:#x} to {end - 1:#x}\n" in out[command], command


def test_names_that_are_no_expressions(tmp_path: Path) -> None:
    """Parts of functions have dots in their names; there is no debug information here."""
    source = tmp_path / "parts.c"
    source.write_text(
        'int __attribute__((noinline)) part(int n) __asm__("work.part.0");\n'
        "int part(int n) { return n * n + 1; }\nint main(void) { return part(7); }\n"
    )
    elf = compile_program(tmp_path, source, options=("-g0",))
    commands = ["trace start -function work.part.0", "trace start -range work.part.0,main"]
    with connected(FilterRig(elf, tmp_path / "rig")) as begin:
        out = run_gdb(elf, [*begin, *commands, "trace start -function work.part.1"])
    known = places(elf)
    for command, end in zip(commands, (known["work.part.0"][1], known["main"][0]), strict=True):
        assert f"encoder0 traces only {known['work.part.0'][0]:#x} to {end - 1:#x}" in out[command]
    line = out["trace start -function work.part.1"].strip()
    assert line == 'trace start: -function work.part.1: No symbol "work.part.1" in current context.'


def test_modes(elf: Path, tmp_path: Path) -> None:
    """The program runs in machine mode alone."""
    out, retired = traced(elf, tmp_path / "m", "trace start -priv m,u")
    assert listed(out[ALL]) == retired and "traces only mode U, M" in out["trace status"]
    out, retired = traced(elf, tmp_path / "u", "trace start -priv u")
    assert retired and "nothing has been traced yet" in out[ALL]


def test_what_cannot_be_done(elf: Path, tmp_path: Path) -> None:
    """One line each, and then everything can still be traced."""
    said = {
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
        "trace start -function fib,main": "encoder0 at 0x20000000: has 1 filter, 2 separate ranges need one each: trace"
        " fewer ranges",
    }
    with connected(FilterRig(elf, tmp_path / "rig", units=1)) as begin:
        out = run_gdb(elf, [*begin, *said, "trace start", *TO_THE_END])
    assert {command: out[command].strip() for command in said} == said
    assert "0 gaps" in out["trace status"] and "only" not in out["trace status"]


def test_an_encoder_without_filters(elf: Path, tmp_path: Path) -> None:
    with connected(Rig(elf, tmp_path / "rig")) as begin:
        out = run_gdb(elf, [*begin, "trace start -function fib"])
    line = "encoder0 at 0x20000000: has no filters (trTeInstFilters stays 0): trace everything"
    assert out["trace start -function fib"].strip() == line


@every_gdb
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("-ra", ["-range"]),
        ("-pri", ["-priv"]),
        ("-priv ", ["-priv m", "-priv s", "-priv u", "-priv vs", "-priv vu"]),
        ("-priv u,v", ["-priv u,vs", "-priv u,vu"]),
        ("-range fib,+4 -fu", ["-range fib,+4 -full-addresses", "-range fib,+4 -full-data-addresses",
                               "-range fib,+4 -function"]),
    ],
)  # fmt: skip
def test_completion(typed: str, offered: list[str], gdb: str) -> None:
    command = f"complete trace start {typed}"
    lines = ask_gdb(None, [SOURCE, command], gdb=gdb)[command].splitlines()
    assert [line for line in lines if line] == [f"trace start {text}" for text in offered]
