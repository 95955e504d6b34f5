"""No-load strings: what SiFive's decoder prints for these words (sifive/trace-decoder-tests, nls.test)."""

import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.no_load_strings import filled_format, formats_in, no_load_strings


@pytest.mark.parametrize(
    ("text", "word", "printed"),
    [
        ("Foo Bar\n", 0, "Foo Bar\n"),
        ("uint 8: %u %u %u %u, and %%", 0x01020304, "uint 8: 1 2 3 4, and %"),
        ("int 8: %d %d %d %d", 0xFF02FD04, "int 8: -1 2 -3 4"),
        ("hex 8: 0x%02x 0x%02x 0x%02x 0x%02x", 0xFF02FF04, "hex 8: 0xff 0x02 0xff 0x04"),
        ("oct 8: %o %o %o %o", 0x152A3F54, "oct 8: 25 52 77 124"),
        ("char 8: %c %c %c %c", 0x61626364, "char 8: a b c d"),
        ("uint 11: %u %d %u", 0xFFFFFC2A, "uint 11: 2047 -1 42"),
        ("int 11: %d %d %d", 0x003FFBFD, "int 11: 1 -2 -3"),
        ("hex 11: %x %x %x", 0xFFFFFFFF, "hex 11: 7ff 7ff 3ff"),
        ("oct 11: %o %o %o", 0x0F67202A, "oct 11: 173 710 52"),
        ("uint 16: %u %u", 0xFFFFFFFF, "uint 16: 65535 65535"),
        ("int 16: %d %d", 0xFFD604D2, "int 16: -42 1234"),
        ("hex 16: 0x%x 0x%x", 0x12345678, "hex 16: 0x1234 0x5678"),
        ("uint 32: %u", 0xFFFFFFFF, "uint 32: 4294967295"),
        ("int 32: %d", 0xFFFFFFD6, "int 32: -42"),
        ("int 32: %ld", 0x00BC614E, "int 32: 12345678"),
    ],
)
def test_words_are_split_among_conversions(text: str, word: int, printed: str) -> None:
    assert filled_format(text, word) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [("%5d|", "   -2|"), ("%-5d|", "-2   |"), ("%+i|", "-2|"), ("%05d|", "-0002|"), ("%.3d", "-002")],
)
def test_flags_width_and_precision(text: str, printed: str) -> None:
    """As C has them."""
    assert filled_format(text, 0xFFFF_FFFE) == printed


def test_what_is_no_number_is_hexadecimal() -> None:
    assert filled_format("%s at %f", 0x1234_5678) == "0x1234 at 0x5678"


def test_five_conversions_have_no_room() -> None:
    assert filled_format("%d %d %d %d %d", 0) is None


def test_other_strings_of_the_section_are_skipped() -> None:
    content = b"GCC: (GNU) 10.2.0\0" + b"0:zero\0" + b"31:last %d\0" + b"32:no channel\0" + b"x:no\0" + b"0:again\0"
    assert formats_in(content) == {0: "zero", 31: "last %d"}


def test_they_are_read_from_a_program(tmp_path: Path) -> None:
    source, elf = tmp_path / "nls.S", tmp_path / "nls.elf"
    source.write_text('.section .comment\n.asciz "7:seven %d"\n.text\n.globl _start\n_start: j _start\n')
    subprocess.run(["riscv64-unknown-elf-gcc", "-nostdlib", "-o", elf, source], check=True)
    assert no_load_strings(str(elf)) == {7: "seven %d"}


@pytest.mark.parametrize("content", [b"", b"no ELF", b"\x7fELF" + bytes(60)])
def test_a_file_that_cannot_be_read_has_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    assert no_load_strings(str(tmp_path / "x")) == {}
    assert no_load_strings(str(tmp_path / "absent")) == {}
