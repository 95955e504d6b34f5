"""Which code a context sees; processes built from their maps, and the kernel from pages of its memory."""

import sys
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.decode.program.image import CodeMissing, Image, read_elf
from rvtrace_gdb.decode.program.linux.user_code import (
    BadMemory,
    KernelCopies,
    MappedFiles,
    Mapping,
    add_kernel_pages,
    add_memory,
    parse_maps,
    process_image,
    read_maps,
)
from tests.decode.program.elves import build, build_library, gdb_symbols, strip
from tests.helpers.core_captures import sifive

_PROGRAM = ".globl main\n.type main, @function\nmain: nop; ret\n.size main, .-main\n"
_LIBRARY = ".section .rodata\n.fill 64\n.text\n.globl answer\n.type answer, @function\nanswer: nop; nop; ret\n"


def image_with(addr: int, letter: str, size: int = 4) -> Image:
    """An image whose code is one letter, to be recognized by."""
    image = Image()
    image.add_code(addr, letter.encode() * size)
    return image


def seen(programs: ContextImages, context: ProgramContext, addr: int) -> str:
    """The letter a context sees at an address, "" for none."""
    try:
        return programs.image_of(context).read(addr, 1).decode()
    except CodeMissing:
        return ""


# Contexts


def test_a_process_sees_its_own_code_and_the_kernel() -> None:
    programs = ContextImages(image_with(0xFFFF_0000, "K"))
    programs.attach(image_with(0x1000, "a"), scontext=738)
    programs.attach(image_with(0x1000, "b"), scontext=739)
    user = [ProgramContext(0, scontext=pid) for pid in (737, 738, 739)]
    assert [seen(programs, context, 0x1000) for context in user] == ["", "a", "b"]
    assert [seen(programs, ProgramContext(1, scontext=pid), 0x1000) for pid in (738, 739)] == ["a", "b"]
    assert [seen(programs, context, 0xFFFF_0000) for context in [*user, ProgramContext()]] == ["K"] * 4
    assert seen(programs, ProgramContext(), 0x1000) == ""


def test_machine_mode_sees_the_base_alone() -> None:
    programs = ContextImages(image_with(0x8000_0000, "F"))
    programs.attach(image_with(0x8000_0000, "a"), scontext=738)
    assert seen(programs, ProgramContext(3, scontext=738), 0x8000_0000) == "F"
    assert seen(programs, ProgramContext(0, scontext=738), 0x8000_0000) == "a"


def test_guests_are_told_apart_by_hcontext_and_from_their_host() -> None:
    programs = ContextImages(image_with(0x1000, "H"))
    programs.attach(image_with(0x1000, "g"), hcontext=1, virtual=True)
    programs.attach(image_with(0x1000, "h"), hcontext=2, virtual=True)
    programs.attach(image_with(0x1000, "p", 2), scontext=5, hcontext=2, virtual=True)
    guest = ProgramContext(1, True, 4, 1)
    assert seen(programs, guest, 0x1000) == "g"
    assert seen(programs, guest._replace(virtual=False), 0x1000) == "H"
    assert seen(programs, guest._replace(hcontext=2), 0x1000) == "h"
    process = guest._replace(hcontext=2, scontext=5)
    assert [seen(programs, process, addr) for addr in (0x1000, 0x1002)] == ["p", "h"]


def test_the_image_for_fewer_contexts_hides_the_others() -> None:
    programs = ContextImages(Image())
    programs.attach(image_with(0x1000, "a"), scontext=1)
    programs.attach(image_with(0x1000, "e", 8))
    assert [seen(programs, ProgramContext(0, scontext=1), addr) for addr in (0x1000, 0x1004)] == ["a", "e"]
    assert seen(programs, ProgramContext(), 0x1000) == "e"
    programs.attach(image_with(0x1000, "b", 2), scontext=1)
    assert [seen(programs, ProgramContext(0, scontext=1), addr) for addr in (0x1000, 0x1002)] == ["b", "a"]


def test_contexts_with_the_same_code_have_the_same_image() -> None:
    base = Image()
    programs = ContextImages(base)
    assert programs.image_of(ProgramContext()) is base
    programs.attach(image_with(0x1000, "a"), scontext=1)
    images = [
        programs.image_of(ProgramContext(prv, scontext=1, hcontext=hcontext)) for prv, hcontext in ((0, 0), (1, 3))
    ]
    assert images[0] is images[1]
    assert programs.image_of(ProgramContext(1, scontext=2)) is base


def test_threads_of_a_process_have_the_same_image() -> None:
    """Linux gives each a number of its own."""
    process, programs = image_with(0x1000, "a"), ContextImages(Image())
    for thread in (738, 739):
        programs.attach(process, scontext=thread)
    images = {id(programs.image_of(ProgramContext(0, scontext=pid))) for pid in (738, 739, 740)}
    assert len(images) == 2


