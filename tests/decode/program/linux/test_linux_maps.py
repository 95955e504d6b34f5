"""/proc/PID/maps: as the kernel documents it, as a kernel writes it, and what is none."""

import mmap
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.program.linux.user_code import BadMaps, Mapping, parse_maps, read_maps
from tests.helpers.amounts import some_of
from tests.helpers.core_captures import sifive

# Documentation/filesystems/proc.rst of Linux, chapter 1.1
_DOCUMENTED = """\
08048000-08049000 r-xp 00000000 03:00 8312       /opt/test
08049000-0804a000 rw-p 00001000 03:00 8312       /opt/test
0804a000-0806b000 rw-p 00000000 00:00 0          [heap]
a7cb1000-a7cb2000 ---p 00000000 00:00 0
a7cb2000-a7eb2000 rw-p 00000000 00:00 0
a7ed5000-a8008000 r-xp 00000000 03:00 4222       /lib/libc.so.6
a8008000-a800a000 r--p 00133000 03:00 4222       /lib/libc.so.6
aff35000-aff4a000 rw-p 00000000 00:00 0          [stack]
ffffe000-fffff000 r-xp 00000000 00:00 0          [vdso]
"""


def test_the_example_of_the_kernel_documentation() -> None:
    mappings = parse_maps(_DOCUMENTED)
    assert len(mappings) == 9
    assert mappings[1] == Mapping(0x0804_9000, 0x0804_A000, "rw-p", 0x1000, "/opt/test")
    assert [mapping.name for mapping in mappings[2:6]] == ["[heap]", "", "", "/lib/libc.so.6"]
    assert [mapping.start for mapping in mappings if mapping.executable] == [0x0804_8000, 0xA7ED_5000, 0xFFFF_E000]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "7f0000000000-7f0000001000 r-xs 00000000 00:01 1027                       /memfd:jit code (deleted)",
            Mapping(0x7F00_0000_0000, 0x7F00_0000_1000, "r-xs", 0, "/memfd:jit code", True),
        ),
        (
            "2aaaaaa000-2aaaaab000 rwxp 00000000 00:00 0 ",
            Mapping(0x2A_AAAA_A000, 0x2A_AAAA_B000, "rwxp", 0, ""),
        ),
        (
            "3ff7f00000-3ff7f01000 r-xp 1a2b3c000 fd:1f 18446744073709551615          /home/a b/  two  spaces.so",
            Mapping(0x3F_F7F0_0000, 0x3F_F7F0_1000, "r-xp", 0x1_A2B3_C000, "/home/a b/  two  spaces.so"),
        ),
        (
            "3ff7f00000-3ff7f01000 rw-p 00000000 00:00 0                              [anon:scudo:primary]",
            Mapping(0x3F_F7F0_0000, 0x3F_F7F0_1000, "rw-p", 0, "[anon:scudo:primary]"),
        ),
        (
            "3ff7f00000-3ff7f01000 rw-s 00000000 00:0e 1044                           anon_inode:[perf_event]",
            Mapping(0x3F_F7F0_0000, 0x3F_F7F0_1000, "rw-s", 0, "anon_inode:[perf_event]"),
        ),
        (
            "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\r",
            Mapping(0xFFFF_FFFF_FF60_0000, 0xFFFF_FFFF_FF60_1000, "--xp", 0, "[vsyscall]"),
        ),
        (
            "00010000-00011000 r-xp 00000000 08:02 42                                 /tmp/new\\012line",
            Mapping(0x10000, 0x11000, "r-xp", 0, "/tmp/new\nline"),
        ),
    ],
    ids=["deleted", "anonymous", "spaces", "named memory", "no path", "vsyscall", "newline"],
)
def test_lines_of_many_kinds(line: str, expected: Mapping) -> None:
    assert parse_maps(f"\n{line}\n\n") == [expected]


def test_what_this_kernel_writes_about_files_with_odd_names(tmp_path: Path) -> None:
    """Spaces, a newline, a byte that is not UTF-8, and a file that is deleted while it is mapped."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd  name (1)\n\xff.bin"))
    path.write_bytes(bytes(3 * mmap.PAGESIZE))
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), mmap.PAGESIZE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ, offset=mmap.PAGESIZE),
    ):
        before = [mapping for mapping in read_maps("/proc/self/maps") if mapping.name == str(path)]
        path.unlink()
        after = [mapping for mapping in read_maps("/proc/self/maps") if mapping.name == str(path)]
    assert [(mapping.permissions, mapping.offset, mapping.deleted) for mapping in before] == [
        ("r--p", mmap.PAGESIZE, False)
    ]
    assert before[0].end - before[0].start == mmap.PAGESIZE
    assert after == [before[0]._replace(deleted=True)]


def test_the_maps_of_a_risc_v_process() -> None:
    mappings = read_maps(sifive("linux-static/gtod.map"))
    assert [(mapping.start, mapping.name.rpartition("/")[2]) for mapping in mappings if mapping.executable] == [
        (0x10000, "gtod"),
        (0x7FFF_98E4_3000, "[vdso]"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 0, "has no mappings"),
        ("1000-2000 r-xp 0 0:0 0\nhello\n", 2, "not a line of /proc/PID/maps: 'hello'"),
        ("\n1000-2000 rwx 0 0:0 0 /bin/sh\n", 2, "not a line"),
        ("2000-2000 r-xp 0 0:0 0\n", 1, "ends at 0x2000, which is not after its start 0x2000"),
        ("1000-3000 r-xp 0 0:0 0\n2000-4000 r-xp 0 0:0 0\n", 2, "does not come after the mapping before it"),
        ("5000-6000 r-xp 0 0:0 0\n1000-2000 r-xp 0 0:0 0\n", 2, "does not come after the mapping before it"),
        ("Start Addr  End Addr  Size  Offset  objfile\n", 1, "not a line"),
    ],
)
def test_text_that_is_none(text: str, line: int, why: str) -> None:
    with pytest.raises(BadMaps, match=why) as caught:
        parse_maps(text, "gtod.map")
    assert caught.value.line == line
    assert str(caught.value).startswith(f"gtod.map:{line}: " if line else "gtod.map: ")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadMaps, match=r"gone\.map: cannot be read: No such file"):
        read_maps(tmp_path / "gone.map")
    (tmp_path / "core").write_bytes(b"\x7fELF\x02\x01\xff\n\n")
    with pytest.raises(BadMaps, match="core:1: not a line"):
        read_maps(tmp_path / "core")


@settings(derandomize=True, max_examples=some_of(300), deadline=None)
@given(st.text("0123456789abcdef-rwxps: /[]()\n\r\\\x00\udcff", max_size=200) | st.text(max_size=80))
def test_any_text_gives_mappings_or_one_error(text: str) -> None:
    try:
        mappings = parse_maps(text)
    except BadMaps as error:
        assert "\n" not in str(error)
        return
    assert all(mapping.start < mapping.end for mapping in mappings)
