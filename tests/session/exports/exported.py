"""Exports of traces of which another program says what ran.

The traces are those of the N-Trace reference encoder, of executions by Spike (tests/data/ntrace-reference): the SHA-256
of the addresses that ran is theirs. The names of functions are those that binutils' nm prints.
"""

import subprocess
from bisect import bisect_right
from collections import Counter
from functools import cache
from pathlib import Path

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.session import Session
from tests.decode.ntrace.messages import split
from tests.helpers.reference_streams import FOLDER, fingerprint, from_source, golden, in_turn

PROGRAMS = ("towers", "median", "dhrystone")
"""Recursion, loops, strings: each with its own libraries."""


def stream(program: str) -> Path:
    return FOLDER / f"{program}.1.nex"


def elf(program: str) -> Path:
    return FOLDER / f"{program}.elf"


def options(program: str) -> list[str]:
    return ["--ntrace", "--elf", str(elf(program))]


def export(form: str, out: Path, trace: Path, words: list[str], *more: str) -> bytes:
    """Export a raw trace at the shell, and return what is in the file."""
    assert main(["export", str(trace), *words, "--to", form, "-o", str(out), "--quiet", *more]) == 0
    return out.read_bytes()


@cache
def opened(trace: Path, program: str, *more: str) -> Session:
    """A session with a capture of the trace."""
    capture = trace.with_suffix(".rvt")
    if trace.is_relative_to(FOLDER):
        raise ValueError(f"{trace}: nothing is written there")
    assert main(["import", str(trace), *options(program), *more, "-o", str(capture), "--quiet"]) == 0
    session = Session()
    session.open(capture, None)
    return session


@cache
def retired(program: str) -> list[int]:
    """The addresses that ran, which are Spike's."""
    history = decode(stream(program).read_bytes(), Image.from_elf(elf(program)), Options())
    pcs = list(history.pcs())
    assert (len(pcs), fingerprint(pcs)) == golden(program) and GAP not in pcs
    return pcs


NO_SYMBOL = "[no symbol]"


@cache
def symbols(program: str) -> dict[int, tuple[int, set[str]]]:
    """The sizes and names of functions and labels in code by their addresses, in order. Size 0: up to the next one."""
    found: dict[int, tuple[int, set[str]]] = {}
    for line in binutils("nm", "--numeric-sort", "--print-size", str(elf(program))).splitlines():
        address, *size, kind, name = line.split()
        if kind in "tTwW" and not name.startswith("$"):
            before, names = found.get(int(address, 16), (0, set()))
            found[int(address, 16)] = max(before, int(size[0], 16) if size else 0), names | {name}
    return found


def binutils(tool: str, *words: str) -> str:
    """What a program of the cross compiler's binutils prints."""
    return subprocess.run([f"riscv64-unknown-elf-{tool}", *words], check=True, capture_output=True, text=True).stdout


def names_at(program: str, pc: int) -> set[str]:
    """The names of the function that contains an instruction."""
    known = symbols(program)
    start = list(known)[bisect_right(list(known), pc) - 1]
    size, names = known[start]
    return {NO_SYMBOL} if size and pc >= start + size else names


def ran_in(program: str, pcs: list[int], names: set[str]) -> Counter[str]:
    """How many instructions ran in each function; of several names at an address, the one that is in *names*."""
    found: Counter[str] = Counter()
    for pc, times in Counter(pcs).items():
        ours = names_at(program, pc) & names
        assert len(ours) == 1, f"{pc:#x}: {names_at(program, pc)}, of which {ours} are exported"
        found[ours.pop()] += times
    return found


def two_harts(folder: Path) -> tuple[Path, list[str]]:
    """A trace of two harts with times, 1 and 2, that run the same program, the second one for half as long."""
    data = stream("median").read_bytes()
    first = from_source(data, 2, 1, (100, 10))
    second = from_source(data, 2, 2, (155, 10))
    file = folder / "two.bin"
    file.write_bytes(in_turn(first, second[: len(second) // 2]))
    return file, [*options("median"), "--src-bits", "2", "--timestamps"]


def damaged(folder: Path, program: str = "towers") -> Path:
    """The trace of a program without one of its messages, in the middle: what ran there is lost."""
    messages = split(stream(program).read_bytes())
    file = folder / "damaged.bin"
    middle = len(messages) // 2
    file.write_bytes(b"".join(messages[:middle]) + b"\x00\x55\xaa\x03" + b"".join(messages[middle + 1 :]))
    return file


def addr2line(file: Path, names: list[str]) -> dict[str, tuple[str, int]]:
    """The name of the source file, and the line, of functions: as binutils' addr2line prints them."""
    listed = (line.split() for line in binutils("nm", str(file)).splitlines())
    starts = {words[2]: words[0] for words in listed if len(words) == 3}
    said = binutils("addr2line", "-e", str(file), *(starts[name] for name in names)).splitlines()
    found: dict[str, tuple[str, int]] = {}
    for name, line in zip(names, said, strict=True):
        path, _, rest = line.rpartition(":")
        found[name] = path.rpartition("/")[2], int(rest.split()[0])
    return found
