"""Instruction text from gdb, or from binutils' objdump where there is no gdb for RISC-V.

From gdb, a listing outside gdb reads exactly as inside. gdb is driven through its machine interface (GDB manual,
"GDB/MI Data Manipulation", -data-disassemble) with nothing but the program loaded. That needs no Python in gdb and no
target, and costs about 50 ms to start.

objdump serves machines without such a gdb, and code that is not in the ELF. It is given bare code, as an ELF file made
of nothing but code at addresses; the names that gdb prints after an address are added here. Layout and values of that
file: System V ABI, ELF chapters 4 and 5; RISC-V ELF psABI (e_machine 243, e_flags EF_RISCV_RVC).
"""

import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple


class InstructionText(NamedTuple):
    """The text after an address in a listing: (function, offset in it) if known, and mnemonic TAB operands."""

    symbol: tuple[str, int] | None
    instruction: str


class CodeRun(NamedTuple):
    """Code from *start* up to *end* (exclusive) without holes, starting at an instruction."""

    start: int
    end: int


def runs(instructions: Iterable[tuple[int, int]]) -> list[CodeRun]:
    """Return instructions, (address, length) in any order, as the fewest runs.

    Disassemblers carry the upper half of an address from one instruction to the next ("# 0x80001130 <table>"), so code
    that belongs together must be given to them together.
    """
    result: list[CodeRun] = []
    for address, length in sorted(instructions):
        if result and result[-1].end == address:
            result[-1] = CodeRun(result[-1].start, address + length)
        else:
            result.append(CodeRun(address, address + length))
    return result


# In order of preference; the last may be of the host's architecture only.
GDB_NAMES = (
    "gdb-multiarch",
    "riscv64-unknown-elf-gdb",
    "riscv32-unknown-elf-gdb",
    "riscv64-elf-gdb",
    "riscv32-elf-gdb",
    "riscv-none-elf-gdb",
    "riscv64-linux-gnu-gdb",
    "gdb",
)
_SECONDS_AT_MOST = 30.0
_INSTRUCTION = re.compile(
    r'\{address="0x(?P<address>[0-9a-f]+)",'
    r'(?:func-name="(?P<name>(?:[^"\\]|\\.)*)",offset="(?P<offset>\d+)",)?'
    r'inst="(?P<text>(?:[^"\\]|\\.)*)"\}'
)
_ESCAPED = re.compile(r"\\([0-7]{3}|.)")
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "e": "\x1b", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class GdbText:
    """A gdb that disassembles one ELF. `find` starts one; it must be closed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @classmethod
    def find(cls, elf: str) -> "GdbText | None":
        """Start the first gdb on PATH that supports RISC-V; None if there is none."""
        for name in GDB_NAMES:
            program = shutil.which(name)
            if program is not None:
                gdb = cls(_start_gdb(program, elf))
                if gdb._knows_riscv():
                    return gdb
                gdb.close()
        return None

    def disassemble(self, run: CodeRun) -> dict[int, InstructionText]:
        """Return the instructions of *run*; empty if gdb cannot read the code or has ended."""
        reply = self._ask(f"-data-disassemble -s {run.start:#x} -e {run.end:#x} -- 0")
        return dict(_parsed_instructions(_INSTRUCTION.finditer(reply)))

    def close(self) -> None:
        """End gdb. It may be called more than once."""
        process = self._process
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def _knows_riscv(self) -> bool:
        return "riscv" in self._ask('-interpreter-exec console "show architecture"')

    def _ask(self, command: str) -> str:
        """Return the output of gdb up to the result of *command*; what there is of it if gdb ends or hangs."""
        process = self._process
        if process.stdin is None or process.stdout is None or process.stdin.closed:
            return ""
        watchdog = threading.Timer(_SECONDS_AT_MOST, process.kill)
        watchdog.start()
        said: list[str] = []
        try:
            process.stdin.write(f"1{command}\n")
            process.stdin.flush()
            for line in process.stdout:
                said.append(line)
                if line.startswith("1^"):
                    break
        except (OSError, ValueError):
            pass
        finally:
            watchdog.cancel()
        return "".join(said)


def _start_gdb(program: str, elf: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [program, "-nx", "-q", "-i=mi", "-iex", "set print asm-demangle on", "--", elf],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        errors="replace",
        # gdb's Python must not see ours, and gdb must not ask a network for debug information.
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON") and k != "DEBUGINFOD_URLS"},
        start_new_session=True,  # Ctrl-C interrupts us, not gdb
    )


def _parsed_instructions(matches: Iterable[re.Match[str]]) -> Iterable[tuple[int, InstructionText]]:
    for match in matches:
        name = match["name"]
        symbol = (_plain(name), int(match["offset"])) if name is not None else None
        yield int(match["address"], 16), InstructionText(symbol, _plain(match["text"]))


def _plain(escaped: str) -> str:
    """Undo the escapes of an MI C string; non-ASCII bytes come as octal."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8)) if len(code) == 3 else _LETTERS.get(code, code)

    text = _ESCAPED.sub(character, escaped)
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "replace")