def test_code_that_is_learned_later_is_seen() -> None:
    base, process = Image(), Image()
    programs = ContextImages(base)
    programs.attach(process, scontext=1)
    assert seen(programs, ProgramContext(0, scontext=1), 0x1000) == ""
    base.add_code(0x1000, b"K")
    process.add_code(0x2000, b"a")
    assert [seen(programs, ProgramContext(0, scontext=1), addr) for addr in (0x1000, 0x2000)] == ["K", "a"]


def test_the_program_is_named_by_its_first_elf(tmp_path: Path) -> None:
    elf = build(tmp_path, _PROGRAM, "-Wl,-Ttext=0x10000")
    programs = ContextImages(Image())
    assert (programs.path, programs.xlen) == ("", 64)
    programs.attach(Image.from_elf(elf), scontext=1)
    assert programs.path == str(elf)
    assert ContextImages(Image.from_elf(elf)).path == str(elf)


def test_code_of_another_xlen_is_refused() -> None:
    with pytest.raises(BadElf, match="is 32-bit code, and the base program is 64-bit"):
        ContextImages(Image(64)).attach(Image(32))


# Processes


def maps(*lines: str) -> list[Mapping]:
    """Mappings from short lines: addresses, permissions, offset, name."""
    return parse_maps("\n".join(f"{line.rsplit(' ', 1)[0]} 00:00 0 {line.rsplit(' ', 1)[1]}" for line in lines))


def test_a_process_of_a_static_program_and_the_vdso(tmp_path: Path) -> None:
    """Addresses: nm gtod, and readelf --dyn-syms of the vdso, which has no other symbols."""
    vdso, bias = sifive("linux-static/gtod.vdso"), 0x7FFF_98E4_3000
    files = MappedFiles({"gtod": sifive("linux-static/gtod"), "[vdso]": vdso})
    image = process_image(read_maps(sifive("linux-static/gtod.map")), files)
    assert image.absent == []
    assert image.symbol(0x10730) == ("main", 2)
    assert image.symbol(bias + 0x80A) == ("__vdso_clock_gettime", 0)
    addresses = list(range(bias + 0x7FC, bias + 0xC80, 2))
    expected = gdb_symbols(vdso, addresses, tmp_path / "symbols.gdb", bias=bias)
    assert [image.symbol(address) for address in addresses] == expected
    assert image.read(bias + 0x800, 8) == vdso.read_bytes()[0x800:0x808]


def test_libraries_are_moved_to_where_they_are_mapped(tmp_path: Path) -> None:
    """The same library in two places: its code is 0x1000 further from its start in memory than in the file."""
    root = tmp_path / "root file system"
    (root / "usr/lib").mkdir(parents=True)
    library = build_library(tmp_path, _LIBRARY)
    library.rename(root / "usr/lib/lib answer.so")
    answer = next(s.address for part in read_elf(root / "usr/lib/lib answer.so").sections for s in part.symbols)
    text = (
        "3ff0000000-3ff0001000 r--p 00000000 08:01 9 /usr/lib/lib answer.so\n"
        "3ff0001000-3ff0002000 r-xp 00000000 08:01 9 /usr/lib/lib answer.so\n"
        "3ff1001000-3ff1002000 r-xp 00000000 08:01 9 /usr/lib/lib answer.so\n"
    )
    image = process_image(parse_maps(text), MappedFiles(sysroot=root))
    assert [image.symbol(start + answer) for start in (0x3F_F000_0000, 0x3F_F100_0000)] == [("answer", 0)] * 2
    assert image.read(0x3F_F000_0000 + answer, 6) == bytes.fromhex("010001008280")
    assert image.origin(0x3F_F000_0000 + answer) == "lib answer.so"


def test_a_mapping_split_by_mprotect_is_one_library(tmp_path: Path) -> None:
    library = build_library(tmp_path, _LIBRARY + ".fill 5000, 2, 1\n")
    lines = ("3000000000-3000002000 r-xp 00000000 /l.so", "3000002000-3000003000 r-xp 00002000 /l.so")
    whole, split = (process_image(maps(*lines[:count]), MappedFiles({"l.so": library})) for count in (1, 2))
    assert whole.segments == split.segments


