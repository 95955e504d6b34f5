"""The 24 programs: six sources in benchmarks/programs/values, for RV64 and RV32, with -O2 and -Og, and picolibc.

They are the project's own: sorting and recursion, CRC and a cipher, lists and trees on the heap, matrices of floating
point, a state machine with timer and software interrupts, and a mixture.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.helpers.compiled import elf_bytes

SOURCES = Path(__file__).resolve().parents[1] / "programs" / "values"
NAMES = ("crc", "lists", "machine", "matrix", "mixed", "sorting")
_MARCH = {64: ("rv64gc", "lp64d", "IMAFDC"), 32: ("rv32imac", "ilp32", "IMAC")}
RAM = (0x8000_0000, 0x50_0000)
_LAYOUT = {"flash": 0x8000_0000, "flash_size": 1 << 20, "ram": 0x8020_0000, "ram_size": 1 << 20}


class BuiltProgram:
    """A program; *extensions*: of the hart it is compiled for."""

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


def programs(words: list[str]) -> Iterator[BuiltProgram]:
    """Yield those whose names have one of *words* in them; without any, all."""
    for source in NAMES:
        for xlen in _MARCH:
            for level in ("O2", "Og"):
                program = BuiltProgram(source, xlen, level)
                if not words or any(word in program.name for word in words):
                    yield program
