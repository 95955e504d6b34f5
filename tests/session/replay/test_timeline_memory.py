"""Which memory is known in the past: what readelf says is not written, and nothing else."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import Path as Ran
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support.errors import silent
from tests.decode import assembler as asm
from tests.decode.program.elves import build_library, strip
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
