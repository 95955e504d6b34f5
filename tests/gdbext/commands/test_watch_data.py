"""Watchpoints in the past of a data trace, in the real gdb: where Spike says qsort accessed memory, and what it had."""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.instructions import LOAD, STORE
from tests.gdbext.commands.test_data import ELF, capture, in_program
from tests.gdbext.gdb_process import GDB, GDB16, SOURCE, run_gdb

__all__ = ["capture"]

ELEMENT = 0x8000_1B14  # an element of verify_data, which is stored to once
WATCHED = f"*(int *){ELEMENT:#x}"


@pytest.mark.parametrize("gdb, values", [(GDB, "on"), (GDB16 or GDB, "off")])
def test_watchpoints_stop_in_both_directions(gdb: str, values: str, capture: Path) -> None:
    rom, accesses = in_program()
    made = [it for it in accesses if ELEMENT - it.size < (it.address or 0) < ELEMENT + 4]
    (store,) = (((it.position or 0) - rom + 1, it.value) for it in made if it.kind == STORE)
    reads = [(it.position or 0) - rom + 1 for it in made if it.kind == LOAD]
    read = next(number for number in reads if number > store[0])
    commands = ["trace replay", f"watch {WATCHED}", "reverse-continue", "reverse-continue ", "continue"]
    commands += ["delete", f"rwatch {WATCHED}", "continue "]
    out = run_gdb(ELF, [SOURCE, f"set trace values {values}", f"trace open {capture}", *commands], gdb)
    said = " ".join(out["reverse-continue"].split())
    assert f"note: {store[0]} stores to the watched memory, at {ELEMENT:#x}" in said
    assert f"[{store[0]} of" in said and "SIGTRAP" in said
    assert ("only code and constants are known, and what the next instruction loads" in said) == (values == "off")
    assert "[1 of" in out["reverse-continue "]
    assert re.search(rf"Old value = <unreadable>\nNew value = {store[1]}\n(.*\n)*\[{store[0] + 1} of", out["continue"])
    assert re.search(rf"Value = {store[1]}\n(.*\n)*\[{read + 1} of", out["continue "])
