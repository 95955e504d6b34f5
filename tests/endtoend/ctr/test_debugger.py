"""Recording that a debugger starts, in all modes and of special kinds, and what a debugger does meanwhile.

The programs of tests/programs/ctr are built without their own writes of CTR registers here.
"""

import re
from pathlib import Path

import pytest

from tests.ctr_model.model import Instruction, Model, Write
from tests.endtoend.ctr.gdb_run import HISTORY, SHOW, Expected, Setting, Shown, check, run_each, run_once
from tests.gdbext.gdb_process import GDBS, SOURCE, run_gdb
from tests.helpers.amounts import LONG, thorough
from tests.helpers.cross_compiler import HOME, compile_program, demo
from tests.helpers.qemu10 import RV32_CPU, running

U, S, M, RASEMU, STE, MTE, BPFRZ, LCOFIFRZ = (1 << bit for bit in (0, 1, 2, 7, 8, 9, 11, 12))
NESTED = HOME / "tests" / "programs" / "ctr" / "nested.c"


@thorough("test_gdb_goes_back_in_the_records")
def test_rv32(tmp_path: Path) -> None:
    """Transfer types cannot be chosen there, and it is said; everything else is as with RV64."""
    elf = demo(tmp_path, "rv32imac_zicsr")
    start = "trace ctr start -without branches"
    run = run_once(elf, tmp_path, Setting([start], "finish", M | S | U), cpu=RV32_CPU)
    assert run.check() > 200
    assert "taken branch" in {row.kind for row in run.shown.rows}
    assert "it cannot omit taken branches" in run.said[start]


@thorough("test_gdb_goes_back_in_the_records")
@pytest.mark.parametrize("gdb", GDBS if LONG else GDBS[-1:])
def test_stops_and_steps_leave_no_trace(tmp_path: Path, gdb: str) -> None:
    way = [*(f"stepi {n}" for n in range(1, 9)), "next", "step", "break classify", "continue  ", "next 2", "delete"]
    looked = ["trace ctr show", "trace history", "next 3"]
    setting = Setting(["trace ctr start"], "finish", M | S | U, on_the_way=[*way, *looked])
    run = run_once(demo(tmp_path), tmp_path, setting, gdb=gdb)
    assert run.check() > 200


@pytest.mark.parametrize("gdb", GDBS if LONG else GDBS[:1])
def test_gdb_goes_back_in_the_records(tmp_path: Path, gdb: str) -> None:
    back = [word for n in range(1, 60) for word in (f"reverse-stepi{' ' * n}", f"print/x $pc  {' ' * n}")]
    setting = Setting(["trace ctr start"], "finish", M | S | U, after=back)
    run = run_once(demo(tmp_path), tmp_path, setting, gdb=gdb, connect="trace connect")
    run.check()
    ran = [event.pc for event in run.events if isinstance(event, Instruction)]
    ran = ran[: len(ran) - ran[::-1].index(run.shown.history[max(run.shown.history)] or 0)]
    assert [int(run.said[word].split()[-1], 16) for word in back[1::2]] == ran[::-1][:59]


DEPTHS = (16, 64)


@thorough("gdbext/ctr/test_stack.py::test_it_reads_as_gdbs_backtrace")
def test_the_calls_under_way(tmp_path: Path) -> None:
    """RAS emulation: what the hart keeps are the calls that gdb finds, as far as its entries go."""
    elf = compile_program(tmp_path, NESTED)
    after = ["trace ctr stack", "backtrace"]
    settings = [
        Setting([f"trace ctr start -ras -depth {depth}"], "deepest", M | S | U | RASEMU, depth, after=after)
        for depth in DEPTHS
    ]
    frame = re.compile(r"^#(\d+) +(?:0x([0-9a-f]+) in )?(\w+)", re.M)
    for depth, run in zip(DEPTHS, run_each(elf, tmp_path, settings), strict=True):
        run.check()
        shown, gdb = frame.findall(run.said["trace ctr stack"]), frame.findall(run.said["backtrace"])
        calls = len(gdb) - 1
        assert calls == 42 and run.expected.valid == min(depth, calls)
        assert [name for _, _, name in shown][: depth + 1] == [name for _, _, name in gdb][: depth + 1]
        sources = [int(pc, 16) for _, pc, _ in shown[1 : run.expected.valid + 1]]
        assert sources == [source for source, _, _ in run.expected.rows]


@thorough("gdbext/csrs/test_csr_access.py::test_each_hart_has_its_own")
@pytest.mark.parametrize("gdb", GDBS if LONG else GDBS[:1])
def test_each_hart_has_its_own(tmp_path: Path, gdb: str) -> None:
    elf = compile_program(tmp_path, HOME / "tests" / "programs" / "reverse" / "two_harts.c")
    looks = [[f"thread {n}", f"print/x $pc{' ' * n}", SHOW + " " * n, HISTORY + " " * n] for n in (1, 2)]
    with running(elf, tmp_path, harts=2, logged=True) as machine:
        begin = [SOURCE, f"target remote :{machine.port}", "trace ctr start -all -depth 64", "break finish", "continue"]
        said = run_gdb(elf, [*begin, *looks[0], *looks[1], "trace ctr stop", "disconnect"], gdb=gdb)
        events = [machine.events(hart) for hart in (0, 1)]
    for hart, (_, where, show, history) in enumerate(looks):
        model = Model(elf, "1.0")
        pc = int(said[where].split()[-1], 16)
        expected = Expected(model, [Write(0x15F, 2), Write(0x34E, M | S | U), *events[hart]], pc, 3)
        assert check(Shown.of(said[show], said[history]), expected) >= 63
