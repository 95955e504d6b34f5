"""`trace who-wrote` of a data trace, in the real gdb: what Spike says qsort stored, and registers by the code."""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.image import read_elf
from rvtrace_gdb.decode.program.instructions import STORE
from tests.gdbext.commands.test_data import ELF, capture, in_program
from tests.gdbext.gdb_process import SOURCE, run_gdb

__all__ = ["capture"]

ROW = re.compile(r"^(\d+)\t   0x", re.M)
PART = re.compile(r"    (?P<name>.+?): (?:.+? -> )?(?P<value>.+?), written .*, by (?P<number>\d+) 0x.*")


@pytest.fixture(scope="module")
def table() -> tuple[int, int]:
    """Where verify_data is, and how long."""
    symbols = (symbol for section in read_elf(ELF).sections for symbol in section.symbols)
    return next((symbol.address, symbol.size) for symbol in symbols if symbol.name == "verify_data")


def last_store(address: int, size: int, before: int) -> tuple[int, int]:
    """Of Spike's: the number of the instruction as gdb shows it, and the value."""
    rom, accesses = in_program()
    stores = [it for it in accesses if it.kind == STORE and it.position is not None and it.position - rom + 1 < before]
    found = next(
        it for it in reversed(stores) if it.address is not None and address - it.size < it.address < address + size
    )
    return (found.position or 0) - rom + 1, found.value or 0


def test_the_last_store_to_each_element_is_spikes(capture: Path, table: tuple[int, int]) -> None:
    elements = f"*(int (*)[20]){table[0]:#x}"
    out = run_gdb(ELF, [SOURCE, f"trace open {capture}", f"trace who-wrote {elements}"])
    written = {it.address for it in in_program()[1] if it.kind == STORE and it.size == 4}
    names = {f"({elements})[{at}]": table[0] + 4 * at for at in range(20)}
    expected = {name: last_store(at, 4, 1 << 40) for name, at in names.items() if at in written}
    newest = max(expected, key=lambda name: expected[name][0])
    shown = out[f"trace who-wrote {elements}"].splitlines()
    listed = [PART.fullmatch(line) for line in shown if line.startswith("    (")]
    found = {it["name"]: (int(it["number"]), it["value"]) for it in listed if it is not None}
    first = [name for name in list(names)[:16] if name in expected]
    assert {name: number for name, (number, _) in found.items()} == {
        name: expected[name][0] for name in first if expected[name][0] != expected[newest][0]
    }
    assert shown[0].startswith(f"{newest}: ") and len(first) > 2
    nothing = [line for line in shown if line.startswith("    Nothing wrote (")]
    without = [name for name in list(names)[:16] if name not in expected]
    assert len(nothing) == len(without)
    assert all(line.startswith(f"    Nothing wrote {it} ") for line, it in zip(nothing, without, strict=True))
    assert "    ... 4 more, each of which can be named" in shown
    assert all(int(value) == expected[name][1] for name, (_, value) in found.items())


def test_the_last_store_is_spikes(capture: Path, table: tuple[int, int]) -> None:
    address, size = table
    number, value = last_store(address, size, 1 << 40)
    earlier, earlier_value = last_store(address, size, number)
    fifth = last_store(address + 20, 4, 20000)
    commands = ["trace who-wrote verify_data", "trace who-wrote -before", "trace replay", "trace goto 20000"]
    commands += [
        f"trace who-wrote *(int *){address + 20:#x}",
        f"trace who-wrote {address + 20:#x},4",
        "trace who-wrote $a0",
    ]
    out = run_gdb(ELF, [SOURCE, f"trace open {capture}", *commands])
    for command, expected in zip(commands[:2], [(number, value), (earlier, earlier_value)], strict=True):
        assert [int(it) for it in ROW.findall(out[command])] == [expected[0]]
        assert f": 0x{expected[1]:08x}, written" in out[command]
    for command in commands[4:6]:
        assert [int(it) for it in ROW.findall(out[command])] == [fifth[0]]
    assert f": 0x{fifth[1]:08x}, written {20000 - fifth[0]} instructions ago" in out[commands[5]]
    written = r"^\$a0: \w+ -> \w+, written \d+ instructions? ago\n\d+\t +0x[^\n]*:\t[a-z.]+\ta0,"
    assert re.search(written, out["trace who-wrote $a0"])
