"""Which memory is known in the past: what readelf says is not written, and nothing else."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import Path as Ran
from rvtrace_gdb.decode.program.csrs import Context
from rvtrace_gdb.decode.program.image import ContextImages, Image, read_elf
from rvtrace_gdb.support.errors import silent
from tests.decode import assembler as asm
from tests.decode.program.elves import build, build_library, strip
from tests.helpers.cross_compiler import compile_program
from tests.session.replay.test_timeline import places_in

_SECTION = re.compile(r"^\s*\[ *\d+\] (\S+)\s+(\S+)\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) \S+\s+([A-Z]*)\s", re.M)
_SOURCE = """
    .text
    .globl f
f:  c.nop
    ret
    .section .rodata
    .globl table
table: .quad 1, 2, 3
    .data
    .globl counter
counter: .quad 4
    .bss
    .skip 64
"""


def readelf_sections(elf: Path) -> list[tuple[str, int, bytes, str]]:
    """(name, address, content, flags) of those with content that are in memory."""
    text = subprocess.run(
        ["riscv64-unknown-elf-readelf", "-SW", elf], check=True, capture_output=True, text=True
    ).stdout
    content = elf.read_bytes()
    found = []
    for name, kind, address, offset, size, flags in _SECTION.findall(text):
        if kind != "NOBITS" and "A" in flags and int(size, 16):
            begin = int(offset, 16)
            found.append((name, int(address, 16), content[begin : begin + int(size, 16)], flags))
    return found


def memory_of(image: Image) -> Callable[[int, int], bytes]:
    builder = HistoryBuilder()
    builder.append(Ran([(0,)]))
    past = places_in(builder.finish(Accounting(0, 0, 0, 0)), program=image)
    past.enter(0, silent)
    return lambda address, size: past.memory(0, address, size)


@pytest.mark.parametrize("bias", [0, 0x40000000])
def test_sections_that_are_not_written(tmp_path: Path, bias: int) -> None:
    elf = build_library(tmp_path, _SOURCE)
    image = Image()
    image.add_elf(read_elf(elf), bias)
    memory = memory_of(image)
    names = set()
    for name, address, content, flags in readelf_sections(elf):
        names.add(name)
        known = b"" if "W" in flags else content
        assert memory(address + bias, len(content)) == known
        assert memory(address + bias, 3) == known[:3]
        assert memory(address + bias + 1, 2) == known[1:3]
    assert {".text", ".rodata", ".data"} <= names
    assert memory(0xDEAD0000, 8) == b""
    text = next(section for section in readelf_sections(elf) if section[0] == ".text")
    assert memory(text[1] + bias, 4096) == text[2]  # up to its end


def test_one_segment_for_all(tmp_path: Path) -> None:
    """As bare-metal linker scripts have it: what can be written is in the same segment as the code."""
    elf = build(tmp_path, _SOURCE, "-Wl,-N")
    memory = memory_of(Image.from_elf(elf))
    for _, address, content, flags in readelf_sections(elf):
        assert memory(address, len(content)) == (b"" if "W" in flags else content)


def test_a_real_program(tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text('const char name[] = "read only"; volatile int seen = 7; int main(void) { return name[seen]; }\n')
    elf = compile_program(tmp_path, source)
    memory, sections = memory_of(Image.from_elf(elf)), readelf_sections(elf)
    assert any("W" in flags for *_, flags in sections)
    for _, address, content, flags in sections:
        assert memory(address, len(content)) == (b"" if "W" in flags else content)


def test_without_sections_what_segments_say(tmp_path: Path) -> None:
    elf = build_library(tmp_path, _SOURCE)
    sections = readelf_sections(elf)
    bare = tmp_path / "bare.elf"
    content = bytearray(strip(elf).read_bytes())
    content[40:48] = bytes(8)  # e_shoff
    content[60:64] = bytes(4)  # e_shnum, e_shstrndx
    bare.write_bytes(content)
    memory = memory_of(Image.from_elf(bare))
    for _, address, data, flags in sections:
        assert memory(address, len(data)) == (b"" if "W" in flags else data)


def test_code_of_the_target_is_known_where_it_ran(tmp_path: Path) -> None:
    image = Image(64, read_missing=lambda address, size: asm.NOP * (size // 4))
    memory = memory_of(image)
    assert memory(0x2000, 8) == b""  # the target is not asked
    image.instruction(0x2004)
    image.instruction(0x2008)
    assert memory(0x2004, 64) == 2 * asm.NOP
    assert memory(0x2006, 4) == (2 * asm.NOP)[2:6]
    assert memory(0x2000, 64) == memory(0x200C, 4) == b""


def test_the_program_of_the_context(tmp_path: Path) -> None:
    """A process over the kernel, at the same addresses."""
    kernel, process = Image(64), Image(64)
    first = build(tmp_path, _SOURCE, "-Wl,-Ttext=0x1000", name="first")
    second = build(tmp_path, _SOURCE.replace("c.nop", "nop"), "-Wl,-Ttext=0x1000", name="second")
    kernel.add_elf(read_elf(first))
    process.add_elf(read_elf(second))
    program = ContextImages(kernel)
    program.attach(process, scontext=5)
    builder = HistoryBuilder()
    for scontext in (1, 5):
        builder.context(Context(0, scontext=scontext))
        builder.append(Ran([(0x1000,)]))
    past = places_in(builder.finish(Accounting(0, 0, 0, 0)), program=program)
    for position, elf in ((0, first), (1, second)):
        past.go_to(0, position)
        text = next(content for name, _, content, _ in readelf_sections(elf) if name == ".text")
        assert past.memory(0, 0x1000, len(text)) == text
