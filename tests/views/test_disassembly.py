"""Instruction text from gdb, objdump or the bare encodings. The expectation is always a real gdb's own listing."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.views import instruction_text
from rvtrace_gdb.views.disassembly import Disassembler
from rvtrace_gdb.views.text_rows import line
from tests.helpers.gdb_transcripts import FOLDER

GDB = "gdb-multiarch"
LONG_ENCODINGS = """
.globl _start
_start:
    nop
    .2byte 0x001f, 0x1122, 0x3344
    c.nop
    .4byte 0x3f, 0x11223344
    c.nop
    add a0, a0, a1
    .2byte 0x007f, 1, 2, 3, 4
    c.nop
    c.nop
"""


def gdb_listing(elf: Path, first: int, last: int) -> list[str]:
    """What `disassemble /r` of a real gdb prints, without the indentation."""
    command = [GDB, "-nx", "-batch", "-ex", f"disassemble /r {first:#x},{last:#x}", str(elf)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [row[3:] for row in shown.splitlines() if row.startswith("   0x")]


def our_listing(image: Image, disassembler: Disassembler, addresses: list[int]) -> list[str]:
    texts = disassembler.texts(addresses)
    return [line(address, texts[address], image.xlen, disassembler.raw(address)) for address in addresses]


def addresses_of(rows: list[str]) -> list[int]:
    return [int(row[2:].partition(":")[0].split()[0], 16) for row in rows]


@pytest.fixture
def long_encodings(tmp_path: Path) -> Path:
    source, elf = tmp_path / "long.S", tmp_path / "long.elf"
    source.write_text(LONG_ENCODINGS)
    command = ["riscv64-unknown-elf-gcc", "-march=rv64imac", "-mabi=lp64", "-nostdlib", "-Ttext=0x80000000"]
    subprocess.run([*command, str(source), "-o", str(elf)], check=True)
    return elf


def only(monkeypatch: pytest.MonkeyPatch, *found: str) -> None:
    """As if only programs with one of *found* in their names were installed."""
    real = shutil.which
    for module in (instruction_text, instruction_text):
        monkeypatch.setattr(
            module.shutil, "which", lambda name: real(name) if any(part in name for part in found) else None
        )


@pytest.mark.parametrize("elf", ["demo64.elf", "demo32.elf"])
def test_all_of_a_program_reads_as_in_gdb(elf: str) -> None:
    expected = gdb_listing(FOLDER / elf, image_symbol(FOLDER / elf, "fib"), image_symbol(FOLDER / elf, "main") + 64)
    image = Image.from_elf(FOLDER / elf)
    with Disassembler(image) as disassembler:
        assert our_listing(image, disassembler, addresses_of(expected)) == expected


def test_long_encodings_read_as_in_gdb(long_encodings: Path) -> None:
    expected = gdb_listing(long_encodings, 0x80000000, 0x80000022)
    image = Image.from_elf(long_encodings)
    with Disassembler(image) as disassembler:
        assert our_listing(image, disassembler, addresses_of(expected)) == expected


def test_without_gdb_objdump_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for `# 0x80001130 <table>`: names of data are gdb's own."""
    expected = gdb_listing(FOLDER / "demo64.elf", 0x80000020, 0x800000F0)
    only(monkeypatch, "objdump")
    image = Image.from_elf(FOLDER / "demo64.elf")
    with Disassembler(image) as disassembler:
        found = our_listing(image, disassembler, addresses_of(expected))
    assert [row.partition(" #")[0] for row in found] == [row.partition(" #")[0] for row in expected]


def test_without_any_disassembler_the_encodings_remain(monkeypatch: pytest.MonkeyPatch, long_encodings: Path) -> None:
    only(monkeypatch)
    expected = gdb_listing(long_encodings, 0x80000000, 0x80000022)
    image = Image.from_elf(long_encodings)
    with Disassembler(image) as disassembler:
        found = our_listing(image, disassembler, addresses_of(expected))
    for ours, gdbs in zip(found, expected, strict=True):
        before, raw, _ = gdbs.rsplit("\t", 2) if gdbs.count("\t") == 2 else gdbs.split("\t", 2)
        units = raw.split()
        directive = ".4byte" if len(units[0]) == 8 else ".2byte"
        assert ours == f"{before}\t{raw}\t{directive}\t" + ", ".join(f"0x{unit}" for unit in units)


@pytest.mark.parametrize("xlen", [32, 64])
def test_code_that_is_not_in_the_elf_is_shown_too(xlen: int) -> None:
    """The same code, taken out of its ELF and put elsewhere: only the addresses differ."""
    elf = FOLDER / f"demo{xlen}.elf"
    image = Image.from_elf(elf)
    # fib, which calls nothing but itself
    rows = gdb_listing(elf, image_symbol(elf, "fib"), image_symbol(elf, "leaf"))
    addresses = addresses_of(rows)
    base, moved = addresses[0], 0x1000
    image.add_code(moved, image.read(base, image_symbol(elf, "leaf") - base))
    with Disassembler(image) as disassembler:
        found = our_listing(image, disassembler, [address - base + moved for address in addresses])

    def elsewhere(match: re.Match[str]) -> str:
        address = int(match[1], 16) - base + moved
        return f"0x{address:0{xlen // 4}x}:" if match[3] else f"0x{address:x}"

    assert found == [re.sub(r"0x(0*8[0-9a-f]{7})(?: <fib(\+\d+)?>)?(:)?", elsewhere, row) for row in rows]


def image_symbol(elf: Path, name: str) -> int:
    shown = subprocess.run(["riscv64-unknown-elf-nm", str(elf)], check=True, capture_output=True, text=True).stdout
    return next(int(row.split()[0], 16) for row in shown.splitlines() if row.split()[2] == name)


def test_an_address_without_code_says_so() -> None:
    with Disassembler(Image.from_elf(FOLDER / "demo64.elf")) as disassembler:
        assert disassembler.texts([0x40]) == {0x40: (None, "Cannot access memory at address 0x40")}
        assert disassembler.raw(0x40) == ""


def test_each_address_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with Disassembler(Image.from_elf(FOLDER / "demo64.elf")) as disassembler:
        first = dict(disassembler.texts([0x80000020, 0x80000022]))
        monkeypatch.setattr(instruction_text.GdbText, "disassemble", None)
        assert disassembler.texts([0x80000022, 0x80000020]) == first


def test_a_gdb_that_dies_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = gdb_listing(FOLDER / "demo64.elf", 0x80000020, 0x8000004C)
    image = Image.from_elf(FOLDER / "demo64.elf")
    with Disassembler(image) as disassembler:
        our_listing(image, disassembler, [0x80000020])
        assert disassembler._gdb is not None
        disassembler._gdb.close()
        assert our_listing(image, disassembler, addresses_of(expected)) == expected
