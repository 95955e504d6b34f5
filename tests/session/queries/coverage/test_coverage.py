"""How often instructions ran, as the session tells it: of which programs, of which part, and the protocol."""

import random
import re
import subprocess
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path as File
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.coverage import functions
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, History, Path
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.elf import Elf, ElfSection, ElfSegment, Symbol
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.queries.lists.functions import CountedPart, Coverage
from rvtrace_gdb.session.queries.lists.pages import RangeError
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from tests.decode.history.test_history import NOTHING
from tests.gdbext.commands.test_dump import ELF, STREAM
from tests.helpers import reference_streams
from tests.helpers.amounts import each_seed
from tests.helpers.cross_compiler import demo
from tests.helpers.event_facts import lost

KERNEL, PROCESS, SHARED = 0x8000_0000, 0x1_0000, 0x8000_0100
NOP = b"\x01\x00"


def programs() -> ContextImages:
    """A kernel, and a process (scontext 7) with code of its own elsewhere and over the kernel's at SHARED."""
    kernel, process = Image(64), Image(64)
    names = [Symbol(KERNEL, "kernel", 0x20, True), Symbol(SHARED, "hidden", 0x20, True)]
    section = ElfSection(KERNEL, KERNEL + 0x200, names)
    code = ElfSegment(KERNEL, KERNEL, 0, NOP * 0x100, True)
    kernel.add_elf(replace(Elf("kernel.elf", "", 64), sections=[section], segments=[code]))
    process.add_code(PROCESS, NOP * 0x100, "process.elf")
    process.add_code(SHARED, NOP * 0x10, "process.elf")
    program = ContextImages(kernel)
    program.attach(process, scontext=7)
    return program


def ran(seed: int) -> tuple[History, list[tuple[int, bool]]]:
    """Of both, switching; and for each position the address and whether it is the kernel's."""
    rng = random.Random(seed)
    builder = HistoryBuilder()
    told: list[tuple[int, bool]] = []
    paths = {
        False: [Path([(KERNEL, KERNEL + 2), (KERNEL + 4,)]), Path([(SHARED, SHARED + 2)])],
        True: [Path([(PROCESS, PROCESS + 2)]), Path([(SHARED, SHARED + 2)]), Path([(KERNEL + 6,)])],
    }
    in_process = False
    for _ in range(rng.randrange(1, 40)):
        if rng.random() < 0.4:
            in_process = not in_process
            builder.context(ProgramContext(0, scontext=7) if in_process else ProgramContext(3))
        if rng.random() < 0.1 and told and told[-1][0] != GAP:
            builder.gap(EventKind.LOSS, 0, lost())
            told.append((GAP, True))
        path = rng.choice(paths[in_process])
        builder.append(path)
        told += [(pc, not in_process or pc == KERNEL + 6) for piece in path.chunks(0, len(path)) for pc in piece]
    return builder.finish(NOTHING), told


@each_seed(range(100))
def test_only_the_program_that_gdb_has_is_counted(seed: int) -> None:
    history, told = ran(seed)
    coverage = Coverage(history, programs())
    rng = random.Random(seed)
    first = rng.randint(1, len(told))
    last = rng.randint(first, len(told))
    for args, part in (("", told), (f"{first},{last}", told[first - 1 : last]), (f"{first}", told[first - 1 :])):
        coverage.select(args)
        begin = 1 if not args else first
        gaps = sum(pc == GAP for pc, _ in part)
        others = sum(not own for _, own in part)
        assert coverage.counted() == CountedPart(begin, begin + len(part) - 1, gaps, others)
        counts = Counter(pc for pc, own in part if own and pc != GAP)
        assert coverage.addresses() == sorted(counts.items())
        assert coverage.addresses(KERNEL, KERNEL + 4) == [(pc, counts[pc]) for pc in (KERNEL, KERNEL + 2) if counts[pc]]
        rows = {row.name: row for row in coverage.functions()}
        assert rows["hidden"].ran == sum(pc in counts for pc in (SHARED, SHARED + 2))
        assert (rows["hidden"].instructions, rows["hidden"].entered) == (0x10, counts[SHARED])


@pytest.mark.parametrize("args", ["-", "+", "0", "7,3", "99999", "x", "1,2,3"])
def test_a_range_that_is_none_changes_nothing(args: str) -> None:
    history, told = ran(3)
    coverage = Coverage(history, programs())
    coverage.select("2,5")
    with pytest.raises(RangeError):
        coverage.select(args)
    assert coverage.counted()[:2] == (2, min(5, len(told)))


def test_functions_are_those_of_the_symbol_table(tmp_path: File) -> None:
    """By nm and objdump; a table among the code is none."""
    elf = demo(tmp_path)
    text = subprocess.run(["riscv64-unknown-elf-nm", elf], check=True, capture_output=True, text=True).stdout
    names = {int(at, 16): name for at, kind, name in map(str.split, text.splitlines()) if kind in "tT"}
    code = subprocess.run(["riscv64-unknown-elf-objdump", "-d", elf], check=True, capture_output=True, text=True).stdout
    pcs = [int(pc, 16) for pc in re.findall(r"^ *([0-9a-f]+):\t", code, re.M)]
    found = functions(Image.from_elf(elf))
    assert {"main", "fib", "_start", "_exit", "done", "on_trap"} <= {function.name for function in found}
    assert "operations" in names.values() and "operations" not in {function.name for function in found}
    for function, after in pairwise(found):
        assert names[function.start] == function.name and function.end <= after.start
        assert function.instructions == sum(function.start <= pc < function.end for pc in pcs), function.name


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory) -> Methods:
    """Of a session that looks at a capture of two harts; of the second one it has only the beginning."""
    folder = tmp_path_factory.mktemp("coverage")
    harts = [reference_streams.from_source(STREAM, 2, 0), reference_streams.from_source(STREAM[:400], 2, 1)]
    (folder / "raw.bin").write_bytes(reference_streams.in_turn(*harts))
    command = ["import", str(folder / "raw.bin"), "--elf", str(ELF), "--src-bits", "2", "-o", str(folder / "x.rvt")]
    assert main(command) == 0
    session = Session()
    session.open(folder / "x.rvt", None)
    return Methods(session)


def call(methods: Methods, **params: Any) -> Any:
    return methods.call("coverage", {"context": {}, **params}, silent)


def test_without_a_trace() -> None:
    with pytest.raises(NoTrace):
        call(Methods(Session()))
