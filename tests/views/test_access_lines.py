"""The lines of accesses, by hand."""

from dataclasses import replace

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program.elf import Elf, ElfSection, Symbol
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import LOAD, STORE, AccessNote, MemoryAccess
from rvtrace_gdb.views.text_rows import access_lines


def program() -> Image:
    """main at 0x80000000, buffer (16 bytes) at 0x80000100."""
    code = ElfSection(0x8000_0000, 0x8000_0010, [Symbol(0x8000_0000, "main", 16, True)])
    data = ElfSection(0x8000_0100, 0x8000_0200, [Symbol(0x8000_0100, "buffer", 16, True)])
    image = Image(32)
    image.add_elf(replace(Elf("a.elf", "", 32), sections=[code, data]))
    return image


def history(*accesses: MemoryAccess) -> History:
    builder = HistoryBuilder()
    builder.append(Path([(0x8000_0000, 0x8000_0004, 0x8000_0008)]))
    found = builder.finish(Accounting(0, 0, 0, 0))
    found.accesses = accesses
    return found


ACCESSES = (
    MemoryAccess(LOAD, 4, "", 0x8000_0108, 0x2A, position=0),
    MemoryAccess(STORE, 1, "", 0x8000_0300, 7, position=2),
    MemoryAccess(STORE, 8, "", 0x8000_00FC, 1, offset=0x1F0, notes=(AccessNote.AMBIGUOUS,)),
    MemoryAccess(LOAD, 4, "", None, 3, offset=0x200, notes=(AccessNote.NOT_YET,)),
)


def test_all() -> None:
    assert list(access_lines(history(*ACCESSES), program())) == [
        "1\t@1\t0x80000000 <main+0>:\tload 4 bytes at 0x80000108 <buffer+8> = 0x0000002a",
        "2\t@3\t0x80000008 <main+8>:\tstore 1 byte at 0x80000300 = 0x07",
        "3\t@?\ttrace byte 0x1f0:\tstore 8 bytes at 0x800000fc = 0x0000000000000001"
        " # its place is not known: more than one instruction may have made it",
        "4\t@?\ttrace byte 0x200:\tload 4 bytes = 0x00000003 # no response in the trace",
    ]


def test_those_to_some_memory() -> None:
    """An access that only touches it counts; one whose address is not known does not."""
    found = [line.partition("\t")[2] for line in access_lines(history(*ACCESSES), program(), (0x8000_0100, 16))]
    assert found == [line.partition("\t")[2] for line in list(access_lines(history(*ACCESSES), program()))[:3:2]]
    assert list(access_lines(history(*ACCESSES), program(), (0x8000_0104, 4))) == []


def test_none() -> None:
    assert list(access_lines(history(), program())) == []
