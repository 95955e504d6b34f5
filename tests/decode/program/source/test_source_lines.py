"""Source lines in every form of debug information that the cross compiler can make, against addr2line of binutils."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.source_lines import SourceLines, is_named
from tests.helpers.amounts import long_only
from tests.helpers.compiled import elf_bytes

CASES = Path(__file__).resolve().parents[3] / "data" / "cases"
SOURCES = [CASES / "removed-code" / "app.c", CASES / "removed-code" / "other.c"]
GCC = ["riscv64-unknown-elf-gcc", "-march=rv32im", "-mabi=ilp32", "-O1", "-nostdlib", "-nostartfiles", "-Wl,-e,_start"]
AT_ZERO = "-Wl,-Ttext=0 -Wl,--section-start=.sbss=0x1000"
REMOVED = "-ffunction-sections -Wl,--gc-sections"
RV64 = "-march=rv64im -mabi=lp64 -mcmodel=medany"

VARIANTS = [
    "-g -gz=zlib-gnu", "-gdwarf-5 -gdwarf64", "-gdwarf-2", "-gdwarf-4 -gsplit-dwarf", f"-g {REMOVED} {AT_ZERO}",
    *long_only(
        *(f"-gdwarf-{version} {more}".strip() for version in (2, 3, 4, 5) for more in (
            "", "-gz=none", "-gz=zlib", "-gz=zlib-gnu", "-gstrict-dwarf", "-gno-as-loc-support",
            "-fdebug-types-section", "-gsplit-dwarf", "-gsplit-dwarf -gz=zlib", "-flto", "-flto -gz=zlib",
            REMOVED, f"{REMOVED} {AT_ZERO}",
            f"{REMOVED} -gz=zlib-gnu", f"{REMOVED} -mno-relax -Wa,-mno-relax", f"{REMOVED} -flto",
        )),
        *(f"-gdwarf-{version} -gdwarf64 {more}".strip() for version in (3, 4, 5) for more in (
            "", "-gz=zlib", "-gsplit-dwarf", "-fdebug-types-section", REMOVED, f"{REMOVED} {AT_ZERO}",
        )),
        "-g1", "-g3 -gdwarf-4", "-g3 -gdwarf-5", "-ggdb3", "-g -O2", "-g -Os -flto", "-g -march=rv32imc",
        *(f"-g {more} {RV64}" for more in ("", "-gdwarf64", "-gz=zlib-gnu")),
    ),
]  # fmt: skip
"""Options of the compiler. Together `-gdwarf64` and `-gz=zlib-gnu` make a program without debug information."""


def _compile(folder: Path, options: str, name: str = "app.elf") -> Path:
    elf = folder / name
    base = [] if "-Ttext" in options else ["-Wl,-Ttext=0x80000000"]
    elf.write_bytes(elf_bytes([*GCC, *options.split(), *base, *map(str, SOURCES)], SOURCES))
    return elf


def _addr2line(elf: Path, addresses: list[int]) -> dict[int, str]:
    """Return FILE:LINE of each address, "" where addr2line knows none."""
    command = ["riscv64-unknown-elf-addr2line", "-e", str(elf), *map(hex, addresses)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [re.sub(r" \(.*\)$", "", line).rpartition("/")[2] for line in said]
    return {at: "" if "?" in text else text for at, text in zip(addresses, found, strict=True)}


def _code(image: Image) -> list[int]:
    """Return the addresses of the instructions of the program's functions."""
    found = set()
    for name in ("used", "_start", "dead1", "dead2", "helper"):
        for start, size in image.symbols_named(name):
            at = start
            while at < start + size:
                found.add(at)
                at += image.instruction(at).length
    return sorted(found)


@pytest.mark.parametrize("options", VARIANTS)
def test_lines_are_those_of_addr2line(tmp_path: Path, options: str) -> None:
    elf = _compile(tmp_path, options)
    image = Image.from_elf(elf)
    lines, code = SourceLines(image), _code(image)
    expected = _addr2line(_compile(tmp_path, _readable(options), "usual.elf"), code)
    assert {at: lines.line_at(at) for at in code} == expected and any(expected.values()) and not lines.problems
    first: dict[str, int] = {}
    for at, text in expected.items():
        first.setdefault(text, at)
    for text, at in first.items():
        here = [one for one in lines.addresses(*_line(text)) if _function(image, one) == _function(image, at)]
        # Where a statement begins, before which the optimizer may have moved a part of it.
        assert any(one <= at or expected[one] == text for one in here), text
    there = {int(text.rpartition(":")[2]) for text in expected.values() if text.startswith("app.c:")}
    removed = set(range(3, 8)) | set(range(14, 19))  # the functions dead1 and dead2
    if "gc-sections" in options:
        assert not any(lines.addresses("app.c", line) for line in removed) and not there & removed
    assert not lines.addresses("app.c", 999) and not lines.addresses("x/app.c", max(there))


def _readable(options: str) -> str:
    """Return options that make the same code, with lines that addr2line reads: it has limits of its own."""
    options = re.sub(r"-gdwarf64|-gz=zlib-gnu", "", options)
    return re.sub(r"-gdwarf-5|-g\b", "-gdwarf-4", options) if "-flto" in options else options


def _function(image: Image, at: int) -> int:
    _, offset = image.symbol(at) or ("", 0)
    return at - offset


def _line(text: str) -> tuple[str, int]:
    name, _, line = text.rpartition(":")
    return name, int(line)


@pytest.mark.parametrize(("options", "said"), [
    ("", "app.elf: it has no debug information (compile with -g, and do not strip it)"),
    ("zstd", "app.elf: its debug information cannot be read (it is compressed with zstd, which this Python does not "),
])  # fmt: skip
def test_what_cannot_be_read_is_said(tmp_path: Path, options: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    elf = _compile(tmp_path, "-g" if options else "-g0")
    if options:
        with_zstd = ["riscv64-unknown-elf-objcopy", f"--compress-debug-sections={options}", str(elf)]
        subprocess.run(with_zstd, check=True)
    lines = SourceLines(Image.from_elf(elf))
    assert lines.line_at(0x8000_0000) == "" and not lines.addresses("app.c", 10)
    [problem] = lines.problems
    assert problem.startswith(f"{tmp_path}/{said}")


def test_a_program_that_has_changed(tmp_path: Path) -> None:
    elf = _compile(tmp_path, "-g")
    lines = SourceLines(Image.from_elf(elf))
    elf.write_bytes(elf.read_bytes() + b"\0")
    assert lines.line_at(0x8000_0000) == "" and "the file has changed since it was read" in lines.problems[0]


@pytest.mark.parametrize(("name", "meant"), [
    ("util.c", True), ("a/util.c", True), ("/p/src/a/util.c", True), ("./a/util.c", True), ("src//a/util.c", True),
    ("til.c", False), ("b/util.c", False), ("/src/a/util.c", False), ("/util.c", False), ("x/p/src/a/util.c", False),
])  # fmt: skip
def test_files_are_named_by_the_end_of_their_path(name: str, meant: bool) -> None:
    """As gdb's `info line` takes names."""
    assert is_named("/p/src/a/util.c", name) is meant
