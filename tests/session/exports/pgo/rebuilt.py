"""Programs that clang builds, also with a profile, and traces of what they ran."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.helpers.cross_compiler import EXAMPLES
from tests.reports.coverage.traced import retired, trace

PROGRAMS = ("filter", "dispatch")
TARGET = ("--target=riscv64", "-march=rv64imac_zicsr", "-mabi=lp64", "-mcmodel=medany")
OPTIONS = ("-O2", "-gdwarf-4", "-fdebug-info-for-profiling", "-ffreestanding", "-fno-builtin")  # AutoFDO reads DWARF 4


def built(name: str, folder: Path, *options: str) -> Path:
    """A program of examples/pgo, built by clang with more options."""
    return linked(folder, folder / f"{name}.elf", [EXAMPLES / "pgo" / f"{name}.c"], *options)


def linked(folder: Path, elf: Path, sources: Sequence[Path], *options: str) -> Path:
    """A program, built by clang with more options."""
    objects = [folder / "start.o", *(folder / f"{source.stem}.o" for source in sources)]
    run("clang-19", *TARGET, "-c", str(EXAMPLES / "start.S"), "-o", str(objects[0]))
    for source, code in zip(sources, objects[1:], strict=True):
        run("clang-19", *TARGET, *OPTIONS, *options, "-c", str(source), "-o", str(code))
    run("ld.lld-19", "--build-id", "-T", str(EXAMPLES / "link.ld"), *map(str, objects), "-o", str(elf))
    return elf


def run(*words: str) -> str:
    """What a program prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Traced:
    """A program that ran: its ELF file, what the hart retired without any trace, and the capture of a trace of that."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.elf = built(name, folder)
        self.pcs: Sequence[int] = retired(self.elf)
        self.capture = trace(self.elf, self.pcs, folder / f"{name}.rvt")


SampleLines = dict[tuple[str, ...], int]


def samples(text: str) -> tuple[SampleLines, dict[tuple[str, ...], dict[str, int]], dict[str, int]]:
    """The counts of the places of a sample profile, its calls, and how often functions were entered.

    A place is the function, the places of inlined calls, and its own. Places of no line, which the tools of LLVM count
    at distances from the function that no code has, are left out.
    """
    body: SampleLines = {}
    calls: dict[tuple[str, ...], dict[str, int]] = {}
    heads: dict[str, int] = {}
    path: list[str] = []
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        words = line.split()
        path = path[: depth]
        if not depth:
            name, _, head = line.split(":")
            path, heads[name] = [name], int(head)
        elif int(words[0].rstrip(":").split(".")[0]) > 60_000:
            path.append("?")
        elif words[1].isdecimal():
            place = (*path, words[0])
            body[place] = int(words[1])
            if words[2:]:
                calls[place] = {name: int(times) for name, times in (word.split(":") for word in words[2:])}
        else:
            path.append(f"{words[0]}{words[1].split(':')[0]}")
    return {place: times for place, times in body.items() if "?" not in place}, calls, heads