def test_files_are_found_as_given_then_under_the_sysroot(tmp_path: Path) -> None:
    for folder in ("given", "root/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "libc.so").write_bytes(b"x")
    mapping = maps("1000-2000 r-xp 0 /lib/libc.so")[0]
    given, root = tmp_path / "given/libc.so", tmp_path / "root"
    assert MappedFiles({"/lib/libc.so": given}, root).find(mapping) == given
    assert MappedFiles({"libc.so": str(given)}, root).find(mapping) == given
    assert MappedFiles({}, root).find(mapping) == root / "lib/libc.so"
    assert MappedFiles({}, tmp_path).find(mapping) is None
    deleted = mapping._replace(deleted=True)
    assert (MappedFiles({}, root).find(deleted), MappedFiles({"libc.so": given}).find(deleted)) == (None, given)


def test_files_of_this_machine_count_only_if_they_are_risc_v(tmp_path: Path) -> None:
    elf = build(tmp_path, _PROGRAM, "-Wl,-Ttext=0x10000")
    ours, theirs = maps(f"10000-11000 r-xp 1000 {elf}", f"20000-21000 r-xp 0 {Path(sys.executable).resolve()}")
    assert MappedFiles().find(ours) == elf
    assert MappedFiles().find(theirs) is None


def test_code_that_nobody_supplied_is_named() -> None:
    mappings = maps("1000-2000 r-xp 0 /lib/libm.so", "3000-4000 rw-p 0 [heap]", "5000-6000 r-xp 0 [vdso]")
    mappings += [Mapping(0x7000, 0x8000, "rwxp", 0, ""), Mapping(0x9000, 0xA000, "r-xp", 0, "/old.so", True)]
    image = process_image(mappings, MappedFiles())
    missing = ["/lib/libm.so", "[vdso]", "anonymous memory", "/old.so (deleted)"]
    assert [absent.what for absent in image.absent] == missing
    with pytest.raises(CodeMissing, match=r"0x1002: /lib/libm\.so is there and was not supplied"):
        image.read(0x1002, 2)


def test_a_stripped_program_has_its_code(tmp_path: Path) -> None:
    elf = build(tmp_path, _PROGRAM, "-Wl,-Ttext=0x10000")
    image = process_image(maps("10000-11000 r-xp 1000 /bin/p"), MappedFiles({"p": strip(elf)}))
    assert (image.symbol(0x10000), image.read(0x10000, 4)) == (None, bytes.fromhex("01008280"))


def test_a_file_that_is_no_elf_is_code_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "cache.bin").write_bytes(bytes(0x1000) + b"code" * 0x400 + b"more")
    image = process_image(maps("40000-41000 r-xp 1000 /cache.bin"), MappedFiles(sysroot=tmp_path))
    assert image.segments == [(0x40000, b"code" * 0x400)]
    assert image.origin(0x40000) == "cache.bin"


def test_the_wrong_file_is_refused(tmp_path: Path) -> None:
    elf = build(tmp_path, _PROGRAM, "-Wl,-Ttext=0x10000")
    mappings = maps("10000-11000 r-xp 80000 /bin/p")
    with pytest.raises(BadElf, match=r"program\.elf: is not the file the process ran: .* offset 0x80000.* /bin/p had"):
        process_image(mappings, MappedFiles({"p": elf}))
    with pytest.raises(BadElf, match="No such file"):
        process_image(mappings, MappedFiles({"p": tmp_path / "gone"}))
    with pytest.raises(BadElf, match="not RISC-V"):
        process_image(mappings, MappedFiles({"p": "/bin/sh"}))


# Kernel pages


def write_page(folder: Path, name: str, letter: bytes, size: int = 4096) -> None:
    (folder / name).write_bytes(letter * size)


def test_pages_join_and_their_rests_fill_what_is_missing(tmp_path: Path) -> None:
    """Rests: the page that follows knows better, and where there is none they are all that is known."""
    write_page(tmp_path, "kmem.0xffffffff80001000", b"1", 4098)
    write_page(tmp_path, "kmem.0xffffffff80002000", b"2", 4098)
    write_page(tmp_path, "od", b"a script")
    image = Image()
    add_kernel_pages(image, tmp_path)
    assert image.read(0xFFFF_FFFF_8000_1FFE, 4) == b"1122"
    assert image.read(0xFFFF_FFFF_8000_2FFE, 4) == b"2222"
    assert image.origin(0xFFFF_FFFF_8000_2000) == "kmem.0xffffffff80002000"
    with pytest.raises(CodeMissing, match="0xffffffff80003002"):
        image.read(0xFFFF_FFFF_8000_3000, 4)


def test_an_instruction_across_two_pages_is_in_the_file_of_the_first(tmp_path: Path) -> None:
    """In SiFive's captures of Linux the rest of each such instruction, 71 of 71, is c.nop in the file of the second."""
    branch = bytes.fromhex("630f0b24")  # beqz s6, +606, at the end of a page: 0xffffffff80198ffe in linux-dynamic
    (tmp_path / "kmem.0xffffffff80198000").write_bytes(bytes(4094) + branch)
    (tmp_path / "kmem.0xffffffff80199000").write_bytes(bytes.fromhex("0100 03350b00") + bytes(4090))
    image = Image(64)
    add_kernel_pages(image, tmp_path)
    instruction = image.instruction(0xFFFF_FFFF_8019_8FFE)
    assert (instruction.is_branch, instruction.offset) == (True, 0xFFFF_FFFF_8019_925C - 0xFFFF_FFFF_8019_8FFE)
    assert image.read(0xFFFF_FFFF_8019_9000, 6) == branch[2:] + bytes.fromhex("03350b00")


