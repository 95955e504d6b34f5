"""`trace data` in the real gdb: what Spike says qsort loaded and stored, of a trace imported from raw bytes."""

import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.etrace.options import Modes
from rvtrace_gdb.decode.program.instructions import MemoryAccess
from tests.decode.etrace.data.test_history import accessed, trace
from tests.decode.etrace.encoder_vectors import ROOT
from tests.decode.etrace.vectors import expected
from tests.gdbext.gdb_process import SOURCE, ask_gdb

ELF = ROOT / "qsort" / "qsort.riscv"
LINE = re.compile(
    r"(\d+)\t@(\d+)\t0x([0-9a-f]{16})( <[^>]+>)?:\t(load|store) (\d) bytes? at 0x([0-9a-f]{16})( <[^>]+>)? = 0x(\w+)"
)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "raw.bin").write_bytes(trace(Modes(), boot=False))
    words = ["import", str(folder / "raw.bin"), "--etrace", "--type-bits", "1", "--elf", str(ELF)]
    assert main([*words, "-o", str(folder / "x.rvt")]) == 0
    return folder / "x.rvt"


def in_program() -> tuple[int, list[MemoryAccess]]:
    """How many instructions ran before the program, and the accesses of the program."""
    rom = sum(pc < 0x8000_0000 for pc in expected("qsort", "o01"))
    return rom, [access for access in accessed() if (access.position or 0) >= rom]


def facts(lines: list[str]) -> list[tuple[int, ...]]:
    """(number, number of the instruction, pc, size, address, value) of lines."""
    found: list[tuple[int, ...]] = []
    for line in lines:
        match = LINE.fullmatch(line)
        assert match, line
        found.append(
            (int(match[1]), int(match[2]), int(match[3], 16), int(match[6]), int(match[7], 16), int(match[9], 16))
        )
    return found


def wanted(accesses: list[MemoryAccess]) -> list[tuple[int, ...]]:
    rom, _ = in_program()
    pcs = expected("qsort", "o01")
    return [
        (number, a.position - rom + 1, pcs[a.position], a.size, a.address or 0, a.value or 0)
        for number, a in enumerate(accesses, 1)
        if a.position is not None
    ]


def test_all_accesses(capture: Path) -> None:
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", "trace data 1,100000"])
    _, accesses = in_program()
    assert facts(out["trace data 1,100000"].splitlines()[-len(accesses) :]) == wanted(accesses)


def test_those_of_one_object(capture: Path) -> None:
    """The array most accesses are to, by its symbol: address and size by nm, the accesses to it by Spike."""
    nm = subprocess.run(["riscv64-unknown-elf-nm", "-S", str(ELF)], check=True, capture_output=True, text=True).stdout
    [(start, size)] = [line.split()[:2] for line in nm.splitlines() if line.endswith(" verify_data")]
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", "trace data verify_data 1,100000"])
    _, accesses = in_program()
    begin, end = int(start, 16), int(start, 16) + int(size, 16)
    want = wanted([access for access in accesses if begin <= (access.address or 0) < end])
    assert len(want) > 100
    assert facts(out["trace data verify_data 1,100000"].splitlines()[-len(want) :]) == want


def test_forms_of_the_argument(capture: Path) -> None:
    _, accesses = in_program()
    first = accesses[0]
    place, size = first.address or 0, first.size
    commands = [f"trace data {place:#x} 1,1", f"trace data *(char *){place + size - 1:#x} 1,1",
                f"trace data {place - 4:#x},5 1,1", f"trace data {place + size:#x},1 1,1"]  # fmt: skip
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", *commands])
    texts = [out[command].splitlines()[-1].partition("\t")[2] for command in commands]
    assert texts[0] == texts[1] == texts[2] != texts[3]
    assert f"at 0x{place:016x}" in texts[0]


def test_pages(capture: Path) -> None:
    commands = ["trace data", "trace data -", "trace data +", "trace data 3,5"]
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", *commands])
    count = len(in_program()[1])
    numbers = [[int(line.split("\t")[0]) for line in out[c].splitlines() if line[:1].isdecimal()] for c in commands]
    assert numbers == [
        list(range(count - 9, count + 1)), list(range(count - 19, count - 9)),
        list(range(count - 9, count + 1)), [3, 4, 5],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("trace data nothing_like_it", "No symbol"),
        ("trace data 0x80000000,0", "0 bytes cannot be shown"),
        ("trace data 0x10", "No access to 1 byte at 0x10 is in the trace."),
        ("trace data 99999999", "Range out of bounds: rows of this list go from 1 to "),
    ],
)
def test_what_cannot_be_shown(capture: Path, command: str, says: str) -> None:
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", command])
    assert says in out[command] and "Traceback" not in out[command]


def test_rvtrace_data_prints_the_same(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", str(capture)]) == 0
    _, accesses = in_program()
    assert facts(capsys.readouterr().out.splitlines()) == wanted(accesses)
