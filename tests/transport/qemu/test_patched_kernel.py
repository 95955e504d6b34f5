"""A kernel in S-mode that has changed its own code, firmware in M-mode and a process in U-mode: one history of all."""

from pathlib import Path

import pytest

from tests.helpers.cross_compiler import HOME, compile_program, symbol_address
from tests.transport.qemu.machine import gdb, histories, logged, told

KERNEL = HOME / "tests" / "programs" / "hard" / "patched_kernel.S"
CALLS = 200
ASKED = CALLS // 4  # of the firmware


@pytest.mark.parametrize("format", ["ntrace", "etrace"])
def test_what_ran_counts_instead_of_the_file(tmp_path: Path, format: str) -> None:
    elf = compile_program(tmp_path, KERNEL, march="rv64gc")
    capture = tmp_path / "x.rvt"
    commands = ["hbreak patched", "continue", "delete", f"trace start -context -format {format}", "hbreak finish"]
    said = gdb(elf, tmp_path, [*commands, "continue", "trace history /a 1,100000000", f"trace save {capture}"])
    assert "warning" not in str(said) and "hint" not in str(said)
    [expected] = logged(elf)
    begin, end = (expected.pcs.index(symbol_address(elf, name)) for name in ("patched", "finish"))
    history = histories(capture).histories[0]
    pcs, traps = told(history)
    assert pcs == expected.pcs[begin:end]
    assert [begin + before for before in traps] == [before for before, _, _ in expected.traps if begin <= before < end]
    assert len(traps) == CALLS + ASKED
    for name, offset, mode in (("process", 4, 0), ("serve", 0, 1), ("firmware", 0, 3)):  # an ecall does not retire
        at = symbol_address(elf, name) + offset
        assert {history.context_at(i).prv for i, pc in enumerate(pcs) if pc == at} == {mode}, name
