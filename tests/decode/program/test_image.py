"""The program image: symbols as gdb chooses them, code from the ELF and from elsewhere, bad files."""

import hashlib
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.decode.program.image import CodeMissing, Image, read_elf
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode import assembler
from tests.decode.program.elves import build, build_library, gdb_symbols
from tests.helpers.amounts import long_only, some_of

REFERENCE = Path(__file__).parents[2] / "data" / "ntrace-reference"
ELFS = sorted(REFERENCE.glob("*.elf"))


def code_addresses(image: Image, step: int) -> list[int]:
    """Addresses all over the loaded code, and around its edges."""
    ranges = [(start, start + len(data)) for start, data in image.segments]
    inside = [address for start, end in ranges for address in range(start, end, step)]
    return inside + [edge + delta for start, end in ranges for edge in (start, end) for delta in (-2, 0, 2)]


def assert_same_symbols(elf: Path, step: int, folder: Path) -> None:
    image = Image.from_elf(elf)
    addresses = code_addresses(image, step)
    theirs = gdb_symbols(elf, addresses, folder / "symbols.gdb")
    ours = [image.symbol(address) for address in addresses]
    assert len(theirs) == len(addresses)
    assert [(hex(a), o, t) for a, o, t in zip(addresses, ours, theirs, strict=True) if o != t] == []


@pytest.mark.parametrize("elf", [*ELFS[::3], *long_only(*ELFS[1::3], *ELFS[2::3])], ids=lambda elf: elf.stem)
def test_symbols_are_those_gdb_prints(elf: Path, tmp_path: Path) -> None:
    assert_same_symbols(elf, 14, tmp_path)


_TANGLE = """
.macro function name, size
\\name: .fill 4, 2, 1
.type \\name, @function
.if \\size
.size \\name, \\size
.endif
.endm
.text
nop
.globl global_z; .globl a_global; .weak weak_one
global_z: local_a: weak_one: a_global: nop; nop
function sized, 8
nop; nop
function outer, 40
function inner, 4
label: nop
.Lhidden: nop
function unsized, 0
nop
.globl same
function same, 8
.set alias, same
.set zalias, same
nop; nop; nop
.section .text.more, "ax"
function more, 6
nop; nop
.data
datum: .word 1, 2
.type object, @object
.size object, 4
object: .word 3
.word 4
"""


def test_symbols_where_they_overlap_leave_holes_and_share_addresses(tmp_path: Path) -> None:
    assert_same_symbols(build(tmp_path, _TANGLE), 2, tmp_path)


def test_symbols_that_share_addresses_in_every_combination(tmp_path: Path) -> None:
    rng = random.Random(1)
    source = ".text\n"
    for place in range(150):
        for k in range(rng.randint(2, 5)):
            name = f"{rng.choice('abcxyz')}{place}_{k}"
            bind, kind = rng.choice(["local", "globl", "weak"]), rng.choice(["function", "notype"])
            source += f"{name}:\n.type {name}, @{kind}\n.{bind} {name}\n"
            source += rng.choice(["", f".size {name}, 4\n", f".size {name}, 8\n"])
        source += "nop\n" * rng.randint(1, 4)
    assert_same_symbols(build(tmp_path, source), 2, tmp_path)


_STATICS = """
static int twice(int x) { return x + x; }
int (*volatile f)(int) = twice;
static __attribute__((noinline)) int inner(int x) { static int n; return n += x; }
int outer(int x) { return inner(x) + f(x); }
int first(int) __attribute__((alias("outer")));
"""


def test_symbols_of_a_program_with_debug_information(tmp_path: Path) -> None:
    assert_same_symbols(build(tmp_path, _STATICS, "-O2", "-g", suffix=".c"), 2, tmp_path)


def test_facts_of_the_file(tmp_path: Path) -> None:
    elf = build(tmp_path, ".globl start\nstart: nop\nret\n", "-Wl,--build-id=0xc0ffee", "-Wl,-Ttext=0x80000000")
    image = Image.from_elf(elf)
    entry = subprocess.run(["riscv64-unknown-elf-readelf", "-h", elf], check=True, capture_output=True, text=True)
    assert f"0x{image.entry:x}" in entry.stdout
    assert (image.xlen, image.build_id, image.path) == (64, "c0ffee", str(elf))
    assert image.sha256 == hashlib.sha256(elf.read_bytes()).hexdigest()
    assert image.read(0x8000_0000, 4) == bytes.fromhex("01008280")
    assert image.instruction(0x8000_0002).itype is IType.RETURN


def test_code_stands_at_the_physical_address_too() -> None:
    """t1 is linked to run its data from RAM and load it from flash: readelf -l gives both addresses."""
    image = Image.from_elf(REFERENCE / "t1.elf")
    assert image.xlen == 32
    assert image.read(0x8000_0000, 1064) == image.read(0x2001_8650, 1064)


