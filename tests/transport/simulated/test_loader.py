"""The ELF loader. Expectations: what the linker was asked for, and its own view through `nm` and `readelf`."""

import struct
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus, ElfError, ElfFile, load_elf
from tests.transport.simulated.hart.programs import assemble, build

PROGRAM = """
#include "hart.inc"
    .section .text.start, "ax", @progbits
    .globl _start, there
_start: nop
there: finish
    .data
values: .dword 0x1122334455667788
    .bss
    .globl zeros
zeros: .space 64
"""


@pytest.fixture(params=["rv64imac", "rv32imac"])
def elf(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return assemble(tmp_path, "program", PROGRAM, request.param)


def symbols(elf: Path) -> dict[str, int]:
    listing = subprocess.run(["riscv64-unknown-elf-nm", str(elf)], check=True, capture_output=True, text=True).stdout
    return {name: int(value, 16) for value, _, name in (line.split() for line in listing.splitlines())}


def test_entry_and_symbols(elf: Path) -> None:
    file = ElfFile(elf)
    assert file.xlen == (64 if "rv64" in elf.name else 32)
    assert file.entry == 0x8000_0000
    expected = symbols(elf)
    for name in ("_start", "there", "tohost", "values", "zeros"):
        assert file.symbol(name) == expected[name]
    assert file.symbol("no such symbol") is None


def test_memory_after_loading(elf: Path) -> None:
    bus = Bus()
    at = symbols(elf)
    bus.write_bytes(at["zeros"], b"\xff" * 80)
    assert load_elf(bus, elf) == 0x8000_0000
    assert bus.read(at["values"], 8) == 0x1122334455667788
    assert bus.read_bytes(at["zeros"], 80) == bytes(64) + b"\xff" * 16


def test_segments_go_to_their_physical_addresses() -> None:
    """The initialised data of this program is linked to run at 0x80000000 and lies behind the code."""
    path = Path(__file__).resolve().parents[2] / "data" / "ntrace-reference" / "t1.elf"
    bus = Bus(0x8000_0000, 1 << 20)
    bus.add_ram(0x2001_0000, 64 << 10)
    load_elf(bus, path)
    stored = path.read_bytes()[0xA000 : 0xA000 + 0x428]
    assert bus.read_bytes(0x2001_8650, 0x428) == stored
    assert bus.read_bytes(0x8000_0000, 0x428) == bytes(0x428)


def test_program_outside_memory(elf: Path) -> None:
    with pytest.raises(ElfError, match="no RAM at 0x80000000"):
        load_elf(Bus(0x9000_0000, 0x1000), elf)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an ELF"),
        (b"#!/bin/sh\n" * 10, "not an ELF"),
        (b"\x7fELF" + b"\x02\x02" + bytes(60), "little-endian"),
        (b"\x7fELF" + b"\x02\x01" + bytes(12) + struct.pack("<H", 62) + bytes(60), "not for RISC-V"),
    ],
)
def test_what_is_no_program(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ElfError, match=reason) as caught:
        ElfFile(path)
    assert caught.value.path == str(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ElfError, match="cannot be read"):
        ElfFile(tmp_path / "absent")


def test_truncated_files_give_one_error(tmp_path: Path) -> None:
    whole = build(tmp_path, "traps.S", march="rv64imac").read_bytes()
    short = tmp_path / "short"
    for size in range(0, len(whole), 97):
        short.write_bytes(whole[:size])
        try:
            load_elf(Bus(), short)
            ElfFile(short).symbol("tohost")
        except ElfError as error:
            assert str(short) in str(error)
