"""The programs that are measured.

The 24: six sources in benchmarks/programs/values, for RV64 and RV32, with -O2 and -Og, and picolibc. They are the
project's own: sorting and recursion, CRC and a cipher, lists and trees on the heap, matrices of floating point, a state
machine with timer and software interrupts, and a mixture.

Others: riscv-tests, benchmarks with system calls through HTIF, generated programs, and what is beside the repository
(or in RVTRACE_VECTORS).
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rvtrace_gdb.decode.program import debug_info
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support.extents import Extent
from tests.helpers.compiled import elf_bytes
from tests.transport.simulated.hart import torture
from tests.transport.simulated.hart.programs import assemble

SOURCES = Path(__file__).resolve().parents[2] / "programs" / "values"
NAMES = ("crc", "lists", "machine", "matrix", "mixed", "sorting")
_MARCH = {64: ("rv64gc", "lp64d", "IMAFDC"), 32: ("rv32imac", "ilp32", "IMAC")}
RAM = Extent(0x8000_0000, 0x50_0000)
_LAYOUT = {"flash": 0x8000_0000, "flash_size": 1 << 20, "ram": 0x8020_0000, "ram_size": 1 << 20}


class BuiltProgram:
    """A program; *extensions*: of the hart it is compiled for. *priv*: the modes that the hart has."""

    priv = "mu"

    def __init__(self, source: str, xlen: int, level: str) -> None:
        self.name, self.source, self.xlen, self.level = f"{source}-{xlen}-{level}", source, xlen, level
        self.march, self._abi, self.extensions = _MARCH[xlen]

    def build(self, folder: Path) -> Path:
        """Compile it in a folder."""
        sources = [SOURCES / f"{self.source}.c", SOURCES / "rt.c"]
        command = ["riscv64-unknown-elf-gcc", "--specs=picolibc.specs", "--crt0=hosted", f"-march={self.march}"]
        command += [f"-mabi={self._abi}", "-mcmodel=medany", f"-{self.level}", "-g", "-ffunction-sections"]
        command += ["-fno-builtin-malloc", f"-Wa,-march={self.march}_zicsr", *map(str, sources)]
        command += [f"-Wl,--defsym=__{name}={value:#x}" for name, value in _LAYOUT.items()]
        elf = folder / f"{self.name}.elf"
        elf.write_bytes(elf_bytes([*command, "-Wl,--section-start=.tohost=0x80400000"], sources))
        return elf


    def rams(self, image: Image) -> list[Extent]:
        """Return the RAM that nothing writes but the hart."""
        return [RAM]


class GivenProgram(BuiltProgram):
    """A program that exists, or is assembled from generated *text*."""

    def __init__(self, name: str, xlen: int, text: str = "", elf: Path | None = None) -> None:
        self.name, self.xlen, self.extensions = name, xlen, "IMAFDC"
        self._text, self._elf = text, elf
        self.priv = "msu" if elf is not None else "mu"

    def build(self, folder: Path) -> Path:
        return self._elf or assemble(folder, self.name, self._text, f"rv{self.xlen}imafdc")

    def rams(self, image: Image) -> list[Extent]:
        """What the host writes is left out: fromhost, and the answers to system calls. Where these are on the stack,
        no RAM is the hart's own, as `rvtrace sim` declares it.
        """
        symbols = debug_info.symbols(image.path)
        if _CALLS & symbols.keys() and not any(name.startswith("magic_mem") for name in symbols):
            return []
        written = sorted({it.address & -_PAGE for name, it in symbols.items() if name.startswith(_HOST)})
        edges = [RAM.address, *(edge for page in written for edge in (page, page + _PAGE)), RAM.end]
        return [Extent.between(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True) if begin < end]


_PAGE = 4096
_HOST = ("tohost", "fromhost", "magic_mem")
_CALLS = {"syscall", "putchar", "printstr", "tohost_exit"}
"""Functions of programs that ask the host for something."""
_HOME = Path(__file__).resolve().parents[3]
_DATA = _HOME / "tests" / "data"
_VECTORS = Path(os.environ.get("RVTRACE_VECTORS") or _HOME.parent / "shared" / "vectors")


def others(words: list[str]) -> Iterator[GivenProgram]:
    """Yield the other programs whose names have one of *words* in them; without any, all that there are."""
    elves = [*sorted((_DATA / "riscv-tests").glob("rv*-*-*")), *sorted((_DATA / "ntrace-reference").glob("[!t]*.elf"))]
    elves += sorted((_VECTORS / "etrace" / "reference" / "common").glob("*.riscv"))
    found = [(f"{elf.stem}{elf.suffix.replace('.elf', '.n')}", partial(_given, elf)) for elf in elves]
    kinds = (torture.integer, torture.memory, torture.floating_point, torture.floating_point_state)
    found += [(f"{it.__name__}-{xlen}", partial(_generated, it.__name__, xlen)) for it in kinds for xlen in (64, 32)]
    for name, make in found:
        if not words or any(word in name for word in words):
            yield make(name)


def _given(elf: Path, name: str) -> GivenProgram:
    return GivenProgram(name, Image.from_elf(elf).xlen, elf=elf)


def _generated(kind: str, xlen: int, name: str) -> GivenProgram:
    return GivenProgram(name, xlen, getattr(torture, kind)(xlen))


def programs(words: list[str]) -> Iterator[BuiltProgram]:
    """Yield those whose names have one of *words* in them; without any, all."""
    for source in NAMES:
        for xlen in _MARCH:
            for level in ("O2", "Og"):
                program = BuiltProgram(source, xlen, level)
                if not words or any(word in program.name for word in words):
                    yield program
