"""Instruction text from gdb, so that a listing outside gdb reads exactly as inside.

gdb is driven through its machine interface (GDB manual, "GDB/MI Data Manipulation", -data-disassemble) with nothing
but the program loaded. That needs no Python in gdb and no target, and costs about 50 ms to start.
"""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterable

from rvtrace_gdb.views.text import Run, Text

# In order of preference; the last may be of the host's architecture only.
NAMES = (
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
        """Start the first gdb on PATH that knows RISC-V; None when there is none."""
        for name in NAMES:
            program = shutil.which(name)
            if program is not None:
                gdb = cls(_start(program, elf))
                if gdb._knows_riscv():
                    return gdb
                gdb.close()
        return None

    def disassemble(self, run: Run) -> dict[int, Text]:
        """The instructions of *run*; empty where gdb cannot read the code or has ended."""
        reply = self._ask(f"-data-disassemble -s {run.start:#x} -e {run.end:#x} -- 0")
        return dict(_instructions(_INSTRUCTION.finditer(reply)))

    def close(self) -> None:
        """End gdb. More than once is allowed."""
        process = self._process
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def _knows_riscv(self) -> bool:
        return "riscv" in self._ask('-interpreter-exec console "show architecture"')

    def _ask(self, command: str) -> str:
        """All that gdb says up to the result of *command*; what there is when gdb ends or hangs."""
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


def _start(program: str, elf: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [program, "-nx", "-q", "-i=mi", "--", elf],
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


def _instructions(matches: Iterable[re.Match[str]]) -> Iterable[tuple[int, Text]]:
    for match in matches:
        name = match["name"]
        symbol = (_plain(name), int(match["offset"])) if name is not None else None
        yield int(match["address"], 16), Text(symbol, _plain(match["text"]))


def _plain(escaped: str) -> str:
    """Undo the escapes of an MI C string; non-ASCII bytes come as octal."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8)) if len(code) == 3 else _LETTERS.get(code, code)

    text = _ESCAPED.sub(character, escaped)
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "replace")
