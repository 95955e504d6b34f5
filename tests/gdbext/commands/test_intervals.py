"""`trace intervals` and `trace goto worst` in gdb; the registers of the hart that was traced say what is right."""

import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.session import Session
from tests.gdbext.gdb_process import NEWEST_GDB, SOURCE, run_gdb
from tests.helpers.cross_compiler import demo, symbol_address
from tests.reports.intervals.golden import Observer, calls
from tests.session.board import board


@pytest.mark.parametrize("gdb", NEWEST_GDB)
def test_the_way_to_the_longest_one(tmp_path: Path, gdb: str, capsys: pytest.CaptureFixture[str]) -> None:
    elf, file = demo(tmp_path), tmp_path / "it.rvt"
    made = board(tmp_path, elf)
    session, context = Session(connect=made.connect), made.describe()
    session.start(context)
    made.machine.hart.witness = observer = Observer(made.machine.hart)
    made.run(3000)
    session.stop(context=context)
    session.save(file, context)
    every = calls(observer.run, symbol_address(elf, "classify"))
    numbers, some = "1,1500", [one for one in every if one[0] < 1500]
    begin, end = max(every, key=lambda one: (one[1] - one[0], -one[0]))
    commands = [
        SOURCE, f"trace open {file}", "trace goto worst", "trace intervals classify", "trace intervals",
        "trace goto worst ", "trace position", "trace goto begin", "trace goto worst classify", "trace position ",
        "trace goto worst exception", "trace intervals *main", "trace intervals a b c",
        f"trace intervals classify {numbers}", f"trace intervals {numbers}",
        "trace intervals classify -time 1,9", "trace intervals main -time",
        "trace intervals -times 1 classify", f"trace goto worst classify {numbers}", "trace position  ",
        f'interpreter-exec mi "-rvtrace-intervals --range {numbers} classify"',
    ]  # fmt: skip
    said = run_gdb(elf, commands, gdb=gdb)
    assert said[f"trace intervals classify {numbers}"].startswith(
        f"calls of classify: {len(some)} measured of those that begin at @1 to @1500\n"
    )
    assert said[f"trace intervals {numbers}"] == said[f"trace intervals classify {numbers}"]
    assert "time 1,9: the trace of hart 0 has no timestamps" in said["trace intervals classify -time 1,9"]
    assert "-time: which time, in ticks of the trace? T, or FIRST,LAST." in said["trace intervals main -time"]
    assert "unknown option -times" in said["trace intervals -times 1 classify"]
    longest = max(some, key=lambda one: (one[1] - one[0], -one[0]))[0] + 1
    assert said["trace position  "].startswith(f"In the past, at instruction {longest} of ")
    assert f'measured="{len(some)}"' in said[commands[-1]]
    assert main(["intervals", str(file), numbers, "--calls", "classify", "--json", "--quiet"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert (listed["measured"], listed["first"], listed["last"]) == (len(some), 1, 1500)
    assert "of what?" in said["trace goto worst"]
    assert said["trace intervals classify"].startswith(f"calls of classify: {len(every)} measured\n")
    assert f"  @{begin + 1} to @{end}: {end - begin} instructions\n" in said["trace intervals classify"]
    assert said["trace intervals"] == said["trace intervals classify"]
    for command in ("trace position", "trace position "):
        assert said[command].startswith(f"In the past, at instruction {begin + 1} of ")
    assert "exceptions: none is measured" in said["trace goto worst exception"]
    assert "*main is not a function, which alone has calls" in said["trace intervals *main"]
    assert "one function or kind of trap, or two places" in said["trace intervals a b c"]
