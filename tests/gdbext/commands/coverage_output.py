"""What `trace coverage` and `disassemble` said in a gdb, read; and the truth from elsewhere."""

import re
import subprocess
from collections import defaultdict
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import HOME, SOURCE, run_gdb

PROGRAMS = HOME / "tests" / "programs" / "coverage"
SOURCES = (PROGRAMS / "main.c", PROGRAMS / "parts.c", PROGRAMS / "other" / "parts.c")

LINE = re.compile(r"^ *(-|#####|\d+\??): (\d+)\t(.*)$", re.M)
ROW = re.compile(r"^ *(#####|\d+) +(?:(\d+) of (\d+) +(\d+)% +)?(\d+) of (\d+) +(\d+)%  (.+)$", re.M)
INSTRUCTION = re.compile(
    r"^(?:=> |   )0x([0-9a-f]+) <[^>]*>:\t(?: *(#####|\d+): )?(.*?)(?:\t# taken (\d+), not taken (\d+))?$", re.M
)
_GCOV = re.compile(r"^ *(-|#####|=====|\d+)\*?: *(\d+):(.*)$", re.M)

Lines = dict[int, int | None]
"""By number: how often a line ran, None if it has no code."""


def count(text: str) -> int | None:
    return None if text == "-" else 0 if text in ("#####", "=====") else int(text.rstrip("?"))


def lines(said: str) -> Lines:
    """Of what `trace coverage FILE` said."""
    return {int(number): count(times) for times, number, _ in LINE.findall(said)}


def traced(
    elf: Path, folder: Path, commands: list[str], until: str = "_exit", **gdb: str
) -> tuple[dict[str, str], list[int]]:
    """What gdb said to each command after the program ran and was traced, and what the hart says it retired."""
    log = folder / "retired.log"
    with Rig(elf, folder / "rig", "--log-retired", str(log)) as rig:
        first = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        said = run_gdb(elf, [*first, "trace start", f"break {until}", "continue", *commands], **gdb)
    return said, retired_pcs(log)


def gcov(folder: Path) -> dict[Path, Lines]:
    """How often each line of the C programs runs on this machine, as its compiler and gcov have it."""
    objects = []
    for i, source in enumerate(SOURCES):
        (folder / str(i)).mkdir()
        objects.append(folder / str(i) / "it.o")
        subprocess.run(["gcc", "--coverage", "-O0", "-c", str(source), "-o", str(objects[-1])], check=True)
    subprocess.run(["gcc", "--coverage", *map(str, objects), "-o", str(folder / "program")], check=True)
    subprocess.run([str(folder / "program")], check=False)  # it ends with a result
    found: dict[Path, Lines] = defaultdict(dict)
    for compiled in objects:
        command = ["gcov", "-t", str(compiled.with_suffix(".gcda"))]
        text = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout
        for part in text.split("-:    0:Source:")[1:]:
            file = Path(part.partition("\n")[0])
            for times, number, _ in _GCOV.findall(part):
                line, ran = int(number), count(times)
                before = found[file].get(line)
                found[file][line] = ran if before is None else before + (ran or 0)
    return found
