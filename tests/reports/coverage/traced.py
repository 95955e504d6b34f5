"""Programs that ran on the simulated hart without any trace; traces of what ran; gcov's figures."""

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.coverage.counting import program_coverages
from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage
from tests.helpers.cross_compiler import HOME, compile_program, symbol_address
from tests.session.board import executed

PROGRAMS = HOME / "tests" / "programs" / "coverage"
SOURCES = (PROGRAMS / "main.c", PROGRAMS / "parts.c", PROGRAMS / "other" / "parts.c")


def program(folder: Path, sources: Sequence[Path] = SOURCES, level: str = "-O0", *options: str) -> Path:
    """A program for the target."""
    folder.mkdir(exist_ok=True)
    return compile_program(folder, *sources, options=(level, *options))


def retired(elf: Path) -> list[int]:
    """What it runs until it is done, from a hart that is stepped."""
    done = symbol_address(elf, "done")
    return list(takewhile(lambda pc: pc != done, executed(elf)))


def trace(elf: Path, pcs: Sequence[int], file: Path, *options: str) -> Path:
    """A trace of that: a capture, or raw bytes, by the name of the file."""
    log = file.with_suffix(".pcs")
    log.write_text("".join(f"{pc:x}\n" for pc in pcs))
    assert main(["encode", "--elf", str(elf), "--pcs", str(log), "-o", str(file), "--quiet", *options]) == 0
    return file


def coverage(elf: Path, history: History) -> ProgramCoverage:
    """The coverage of a history of one program."""
    images = ContextImages(Image.from_elf(elf))
    [found] = program_coverages(history, images, CallHistory(history, images))
    return found


def decoded(elf: Path, data: bytes) -> History:
    """What a trace says ran."""
    return decode(data, Image.from_elf(elf), Options())


def gcov(folder: Path, sources: Sequence[Path] = SOURCES) -> dict[str, dict[int, tuple[int, Counter[int]]]]:
    """By file and line: how often the line runs on this machine, and the counts of its branches, as gcov has them."""
    objects = []
    for number, source in enumerate(sources):
        objects.append(folder / f"{number}.o")
        command = ["gcc", "--coverage", "-O0", "-g", "-c", str(source), "-o", str(objects[-1])]
        subprocess.run(command, check=True)
    subprocess.run(["gcc", "--coverage", *map(str, objects), "-o", str(folder / "program")], check=True)
    subprocess.run([str(folder / "program")], check=False)  # it ends with a result
    found: dict[str, dict[int, tuple[int, Counter[int]]]] = {}
    for compiled in objects:
        command = ["gcov", "-j", "-b", "-t", str(compiled.with_suffix(".gcda"))]
        said = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=folder).stdout)
        for file in said["files"]:
            lines = found.setdefault(file["file"], {})
            for line in file["lines"]:
                before, branches = lines.get(line["line_number"], (0, Counter[int]()))
                counts = Counter(branch["count"] for branch in line["branches"])
                lines[line["line_number"]] = before + line["count"], branches + counts
    return found
