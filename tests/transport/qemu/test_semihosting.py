"""Semihosting calls, which QEMU serves at their ebreak without a trap: what ran is what QEMU's own log has."""

import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.helpers.cross_compiler import HOME, compile_program, symbol_address
from tests.transport.qemu.machine import Ran, logged, recorded, same

SERVED = "-semihosting-config", "enable=on,target=native,chardev=nowhere", "-chardev", "null,id=nowhere"
MARCHES = ("rv64imac_zicsr", "rv32imac_zicsr")
CALLS = 4
SOURCES = {"plugin": [], "log": ["--source", "log"], "etrace": ["--etrace"]}


def program(folder: Path, march: str) -> Path:
    return compile_program(folder, HOME / "tests" / "programs" / "qemu" / "semihosting.S", march=march)


def expected(elf: Path, *more: str, traps: int) -> Ran:
    (ran,) = logged(elf, *more)
    assert ran.pcs.count(symbol_address(elf, "semi")) == CALLS and len(ran.traps) == traps
    return ran


@pytest.mark.parametrize("march", MARCHES)
@pytest.mark.parametrize("options", SOURCES.values(), ids=SOURCES)
def test_the_trace_goes_on_behind_each_call(tmp_path: Path, march: str, options: list[str]) -> None:
    """The last call ends the run."""
    elf = program(tmp_path, march)
    found, said = recorded(elf, tmp_path, *options, more=SERVED)
    same(found.histories[0], expected(elf, *SERVED, traps=1), to=symbol_address(elf, "semi"))
    assert "is this the program" not in said


@pytest.mark.parametrize("options", SOURCES.values(), ids=SOURCES)
def test_where_nobody_serves_them_they_trap(tmp_path: Path, options: list[str]) -> None:
    elf = program(tmp_path, MARCHES[0])
    found, _ = recorded(elf, tmp_path, *options)
    same(found.histories[0], expected(elf, traps=1 + CALLS), to=symbol_address(elf, "finish") - 4)


@pytest.mark.parametrize("format", ["--ntrace", "--etrace"])
@pytest.mark.parametrize("more", [SERVED, ()], ids=["served", "trapped"])
def test_a_list_of_addresses_is_encoded_and_decoded(
    tmp_path: Path, format: str, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    elf, pcs, file = program(tmp_path, MARCHES[0]), tmp_path / "pcs.txt", tmp_path / "x.rvt"
    ran = [pc for pc in expected(elf, *more, traps=1 if more else 1 + CALLS).pcs if pc >= 0x8000_0000]
    ran = ran[: ran.index(symbol_address(elf, "finish")) if symbol_address(elf, "finish") in ran else None]
    pcs.write_text("".join(f"{pc:#x}\n" for pc in ran))
    assert main(["encode", "--elf", str(elf), "--pcs", str(pcs), format, "-o", str(file)]) == 0
    capsys.readouterr()
    assert main(["decode", str(file), "--json", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [int(row["addr"], 16) for row in rows if "addr" in row] == ran
