"""`trace fork` in real gdbs. What the program computes is known from its source, choice.c."""

import json
import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import GDB, INTERRUPT, SOURCE, all_gdbs, newest_gdb, run_gdb
from tests.session.fork.runs import DEPTH, ForkRun, fork_run
from tests.session.fork.test_spike import SOURCE as CHOICE

REGISTER, MEMORY = "set $a0 = 9", "print limit = 9"


def mixed(value: int) -> int:
    return value * 3 + 1 if value & 1 else value >> 1


def total(limit: int, value: int = 7) -> int:
    """What choice.c adds up."""
    found = 0
    for _ in range(limit):
        value = mixed(value)
        found += value // 3
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ForkRun:
    return fork_run(tmp_path_factory.mktemp("choice"), steps=700, source=CHOICE)


def printed(text: str) -> str:
    """The value that `print` printed."""
    return text.rpartition(" = ")[2].strip()


@all_gdbs
def test_the_fix_is_tried(run: ForkRun, gdb: str) -> None:
    """A variable is changed, functions are called, and the past stays as it was."""
    out = run_gdb(run.elf, [
        SOURCE, f"trace open {run.files['ntrace']}", "trace replay", "trace goto main", "p total", "trace fork",
        "trace position", "p $trace_pos", MEMORY, "p mixed(100)", "p mixed(7)", "break finish", "continue", "p  total",
        "bt", "info threads", "reverse-stepi", "p   total", "p limit", "set var limit = 3",
    ], gdb=gdb)  # fmt: skip
    assert "nothing of it reaches the target" in out["trace fork"]
    assert re.fullmatch(r"In a fork, made at instruction \d+\.\s*", out["trace position"])
    assert (printed(out["p $trace_pos"]), printed(out[MEMORY])) == ("0", "9")
    assert (printed(out["p mixed(100)"]), printed(out["p mixed(7)"])) == ("50", "22")
    assert re.search(r"Breakpoint \d+, finish \(\)", out["continue"])
    assert printed(out["p  total"]) == str(total(9)) != str(total(5))
    assert re.search(r"#0 +finish .*\n#1 .* main \(\)", out["bt"])
    assert "The fork is left" in out["reverse-stepi"]
    assert printed(out["p   total"]) == printed(out["p total"]) == "0" and printed(out["p limit"]) == "5"
    assert "Cannot access memory" in out["set var limit = 3"]


@newest_gdb
def test_steps_breakpoints_with_conditions_and_watchpoints(run: ForkRun, gdb: str) -> None:
    out = run_gdb(run.elf, [
        SOURCE, f"trace open {run.files['tandem']}", "trace replay", "trace goto 1", "trace goto -next mixed", "p $a0",
        "trace fork", REGISTER, "finish", "next", "watch total", "continue", "continue ", "delete",
        "break mixed if value == 22", "continue  ", "p value", "stepi", "trace fork -end", "p  $a0",
    ], gdb=gdb)  # fmt: skip
    first, second = mixed(9), mixed(mixed(9))
    assert printed(out["p $a0"]) == printed(out["p  $a0"]) == "7"
    assert f"Value returned is $2 = {first}" in out["finish"]
    assert re.search(rf"Old value = 0\s+New value = {first // 3}\b", out["continue"])
    assert re.search(rf"Old value = {first // 3}\s+New value = {first // 3 + second // 3}\b", out["continue "])
    assert mixed(mixed(mixed(mixed(9)))) == 22 and printed(out["p value"]) == "22"


def test_what_it_does_not_do_is_said(run: ForkRun, tmp_path: Path) -> None:
    deep = fork_run(tmp_path, source=DEPTH)
    read = deep.witness.reads[0] + 1
    out = run_gdb(deep.elf, [
        SOURCE, "trace fork", f"trace open {deep.files['ntrace']}", "trace replay", "trace fork 100000", "trace fork x",
        "trace fork -end", "trace fork -nothing", "trace fork 5 -through-devices", "trace fork 10", "continue",
        "p/x $pc", "p $a5", "stepi",
        "p  $a5", "trace fork -check", "trace fork 10 ", "continue ", "set $sp = 0x100",
        "set $pc = fib", "stepi 9", "next", "trace live",
    ])  # fmt: skip
    assert out["trace fork"].startswith("going back needs rvtrace between gdb and the target")
    assert "there is no number 100000 in the history" in out["trace fork 100000"]
    assert out["trace fork x"].startswith("trace fork: x: no number")
    assert "there is no fork to leave" in out["trace fork -end"]
    assert "unknown option" in out["trace fork -nothing"].lower() or "-nothing" in out["trace fork -nothing"]
    assert "-through-devices and -hart go with -check" in out["trace fork 5 -through-devices"]
    assert f"The fork stops at {hex(deep.witness.pcs[read - 1])}: it reads 4 bytes at 0x200bff8" in out["continue"]
    assert int(printed(out["p/x $pc"]), 16) == deep.witness.pcs[read - 1]
    assert printed(out["p  $a5"]) == "<unavailable>"
    for command in ("stepi 9", "next"):  # it cannot be executed: the command ends, once
        assert out[command].count("The fork stops at") == 1, command
    assert f"{read - 1} instructions as traced" in out["trace fork -check"]


def test_ctrl_c_ends_a_fork_that_loops(run: ForkRun) -> None:
    out = run_gdb(run.elf, [
        SOURCE, f"trace open {run.files['ntrace']}", "trace replay", "trace goto finish", "trace fork",
        INTERRUPT, "continue", "bt", "p limit",
    ])  # fmt: skip
    assert "SIGINT" in out["continue"] and "finish" in out["bt"] and printed(out["p limit"]) == "5"


def test_machine_interface_and_bench(run: ForkRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fork", str(run.files["ntrace"]), "9,+50", "--json"]) == 0
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    with Bench(gdb=GDB) as bench:
        bench.open(run.files["ntrace"])
        assert bench.fork_check(numbers="9,+50") == [row]
        bench.engine.execute("trace replay")
        stop = bench.fork(9)
        bench.engine.execute(f"file {run.elf}")
        bench.engine.execute(MEMORY)
        assert stop.address == run.witness.pcs[8] and printed(bench.engine.execute("print limit")) == "9"
        bench.leave_fork()
        assert printed(bench.engine.execute("print limit")) == "5"
