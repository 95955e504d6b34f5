"""A program whose trace is shown as perf shows it, and what it ran: known of a hart that was stepped.

Its symbols are those of the linker without mapping symbols ($x), which perf 6.1 takes for functions.
"""

import contextlib
import io
import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.console.main import main
from tests.helpers.cross_compiler import ABI, EXAMPLES
from tests.reports.coverage import traced
from tests.session.exports import exported


class TracedProgram(NamedTuple):
    elf: Path
    capture: Path
    pcs: list[int]

    def script(self, *words: str) -> list[str]:
        """The lines of `rvtrace perf-script`."""
        return script_of([str(self.capture), *words])

    def perf_script(self, itrace: str, *words: str) -> list[str]:
        """The lines that Debian's perf prints of the same events in a perf.data."""
        return perf("script", "--ns", *words, data=self.perf_data(itrace)).splitlines()

    def perf_data(self, itrace: str) -> Path:
        """A perf.data with these events."""
        data = self.capture.with_suffix(f".{itrace}.data")
        if not data.exists():
            words = ["--to", "perf-data", "-o", str(data), "--itrace", itrace, "--quiet"]
            assert main(["export", str(self.capture), *words]) == 0
        return data

    def transfers(self) -> list[tuple[int, int, int]]:
        """(index, source, target) of each step that does not lead to the next instruction."""
        behind = following(self.elf)
        return [(at, pc, to) for at, (pc, to) in enumerate(pairwise(self.pcs)) if behind.get(pc) != to]

    def calls(self) -> Iterator[tuple[int, int, list[int]]]:
        """(index, callee, return addresses with the newest first) of each call, by the text of instructions."""
        listed, behind, back = disassembly(self.elf), following(self.elf), list[int]()
        for at, (pc, to) in enumerate(pairwise(self.pcs)):
            name, _, operands = listed[pc].partition("\t")
            if name == "ret" and back and to == back[0]:
                back = back[1:]
            elif name in ("jal", "jalr") and not operands.startswith(("zero", "x0")):
                back = [behind[pc], *back]
                yield at, to, back

    def chain_at(self, index: int) -> list[int]:
        """The instruction at an index, and where the calls under way return to, newest first."""
        listed, behind, back = disassembly(self.elf), following(self.elf), list[int]()
        for pc, to in pairwise(self.pcs[: index + 1]):
            name = listed[pc].partition("\t")[0]
            if name == "ret" and back and to == back[0]:
                back = back[1:]
            elif name in ("jal", "jalr"):
                back = [behind[pc], *back]
        return [self.pcs[index], *back]


def script_of(words: Sequence[str]) -> list[str]:
    """The lines of `rvtrace perf-script` with these arguments."""
    made = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(made):
        assert main(["perf-script", *words, "--quiet"]) == 0
    made.seek(0)
    return made.read().splitlines()


def perf(*words: str, data: Path) -> str:
    """What Debian's perf prints of a file."""
    command = ["perf", words[0], "-i", str(data), *words[1:]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@cache
def disassembly(elf: Path) -> dict[int, str]:
    """The instructions as binutils' objdump prints them, by address: mnemonic TAB operands."""
    listing = exported.binutils("objdump", "-d", "--no-show-raw-insn", str(elf))
    return {int(at, 16): text for at, text in re.findall(r"^ *([0-9a-f]+):\t(.*)$", listing, re.MULTILINE)}


def following(elf: Path) -> dict[int, int]:
    """The address behind each instruction."""
    return dict(pairwise(disassembly(elf)))


@cache
def functions(elf: Path) -> dict[int, str]:
    """The names of functions by their addresses, as binutils' nm prints them."""
    rows = (line.split() for line in exported.binutils("nm", str(elf)).splitlines())
    return {int(row[0], 16): row[2] for row in rows if len(row) == 3 and row[1] in "tT"}


def name_of(elf: Path, pc: int) -> str:
    """The name of the function that an address is in."""
    known = functions(elf)
    return known[max(start for start in known if start <= pc)]


def made(folder: Path, script: Path = EXAMPLES / "link.ld", pcs: Sequence[int] = ()) -> TracedProgram:
    """The program of the coverage tests, linked by a script, and its trace. DWARF 4 is what AutoFDO reads. *pcs*: what
    it runs, if that is known.
    """
    folder.mkdir(exist_ok=True)
    elf, march = folder / "it.elf", "rv64imac_zicsr"
    command = ["riscv64-unknown-elf-gcc", f"-march={march}", f"-mabi={ABI[march]}", "-mcmodel=medany", "-Og"]
    command += ["-gdwarf-4", "-specs=picolibc.specs", "-nostartfiles", "-T", str(script), str(EXAMPLES / "start.S")]
    subprocess.run([*command, *map(str, traced.SOURCES), "-o", str(elf)], check=True)
    exported.binutils("objcopy", "--wildcard", "--strip-symbol=$*", str(elf))
    ran = list(pcs) or traced.retired(elf)
    return TracedProgram(elf, traced.trace(elf, ran, folder / "it.rvt"), ran)


def made_like_linux(folder: Path, pcs: Sequence[int]) -> TracedProgram:
    """The same code, with segments of which the first one begins with the file, as in programs of Linux."""
    script = (EXAMPLES / "link.ld").read_text()
    segments = "PHDRS { text PT_LOAD FILEHDR PHDRS; data PT_LOAD; }"
    script = re.sub(r"^MEMORY.*$", segments, script, flags=re.MULTILINE)
    script = script.replace("SECTIONS\n{", "SECTIONS {\n . = 0x80000000;").replace("> RAM", "")
    script = re.sub(r"^( *\.text .*)$", r"\1 :text", script, flags=re.MULTILINE)
    script = re.sub(r"^( *\.tohost .*)$", r"\1 :data", script, flags=re.MULTILINE)
    file = folder / "linux.ld"
    file.write_text(script.replace("ORIGIN(RAM) + LENGTH(RAM)", "0x80080000"))
    return made(folder / "linux", file, pcs)
