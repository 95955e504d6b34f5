"""Names of functions, against gdb; and which functions a name means."""

import re
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.names import demangling
from rvtrace_gdb.decode.program.names.demangling import demangled, original
from rvtrace_gdb.decode.program.names.name_patterns import Pattern
from tests.gdbext.gdb_process import run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.compiled import elf_bytes

FOLDER = Path(__file__).resolve().parents[3] / "data" / "cases" / "more-cpp-names"
NAMES, CLONES = FOLDER / "names.cpp", FOLDER / "clones.c"
GCC = "-march=rv32imac -mabi=ilp32 -nostdlib -nostartfiles -Wl,-e,main -Wl,-Ttext=0x80000000"


def _compile(folder: Path, source: Path, options: str) -> Path:
    compiler = "riscv64-unknown-elf-g++" if source == NAMES else "riscv64-unknown-elf-gcc"
    more = ["-fno-exceptions", *options.split()] if source == NAMES else options.split()
    elf = folder / "names.elf"
    elf.write_bytes(elf_bytes([compiler, *GCC.split(), *more, str(source), "-lgcc"], [source]))
    return elf


@pytest.mark.parametrize(("source", "options"), [
    (NAMES, "-g -Og"), (NAMES, "-g -O2"), (NAMES, "-Og"), (CLONES, "-g -O2"),
    *long_only(
        *((NAMES, f"-gdwarf-{version} {more}") for version in (2, 3, 4, 5) for more in (
            "-Og", "-O2", "-Os", "-O2 -flto", "-Og -gz=zlib-gnu", "-Og -ffunction-sections -Wl,--gc-sections",
        )),
        (NAMES, "-gdwarf-4 -gdwarf64 -O2"),
        *((CLONES, f"-gdwarf-{version} {more}") for version in (2, 4, 5) for more in ("-Og", "-Os", "-O2 -flto")),
    ),
])  # fmt: skip
def test_names_are_those_of_gdb(tmp_path: Path, source: Path, options: str) -> None:
    elf = _compile(tmp_path, source, options)
    image = Image.from_elf(elf)
    symbols = [symbol for file, _ in image.elves for section in file.sections for symbol in section.symbols]
    starts = sorted({it.address for it in symbols if image.knows(it.address) and it.address >= 0x8000_0000})
    asked = ["set print asm-demangle on", *(f"output/a {at:#x}" for at in starts)]
    said = run_gdb(elf, asked)
    for at in starts:
        name, offset = image.symbol(at) or ("", None)
        assert said[f"output/a {at:#x}"] == f"{at:#x} <{name}>" and offset == 0
    assert len(starts) >= 3


TABLE = [
    ("_ZN2ns3addIilEElT_T0_", "long ns::add<int, long>(int, long)", "ns::add<int, long>(int, long)"),
    ("_ZNK2ns3boxclEi", "ns::box::operator()(int) const", "ns::box::operator()(int) const"),
    ("_ZN2ns3addIilEElT_T0_.constprop.0", "long ns::add<int, long>(int, long) [clone .constprop.0]",
     "ns::add<int, long>(int, long)"),
    ("_Z1fIiEPFicET_", "int (*f<int>(int))(char)", "f<int>(int)"),
    ("_ZN9rust_tank4Tank4fill17h0123456789abcdefE", "rust_tank::Tank::fill", "rust_tank::Tank::fill"),
    ("_RNvNtCsli3NGoEiSOP_3app4work5twice", "app::work::twice", "app::work::twice"),
    ("_ZTV3box", "vtable for box", "vtable for box"), ("_Znonsense", "_Znonsense", "_Znonsense"),
    ("main", "main", "main"), ("cl.constprop.0", "cl.constprop.0", "cl"), ("f.cold", "f.cold", "f.cold"),
]  # fmt: skip


@pytest.mark.parametrize(("linked", "full", "plain"), TABLE)
def test_demangled(linked: str, full: str, plain: str) -> None:
    """The full names are those of c++filt of binutils, which is gdb's demangler."""
    assert demangled(linked)[:2] == (full, plain)


def test_without_the_package_names_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "demangle", None)
    for cache in (demangling._package, demangled):
        cache.cache_clear()
    assert demangled("_ZN2ns3addIilEElT_T0_").full == "_ZN2ns3addIilEElT_T0_"
    for cache in (demangling._package, demangled):
        cache.cache_clear()


@pytest.mark.parametrize(("asked", "name", "meant"), [
    ("ns::f", "ns::f(int)", True), ("f", "ns::f(int)", True), ("s::f", "ns::f(int)", False),
    ("::f", "ns::f(int)", False), ("::ns::f", "ns::f(int)", True),
    ("f(int)", "ns::f(int)", True), ("f(long)", "ns::f(int)", False),
    ("f( int )", "ns::f(int)", True), ("f", "f<int>(int)", True), ("f<int>", "f<int>(int)", True),
    ("f<long>", "f<int>(int)", False), ("f<int,long>", "f<int, long>()", True), ("b::b", "n::b<int>::b(int)", True),
    ("b<int>::b", "n::b<int>::b(int)", True), ("~b", "b::~b()", True), ("operator()", "b::operator()(int) const", True),
    ("operator <", "b::operator<(b const&)", True), ("operator<", "b::operator<<(int)", False),
    ("operator bool", "b<int>::operator bool() const", True), ("go", "(anonymous namespace)::anon::go(int)", True),
    ("(anonymous namespace)::anon::go", "(anonymous namespace)::anon::go(int)", True),
    ("f", "g(int (*)(f))", False), ("tank::fill", "rust::tank::fill", True), ("f::<u8>", "c::f<u8>", True),
    ("fmt", "<app::Tank as core::fmt::Debug>::fmt", True), ("Debug>::fmt", "<a::T as Debug>::fmt", False),
    ("<a::T as Debug>::fmt", "<a::T as Debug>::fmt", True), ("", "f()", False), ("f() const", "f()", False),
])  # fmt: skip
def test_which_functions_a_name_means(asked: str, name: str, meant: bool) -> None:
    assert Pattern(asked).means(name) is meant or not asked


def test_names_are_made_when_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A firmware with many symbols does not start slower."""
    made: list[str] = []

    def counted(name: str) -> demangling.Name:
        made.append(name)
        return demangled(name)

    monkeypatch.setattr("rvtrace_gdb.decode.program.names.function_names.demangled", counted)
    image = Image.from_elf(_compile(tmp_path, NAMES, "-g -Og"))
    assert not made
    [place] = image.symbols_named("ns::s::st")
    assert image.symbol(place[0]) == ("ns::s::st(int)", 0) and len(made) == 1
    assert image.function(place[0] + 2) == place[0] and re.search("st", made[0]) and original("a.isra.0.part.1") == "a"
