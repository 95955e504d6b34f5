"""Core dumps of Espressif's chips on the command line."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.decode.etrace.esp32 import images as made
from tests.decode.etrace.esp32.images import Described

CORE = made.elf_core([Described(made.stream("pt10"), head=len(made.stream("pt10")), mode=made.LINEAR)])


def ran(listing: str) -> list[int]:
    """The addresses in a listing."""
    return [int(pc, 16) for pc in re.findall(r"^\d+\t +0x([0-9a-f]+)", listing, re.M)]


@pytest.fixture(params=[bytes, made.flash_image, made.serial_log], ids=["elf", "flash", "serial"])
def dump(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    form: Callable[[bytes], bytes] = request.param
    (tmp_path / "dump").write_bytes(form(CORE))
    return tmp_path / "dump"


def test_import_makes_a_capture_of_a_core_dump(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = tmp_path / "x.rvt"
    assert main(["import", str(dump), "--elf", str(made.ELF), "-o", str(capture)]) == 0
    said = capsys.readouterr().out
    assert "20000 instructions, 0 gaps" in said
    assert "tracing ended when the program panicked" in said
    assert main(["decode", str(capture), "--elf", str(made.ELF)]) == 0
    assert ran(capsys.readouterr().out) == made.executed()
    assert main(["dump", str(capture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum("te_inst" in line for line in lines) == 887  # packets in the buffer


def test_a_core_dump_needs_no_import(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", str(dump), "--elf", str(made.ELF)]) == 0
    assert ran(capsys.readouterr().out) == made.executed()


def test_a_core_dump_needs_its_elf(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(dump), "-o", str(tmp_path / "x.rvt")]) == 1
    assert capsys.readouterr().err.strip().endswith("a core dump; which program ran? Give its ELF (--elf FILE)")


def test_a_core_dump_without_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "core.elf").write_bytes(CORE.replace(b"ESP_RISCV_TRACE", b"ESP_RISCV_OTHER"))
    assert main(["decode", str(tmp_path / "core.elf"), "--elf", str(made.ELF)]) == 1
    assert "this core dump has no trace" in capsys.readouterr().err
