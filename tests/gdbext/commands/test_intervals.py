"""`trace intervals` and `trace goto worst` in gdb; the registers of the hart that was traced say what is right."""

from pathlib import Path

import pytest

from rvtrace_gdb.session.session import Session
from tests.gdbext.gdb_process import NEWEST_GDB, SOURCE, run_gdb
from tests.helpers.cross_compiler import demo, symbol_address
from tests.reports.intervals.golden import Observer, calls
from tests.session.board import board


@pytest.mark.parametrize("gdb", NEWEST_GDB)
def test_the_way_to_the_longest_one(tmp_path: Path, gdb: str) -> None:
    elf, file = demo(tmp_path), tmp_path / "it.rvt"
    made = board(tmp_path, elf)
    session, context = Session(connect=made.connect), made.describe()
    session.start(context)
    made.machine.hart.witness = observer = Observer(made.machine.hart)
    made.run(3000)
    session.stop(context=context)
    session.save(file, context)
    every = calls(observer.run, symbol_address(elf, "classify"))
    begin, end = max(every, key=lambda one: (one[1] - one[0], -one[0]))
    commands = [
        SOURCE, f"trace open {file}", "trace goto worst", "trace intervals classify", "trace intervals",
        "trace goto worst ", "trace position", "trace goto begin", "trace goto worst classify", "trace position ",
        "trace goto worst exception", "trace intervals *main", "trace intervals a b c",
    ]  # fmt: skip
    said = run_gdb(elf, commands, gdb=gdb)
    assert "of what?" in said["trace goto worst"]
    assert said["trace intervals classify"].startswith(f"calls of classify: {len(every)} measured\n")
    assert f"  @{begin + 1} to @{end}: {end - begin} instructions\n" in said["trace intervals classify"]
    assert said["trace intervals"] == said["trace intervals classify"]
    for command in ("trace position", "trace position "):
        assert said[command].startswith(f"In the past, at instruction {begin + 1} of ")
    assert "exceptions: none is measured" in said["trace goto worst exception"]
    assert "*main is not a function, which alone has calls" in said["trace intervals *main"]
    assert "one function or kind of trap, or two places" in said["trace intervals a b c"]
