"""Instruction text from binutils' objdump, for machines without a gdb for RISC-V and for code that is not in the ELF.

objdump is given bare code; the names that gdb prints after an address are added here.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rvtrace_gdb.views.elf_of_code import elf_of_code
from rvtrace_gdb.views.text import Run, Text

NAMES = (
    "riscv64-unknown-elf-objdump",
    "riscv32-unknown-elf-objdump",
    "riscv64-elf-objdump",
    "riscv32-elf-objdump",
    "riscv-none-elf-objdump",
    "riscv64-linux-gnu-objdump",
    "objdump",
)
_SECONDS_AT_MOST = 60.0
_LINE = re.compile(r"^ *([0-9a-f]+):\t(.*?)\s*$", re.MULTILINE)
_ADDRESS = re.compile(r"^((?:j|jal|b[a-z]+)\t(?:.*,)?|.* # )0x([0-9a-f]+)$")  # of a jump or branch, or in a comment

Symbols = Callable[[int], tuple[str, int] | None]


class ObjdumpText:
    """An objdump that knows RISC-V. *symbols* names addresses."""

    def __init__(self, program: str, symbols: Symbols) -> None:
        self._program = program
        self._symbols = symbols

    @classmethod
    def find(cls, symbols: Symbols) -> "ObjdumpText | None":
        """The first objdump on PATH that knows RISC-V; None when there is none."""
        for name in NAMES:
            program = shutil.which(name)
            if program is not None and "riscv" in _output([program, "-i"]):
                return cls(program, symbols)
        return None

    def disassemble(self, code: Sequence[tuple[Run, bytes]], xlen: int) -> dict[int, Text]:
        """The instructions of all of *code*, in one call of objdump; empty when it fails."""
        with tempfile.TemporaryDirectory(prefix="rvtrace-") as folder:
            elf = Path(folder, "code.elf")
            elf.write_bytes(elf_of_code([(run.start, data) for run, data in code], xlen))
            listing = _output([self._program, "-d", "-z", "--no-show-raw-insn", str(elf)])
        return {int(a, 16): Text(self._symbols(int(a, 16)), self._as_gdb(text)) for a, text in _LINE.findall(listing)}

    def _as_gdb(self, text: str) -> str:
        return _ADDRESS.sub(lambda match: match[1] + self._named(int(match[2], 16)), text)

    def _named(self, address: int) -> str:
        symbol = self._symbols(address)
        if symbol is None:
            return f"{address:#x}"
        name, offset = symbol
        return f"{address:#x} <{name}+{offset}>" if offset else f"{address:#x} <{name}>"


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS_AT_MOST, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
