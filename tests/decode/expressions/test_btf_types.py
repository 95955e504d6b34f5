"""The types of a kernel from its BTF, against the debug information that the same compiler writes of the same code."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.expressions.btf_types import BtfTypes
from rvtrace_gdb.decode.expressions.debug_types import UnreadableType
from rvtrace_gdb.decode.expressions.types import Enum, Named, Struct, ValueType, size_of, stripped, type_name
from rvtrace_gdb.decode.expressions.variables import ProgramVariables
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.linux.btf import BTF_BEGIN, BTF_END, BadBtf, Btf, btf_of

SOURCE = r"""
typedef unsigned int u32;
typedef int pid_t;
enum state { RUNNING, WAITING = 7, GONE = 3 };
union word { unsigned long whole; unsigned char part[8]; };
struct list { struct list *next, *prev; };
struct kept;
struct task {
    volatile u32 flags : 3, : 2, priority : 11;
    _Bool idle;
    const char *title;
    char comm[16];
    pid_t pid;
    struct list tasks;
    union { int one; struct { short low, high; }; };
    enum state now;
    union word words[3];
    long (*entry)(void *, int);
    struct kept *kept;
    double load;
    unsigned short wide;
};
struct task first;
union word word;
"""
COMPILER = "riscv64-unknown-elf-gcc -march=rv64imac -mabi=lp64 -nostdlib -Wl,-e0"


def compiled(folder: Path, *options: str) -> Path:
    (folder / "task.c").write_text(SOURCE)
    program = folder / f"task{''.join(options)}"
    subprocess.run([*COMPILER.split(), *options, str(folder / "task.c"), "-o", str(program)], check=True)
    return program


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """BTF that a compiler has written."""
    folder = tmp_path_factory.mktemp("btf")
    program = compiled(folder, "-gbtf")
    copy = ["riscv64-unknown-elf-objcopy", "-O", "binary", "--only-section=.BTF", "--set-section-flags", ".BTF=alloc"]
    subprocess.run([*copy, str(program), str(folder / "btf")], check=True)
    return (folder / "btf").read_bytes()


def layout(kind: ValueType, deep: int = 4) -> object:
    """What is known of a type, and of the types in it."""
    kind = stripped(kind)
    if isinstance(kind, Struct) and deep:
        members = [(it.name, it.offset, it.bits, layout(it.type, deep - 1)) for it in kind.members]
        return kind.tag, kind.name, kind.size, kind.is_union, members
    if isinstance(kind, Enum):
        return kind.name, kind.size, list(kind.values)
    return type_name(kind), size_of(kind)


def test_types_are_those_of_the_debug_information(data: bytes, tmp_path: Path) -> None:
    types, same = BtfTypes(Btf(data), 8), ProgramVariables(Image.from_elf(compiled(tmp_path, "-g")))
    for name in ("struct task", "struct list", "union word", "enum state", "u32", "pid_t", "long int"):
        found, wanted = types.kernel_type(name), same.type_named(name, None)
        assert found is not None and wanted is not None
        assert layout(found) == layout(wanted), name
    assert isinstance(types.kernel_type("pid_t"), Named) and types.structure("task") is types.kernel_type("struct task")
    assert types.kernel_type("struct none") is types.kernel_type("none") is types.kernel_type("union task") is None


def test_a_kernel_s_memory_is_asked_for_what_debug_information_lacks(data: bytes, tmp_path: Path) -> None:
    names = tmp_path / "kallsyms"
    end = 0xFFFFFFFF80001000 + len(data)
    names.write_text(f"ffffffff80000000 T _start\nffffffff80001000 R {BTF_BEGIN}\n{end:x} R {BTF_END}\n")
    image = Image.from_elf(names)
    assert btf_of(image) is None
    image.add_code(0xFFFFFFFF80001000, data)
    found = ProgramVariables(image).type_named("struct task", None)
    assert isinstance(found, Struct) and found.size == size_of(found) > 100
    assert ProgramVariables(Image.from_elf(compiled(tmp_path, "-g0"))).kernel_types is None
    wrong = Image.from_elf(names)
    wrong.add_code(0xFFFFFFFF80001000, b"\0" * len(data))
    program = ProgramVariables(wrong)
    assert program.type_named("struct task", None) is None
    assert any("the kernel's BTF cannot be read: it begins with 0x0000" in it for it in program.problems)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_types_raise_no_other_error(data: bytes, draws: st.DataObject) -> None:
    damaged = bytearray(data[: draws.draw(st.integers(0, len(data)))] if draws.draw(st.booleans()) else data)
    for _ in range(draws.draw(st.integers(0, 6))):
        if damaged:
            damaged[draws.draw(st.integers(0, len(damaged) - 1))] = draws.draw(st.integers(0, 255))
    try:
        types = BtfTypes(Btf(bytes(damaged)), 8)
        for name in ("struct task", "union word", "enum state", "pid_t"):
            found = types.kernel_type(name)
            assert found is None or layout(found)
    except (BadBtf, UnreadableType):
        pass