def test_code_that_is_nowhere_is_named() -> None:
    image = Image()
    image.add_code(0x1000, assembler.NOP)
    with pytest.raises(CodeMissing, match="0x1004") as caught:
        image.read(0x1002, 8)
    assert caught.value.addr == 0x1004
    with pytest.raises(CodeMissing):
        image.instruction(0x1004)


def test_missing_code_is_read_from_the_target_once() -> None:
    asked = []

    def read_missing(addr: int, size: int) -> bytes | None:
        asked.append((addr, size))
        return assembler.NOP * (size // 4) if addr < 0x2000 else None

    image = Image(read_missing=read_missing)
    assert [image.read(addr, 4) for addr in (0x1000, 0x1010, 0x13FC)] == [assembler.NOP] * 3
    assert image.read(0x13FE, 4) == assembler.NOP[2:] + assembler.NOP[:2]
    for _ in range(2):
        with pytest.raises(CodeMissing):
            image.read(0x2000, 2)
    assert [addr for addr, _ in asked] == [0x1000, 0x1400, 0x2000]
    assert all(addr % size == 0 for addr, size in asked)
    assert [addr for addr, _ in image.code] == [0x1000, 0x1400]


def test_added_code_fills_holes_and_replaces_nothing() -> None:
    image = Image()
    image.add_code(0x1004, b"BBBB")
    image.add_code(0x100C, b"DDDD")
    image.add_code(0x1000, b"a" * 20)
    assert image.read(0x1000, 20) == b"aaaaBBBBaaaaDDDDaaaa"


_LIBRARY = """
.section .rodata
.fill 100, 1, 7
.text
.globl first
.type first, @function
first: nop; ret
.size first, .-first
.type second, @function
second: nop; nop; ret
.size second, .-second
.data
.type datum, @object
.size datum, 4
datum: .word 1
"""


def test_a_library_stands_where_it_was_loaded(tmp_path: Path) -> None:
    library, bias = build_library(tmp_path, _LIBRARY), 0x7F_FF12_3000
    image = Image(64)
    image.add_elf(read_elf(library), bias)
    at_zero = Image.from_elf(library)
    assert image.segments == [(start + bias, data) for start, data in at_zero.segments]
    addresses = code_addresses(image, 2)
    ours = [image.symbol(address) for address in addresses]
    assert ours == gdb_symbols(library, addresses, tmp_path / "symbols.gdb", bias=bias)
    assert {found[0] for found in ours if found} == {"first", "second", "datum"}
    assert image.entry == bias


def test_several_elf_files_are_one_program(tmp_path: Path) -> None:
    """The identity is the first one's, and its code stays where both have some."""
    program = build(tmp_path, ".globl here\nhere: nop\n", "-Wl,-Ttext=0x10000", "-Wl,--build-id=0xabcd")
    library = read_elf(build_library(tmp_path, _LIBRARY))
    image = Image.from_elf(program)
    image.add_elf(library, 0x20000)
    image.add_elf(library, 0x40000)
    assert image.symbol(0x10000) == ("here", 0)
    first = next(symbol.address for section in library.sections for symbol in section.symbols if symbol.name == "first")
    assert [image.symbol(first + bias) for bias in (0x20000, 0x40000)] == [("first", 0)] * 2
    assert (image.path, image.build_id) == (str(program), "abcd")
    assert (image.origin(0x10000), image.origin(first + 0x20000)) == ("program.elf", "library.elf")
    image.add_elf(library, 0x10000 - first)
    assert image.read(0x10000, 2) == (0x0001).to_bytes(2, "little")


def test_code_of_another_xlen_is_refused() -> None:
    image = Image(64)
    with pytest.raises(BadElf, match=r"t1\.elf: is 32-bit code, and the rest of the program is 64-bit"):
        image.add_elf(read_elf(REFERENCE / "t1.elf"))


def test_a_program_over_another_has_its_own_code_first() -> None:
    kernel, process = Image(), Image()
    kernel.add_code(0x1000, b"KKKKKKKK")
    process.add_code(0x1002, b"pp", "process.bin")
    both = process.over(kernel)
    assert both.read(0x1000, 8) == b"KKppKKKK"
    assert both.segments == [(0x1000, b"KK"), (0x1002, b"pp"), (0x1004, b"KKKK")]
    assert (both.origin(0x1002), kernel.read(0x1002, 2)) == ("process.bin", b"KK")
    with pytest.raises(CodeMissing):
        process.read(0x1000, 2)
    kernel.add_code(0x2000, b"KK")
    process.add_code(0x3000, b"pp")
    assert both.read(0x2000, 2) + both.read(0x3000, 2) == b"KKpp"


def test_layers_can_be_put_over_layers() -> None:
    images = [Image() for _ in range(3)]
    for image, letter in zip(images, (b"a", b"b", b"c"), strict=True):
        image.add_code(0x100, letter * (2 * (1 + images.index(image))))
    top, middle, base = images
    assert top.over(middle.over(base)).read(0x100, 6) == b"aabbcc"
    assert top.over(middle).over(base).read(0x100, 6) == b"aabbcc"


def test_the_target_is_asked_for_what_no_layer_has() -> None:
    asked = []

    def read_missing(addr: int, size: int) -> bytes | None:
        asked.append(addr)
        return assembler.C_NOP * (size // 2) if addr == 0x1000 else None

    process = Image()
    process.add_code(0x1002, b"pp", "process.bin")
    both = process.over(Image(read_missing=read_missing))
    assert both.read(0x1000, 6) == assembler.C_NOP + b"pp" + assembler.C_NOP
    with pytest.raises(CodeMissing):
        both.read(0x2000, 2)
    assert asked == [0x1000, 0x2000]


def test_symbols_of_a_layer_hide_those_below(tmp_path: Path) -> None:
    """The same address in a process and in the program under it, and code without symbols over code with some."""
    lower = Image.from_elf(build(tmp_path, ".globl low\nlow: nop; nop; nop; nop\n", "-Wl,-Ttext=0x1000", name="low"))
    upper = Image.from_elf(build(tmp_path, ".globl up\nup: nop\n", "-Wl,-Ttext=0x1000", name="up"))
    bare = Image()
    bare.add_code(0x1000, assembler.C_NOP * 2)
    assert [upper.over(lower).symbol(address) for address in (0x1000, 0x1006)] == [("up", 0), ("low", 6)]
    assert [bare.over(lower).symbol(address) for address in (0x1000, 0x1006)] == [None, ("low", 6)]


def test_code_that_is_known_to_be_missing_is_named() -> None:
    image = Image()
    image.add_absent(0x4000, 0x1000, "/usr/lib/libc.so.6")
    with pytest.raises(CodeMissing, match=r"0x4ffe: /usr/lib/libc\.so\.6 is there and was not supplied"):
        image.read(0x4FFE, 2)
    with pytest.raises(CodeMissing, match="0x5000: it is not in the ELF"):
        image.read(0x5000, 2)
    image.add_code(0x4000, assembler.C_NOP)
    assert image.read(0x4000, 2) == assembler.C_NOP


def test_a_jump_table_makes_cm_jt_inferable() -> None:
    image = Image(32)
    image.zcm = True
    image.add_code(0x1000, (0xA006).to_bytes(2, "little"))  # cm.jt 1
    image.add_code(0x2000, bytes(4) + (0x3000).to_bytes(4, "little"))
    assert image.instruction(0x1000).offset is None
    image.jvt = 0x2000
    image.add_code(0x4000, assembler.C_NOP)  # new code: what was classified is classified again
    assert image.instruction(0x1000).offset == 0x2000


@pytest.mark.parametrize("damage", [b"", b"no ELF at all", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(60)])
def test_files_that_are_no_riscv_elf(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.elf"
    path.write_bytes(damage)
    with pytest.raises(BadElf, match=r"bad\.elf: "):
        Image.from_elf(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadElf, match="No such file"):
        Image.from_elf(tmp_path / "gone.elf")


def test_an_elf_of_another_machine(tmp_path: Path) -> None:
    content = bytearray((REFERENCE / "towers.elf").read_bytes())
    content[18] = 62  # e_machine: x86-64
    (tmp_path / "pc.elf").write_bytes(content)
    with pytest.raises(BadElf, match="not RISC-V"):
        Image.from_elf(tmp_path / "pc.elf")


@settings(
    derandomize=True, max_examples=some_of(150), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.data())
def test_damaged_elf_files_give_one_error(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray((REFERENCE / "towers.elf").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 700) | st.integers(len(content) - 1400, len(content) - 1))] = data.draw(
            st.integers(0, 255)
        )
    path = tmp_path / "damaged.elf"
    path.write_bytes(content[: data.draw(st.just(len(content)) | st.integers(0, len(content)))])
    try:
        image = Image.from_elf(path)
    except BadElf:
        return
    image.symbol(0x8000_0100)


SEMIHOSTING = (0x01F0_1013, 0x0010_0073, 0x4070_5013)
"""RISC-V Semihosting, "Semihosting Trap Instruction Sequence"."""


@pytest.mark.parametrize(
    ("words", "served"),
    [
        (SEMIHOSTING, True),
        ((0x01F0_1013, 0x0000_0073, 0x4070_5013), False),
        ((0x01F0_1013, 0x0010_0073, 0x4070_5093), False),
        ((0x01F0_1093, 0x0010_0073, 0x4070_5013), False),
        (SEMIHOSTING[:2], False),
    ],
    ids=["the sequence", "ecall", "another after it", "another before it", "nothing after it"],
)
def test_the_ebreak_of_a_semihosting_call_may_be_served(words: tuple[int, ...], served: bool) -> None:
    image = Image(read_missing=lambda addr, size: pytest.fail("the target is not read for it"))
    image.add_code(0x1002, b"".join(word.to_bytes(4, "little") for word in words))
    found = image.instruction(0x1006)
    assert (found.itype, found.served) == (IType.EXCEPTION, served)
