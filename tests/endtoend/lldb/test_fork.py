"""A fork in LLDB, by `monitor trace fork`: what choice.c computes with another limit is known from its source."""

from pathlib import Path

import pytest

from tests.console.commands.serve.served import serving
from tests.endtoend.lldb.lldb_process import LLDBS, run_lldb
from tests.gdbext.commands.test_fork import total
from tests.helpers.cross_compiler import symbol_address
from tests.session.fork.runs import fork_run
from tests.session.fork.test_spike import SOURCE


@pytest.mark.parametrize("lldb", LLDBS)
def test_a_variable_is_changed_and_the_past_is_not(lldb: str, tmp_path: Path) -> None:
    run = fork_run(tmp_path, steps=700, source=SOURCE)
    number = run.witness.pcs.index(symbol_address(run.elf, "main")) + 1
    limit = symbol_address(run.elf, "limit")
    monitor = "process plugin packet monitor trace fork"
    with serving(run.files["tandem"]) as server:
        printed = run_lldb(lldb, run.elf, [
            f"gdb-remote {server.port}", f"{monitor} {number}", "thread step-inst", f"memory write {limit:#x} 9",
            "breakpoint set --name finish", "process continue", "target variable total", f"{monitor} -end",
            "thread step-inst", "target variable total limit",
        ])  # fmt: skip
    assert f"total = {total(9)}" in printed
    assert printed.rstrip().rpartition("target variable total limit")[2].split("\n")[1:3] == [
        "(volatile unsigned int) total = 0", "(volatile unsigned int) limit = 5",
    ]  # fmt: skip