def test_the_image_of_a_kernel_is_memory_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "Image").write_bytes(b"\0\0\0\0kernel")
    image = Image()
    add_memory(image, tmp_path / "Image", 0xFFFF_FFFF_8000_0000)
    assert image.segments == [(0xFFFF_FFFF_8000_0000, b"\0\0\0\0kernel")]
    assert image.origin(0xFFFF_FFFF_8000_0004) == "Image"
    with pytest.raises(BadMemory, match="gone: cannot be read: No such file"):
        add_memory(image, tmp_path / "gone", 0)


@pytest.mark.parametrize("first", ["pages", "file"])
def test_pages_count_instead_of_the_kernel_file(tmp_path: Path, first: str) -> None:
    """A running kernel patches itself: what was in memory is what ran."""
    kernel = build(tmp_path, ".globl start\nstart: .fill 4096, 4, 0x13\n", "-Wl,-Ttext=0xffffffff80000000")
    pages = tmp_path / "kmem"
    pages.mkdir()
    write_page(pages, "kmem.0xffffffff80001000", b"p")
    image = Image()
    if first == "pages":
        add_kernel_pages(image, pages)
    image.add_elf(read_elf(kernel))
    if first == "file":
        add_kernel_pages(image, pages)
        assert image.patched == [(0xFFFF_FFFF_8000_1000, b"p" * 4096)]
    assert image.read(0xFFFF_FFFF_8000_0FFC, 8) == bytes.fromhex("13000000") + b"pppp"
    assert image.read(0xFFFF_FFFF_8000_1FFC, 8) == b"pppp" + bytes.fromhex("13000000")
    assert image.symbol(0xFFFF_FFFF_8000_1000) == ("start", 0x1000)


def test_only_what_differs_is_not_the_files(tmp_path: Path) -> None:
    kernel = build(tmp_path, ".globl start\nstart: .fill 8, 4, 0x13\n", "-Wl,-Ttext=0xffffffff80000000")
    image = Image()
    image.add_elf(read_elf(kernel))
    memory = bytearray(image.read(0xFFFF_FFFF_8000_0000, 32))
    memory[8:12] = b"jump"
    assert image.differs(0xFFFF_FFFF_8000_0000, bytes(memory)) and not image.differs(0x1000, bytes(memory))
    (tmp_path / "page.bin").write_bytes(memory + b"more")
    KernelCopies(dumps=((str(tmp_path / "page.bin"), 0xFFFF_FFFF_8000_0000),)).add_to(image)
    assert image.read(0xFFFF_FFFF_8000_0000, 36) == bytes(memory) + b"more"
    assert image.patched == [(0xFFFF_FFFF_8000_0008, b"jump")] and image.code == [(0xFFFF_FFFF_8000_0020, b"more")]
    [origins] = [[image.is_added(0xFFFF_FFFF_8000_0000 + at) for at in (4, 8, 12, 32)]]
    assert origins == [False, True, False, True]
    found = image.file_at(0xFFFF_FFFF_8000_0008)
    assert found is not None and found[0].path == str(kernel)
    assert not image.differs(0xFFFF_FFFF_8000_0000, bytes(memory))


def test_a_copy_of_kcore_is_an_elf_file(tmp_path: Path) -> None:
    """perf puts it into a folder with the names; the kernel writes what it is asked for."""
    kernel = build(tmp_path, ".globl start\nstart: .fill 8, 4, 0x13\n", "-Wl,-Ttext=0xffffffff80000000")
    folder = tmp_path / "perf" / "kcore_dir"
    folder.mkdir(parents=True)
    (folder / "kcore").write_bytes(kernel.read_bytes())
    for source in (folder, folder.parent, folder / "kcore"):
        image = Image()
        add_kernel_pages(image, source)
        assert image.read(0xFFFF_FFFF_8000_0000, 4) == bytes.fromhex("13000000")


def test_folders_without_pages(tmp_path: Path) -> None:
    with pytest.raises(BadMemory, match=r"has no file kmem\.0xADDRESS"):
        add_kernel_pages(Image(), tmp_path)
    with pytest.raises(BadMemory, match="gone: cannot be read: No such file"):
        add_kernel_pages(Image(), tmp_path / "gone")
    write_page(tmp_path, "kmem.0xnowhere", b"p")
    with pytest.raises(BadMemory, match=r"kmem\.0xnowhere: its name does not end in an address"):
        add_kernel_pages(Image(), tmp_path)