_EM_RISCV, _EF_RISCV_RVC, _ET_EXEC = 243, 1, 2
_SHT_PROGBITS, _SHT_STRTAB, _SHF_ALLOC_EXEC = 1, 3, 0x6
_SECTION_NAMES = b"\0.text\0.shstrtab\0"


def elf_of_code(code: Sequence[tuple[int, bytes]], xlen: int) -> bytes:
    """Return an executable with one section per (address, bytes)."""
    # e_type.. as half words, then the address-sized fields; section headers are all address-sized but name, type, link,
    # info
    header, section = ("<HHIQQQIHHHHHH", "<IIQQQQIIQQ") if xlen == 64 else ("<HHIIIIIHHHHHH", "<IIIIIIIIII")
    start = 16 + struct.calcsize(header)
    sections = [struct.pack(section, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]
    body = b""
    for address, data in code:
        at = start + len(body)
        sections.append(struct.pack(section, 1, _SHT_PROGBITS, _SHF_ALLOC_EXEC, address, at, len(data), 0, 0, 2, 0))
        body += data
    sections.append(struct.pack(section, 7, _SHT_STRTAB, 0, 0, start + len(body), len(_SECTION_NAMES), 0, 0, 1, 0))
    body += _SECTION_NAMES
    ident = b"\x7fELF" + bytes([2 if xlen == 64 else 1, 1, 1]) + bytes(9)
    fields = (_ET_EXEC, _EM_RISCV, 1, 0, 0, start + len(body), _EF_RISCV_RVC, start, 0, 0)
    shape = (struct.calcsize(section), len(sections), len(sections) - 1)
    return ident + struct.pack(header, *fields, *shape) + body + b"".join(sections)


OBJDUMP_NAMES = (
    "riscv64-unknown-elf-objdump",
    "riscv32-unknown-elf-objdump",
    "riscv64-elf-objdump",
    "riscv32-elf-objdump",
    "riscv-none-elf-objdump",
    "riscv64-linux-gnu-objdump",
    "objdump",
)
_OBJDUMP_SECONDS_AT_MOST = 60.0
_LINE = re.compile(r"^ *([0-9a-f]+):\t(.*?)\s*$", re.MULTILINE)
_ADDRESS = re.compile(r"^((?:j|jal|b[a-z]+)\t(?:.*,)?|.* # )0x([0-9a-f]+)$")  # of a jump or branch, or in a comment

SymbolLookup = Callable[[int], tuple[str, int] | None]


class ObjdumpText:
    """An objdump that supports RISC-V. *symbols* names addresses."""

    def __init__(self, program: str, symbols: SymbolLookup) -> None:
        self._program = program
        self._symbols = symbols

    @classmethod
    def find(cls, symbols: SymbolLookup) -> "ObjdumpText | None":
        """Return the first objdump on PATH that supports RISC-V; None if there is none."""
        for name in OBJDUMP_NAMES:
            program = shutil.which(name)
            if program is not None and "riscv" in _output([program, "-i"]):
                return cls(program, symbols)
        return None

    def disassemble(self, code: Sequence[tuple[CodeRun, bytes]], xlen: int) -> dict[int, InstructionText]:
        """Return the instructions of all of *code*, from one call of objdump; empty if it fails."""
        with tempfile.TemporaryDirectory(prefix="rvtrace-") as folder:
            elf = Path(folder, "code.elf")
            elf.write_bytes(elf_of_code([(run.start, data) for run, data in code], xlen))
            listing = _output([self._program, "-d", "-z", "--no-show-raw-insn", str(elf)])
        return {
            int(a, 16): InstructionText(self._symbols(int(a, 16)), self._as_gdb(text))
            for a, text in _LINE.findall(listing)
        }

    def _as_gdb(self, text: str) -> str:
        return _ADDRESS.sub(lambda match: match[1] + self._symbolic_address(int(match[2], 16)), text)

    def _symbolic_address(self, address: int) -> str:
        symbol = self._symbols(address)
        if symbol is None:
            return f"{address:#x}"
        name, offset = symbol
        return f"{address:#x} <{name}+{offset}>" if offset else f"{address:#x} <{name}>"


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_OBJDUMP_SECONDS_AT_MOST, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
