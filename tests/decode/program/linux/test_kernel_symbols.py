"""Names of a kernel: as nm has them in System.map, and as /proc/kallsyms has them."""

import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.decode.program.image import Image, read_elf
from tests.decode.program.elves import build

NM = "riscv64-unknown-elf-nm"
PROGRAM = """
.globl entry
.type entry, @function
entry: nop; nop; ret
.size entry, .-entry
local: nop; j entry
.globl data
.data
data: .word 1
"""


def test_a_list_of_nm_has_the_names_of_the_file(tmp_path: Path) -> None:
    elf = build(tmp_path, PROGRAM, "-Wl,-Ttext=0x80001000")
    listed = tmp_path / "System.map"
    listed.write_bytes(subprocess.run([NM, "-n", elf], check=True, capture_output=True).stdout)
    names, expected = Image(), Image()
    names.add_elf(read_elf(listed), loaded=False)
    expected.add_elf(read_elf(elf))
    places = range(0x80001000, 0x8000100A, 2)
    assert [names.symbol(pc) for pc in places] == [expected.symbol(pc) for pc in places]
    assert names.symbol(0x80001008) == ("local", 2)
    assert next(iter(names.symbols_named("entry")))[0] == 0x80001000
    assert not names.path and names.symbol(0x80001000 - 2) is None


def kallsyms(tmp_path: Path, text: str) -> Image:
    file = tmp_path / "kallsyms"
    file.write_text(text)
    image = Image()
    image.add_elf(read_elf(file), loaded=False)
    return image


def test_modules_are_between_and_after_each_other(tmp_path: Path) -> None:
    """In the order of the kernel, not in that of addresses; the last symbol of an area goes to the end of its page."""
    image = kallsyms(
        tmp_path,
        "ffffffff80002000 T _stext\nffffffff80002010 t do_it\nffffffff80100000 D data\n"
        "ffffffff01e70000 t opened\t[fuse]\nffffffff01e70100 d table\t[fuse]\nffffffff01e00010 t other [nvme]\n"
        "ffffffff01e70040 T closed\t[fuse]\n",
    )
    found = {
        0xFFFFFFFF80002000: ("_stext", 0), 0xFFFFFFFF8000200E: ("_stext", 14), 0xFFFFFFFF80002010: ("do_it", 0),
        0xFFFFFFFF80002FFE: ("do_it", 0xFEE), 0xFFFFFFFF01E7003E: ("opened", 0x3E), 0xFFFFFFFF01E70040: ("closed", 0),
        0xFFFFFFFF01E700FE: ("closed", 0xBE), 0xFFFFFFFF01E70100: None, 0xFFFFFFFF01E00FFE: ("other", 0xFEE),
        0xFFFFFFFF01E01000: None, 0x2000: None,
    }  # fmt: skip
    assert {pc: image.symbol(pc) for pc in found} == found


def test_an_offset_moves_all_names(tmp_path: Path) -> None:
    file = tmp_path / "System.map"
    file.write_text("80001000 T here\n80001004 T there\n")
    image = Image(32)
    image.add_elf(read_elf(file), 0x400000, loaded=False)
    assert image.symbol(0x80401002) == ("here", 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0000000000000000 T _start\n0000000000000000 t x\n", "all addresses are 0: the kernel hides them"),
        ("ffffffff80000000 T a\nnonsense\n", "line 2 is not one of /proc/kallsyms or System.map: 'nonsense'"),
    ],
)
def test_lists_that_cannot_be_used(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(BadElf, match=why):
        kallsyms(tmp_path, text)
