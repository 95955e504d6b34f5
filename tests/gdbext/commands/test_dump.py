"""`trace dump` in the real gdb, and `trace history` of several harts, on imported captures."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.decode.ntrace.messages import split
from tests.gdbext.gdb_process import SOURCE, ask_gdb, every_gdb, run_gdb
from tests.gdbext.test_interrupt import Gdb
from tests.helpers import reference_streams
from tests.helpers.amounts import thorough

ELF = reference_streams.FOLDER / "median.elf"
STREAM = (reference_streams.FOLDER / "median.1.nex").read_bytes()


def imported(folder: Path, data: bytes, *words: str) -> Path:
    """A capture of raw bytes."""
    (folder / "raw.bin").write_bytes(data)
    assert main(["import", str(folder / "raw.bin"), "--elf", str(ELF), "-o", str(folder / "x.rvt"), *words]) == 0
    return folder / "x.rvt"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("dump"), STREAM)


@pytest.fixture(scope="module")
def outside(capture: Path) -> list[str]:
    """What `rvtrace dump --raw` prints of the same file."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["dump", str(capture), "--raw"]) == 0
    return out.getvalue().splitlines()


def without_bytes(lines: list[str]) -> list[str]:
    return [re.sub(r" RAW=[0-9a-f]+", "", line) for line in lines]


def test_lines_are_those_of_rvtrace_dump(capture: Path, outside: list[str]) -> None:
    commands = ["trace dump 1,100000", "trace dump /r 1,100000", "trace dump 1,100000 /r"]
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", *commands])
    assert out["trace dump 1,100000"].splitlines() == without_bytes(outside)
    assert out["trace dump /r 1,100000"].splitlines() == outside
    assert out["trace dump 1,100000 /r"].splitlines() == outside


def test_pages_turn_as_those_of_the_history(capture: Path, outside: list[str]) -> None:
    commands = ["trace dump", "trace dump -", "trace dump +", "trace dump 3,5", "rvtrace dump", "trace dump 3,+2"]
    shown = without_bytes(outside)
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", *commands, "trace dump 100,-2"])
    pages = [out[command].splitlines() for command in commands]
    assert pages[:2] == [shown[-10:], shown[-20:-10]]
    assert pages[2:] == [shown[-10:], shown[2:5], shown[5:15], shown[2:4]]
    assert out["trace dump 100,-2"].splitlines() == shown[98:100]
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", "trace dump", "trace dump +"])
    assert out["trace dump +"].strip() == "At the end of the trace."


def test_the_bytes_a_gap_names_can_be_looked_at(tmp_path: Path) -> None:
    at = sum(map(len, list(split(STREAM))[:100]))
    capture = imported(tmp_path, STREAM[:at] + b"\x02\x03" + STREAM)
    commands = ["set record instruction-history-size 1", f"trace dump -offset {at}", f"trace dump -offset {at:#x}+1 /r"]
    out = run_gdb(ELF, [SOURCE, f"trace open {capture}", "trace history 1,100000", *commands])
    history = out["trace history 1,100000"]
    [gap] = [line for line in history.splitlines() if "\t[" in line]
    assert gap.endswith(f"; trace byte {at:#x}]")
    assert f"warning: a part of the trace cannot be decoded, at byte {at:#x}: 2 bytes skipped: reserved MSEO" in history
    line = re.compile(rf"\d+\t0x{at:08x} NoMessage BYTES=2( RAW=0203)? # reserved MSEO value 10")
    found = [line.fullmatch(out[command].rstrip("\n")) for command in commands[1:]]
    assert [match and match[1] for match in found] == [None, " RAW=0203"] and all(found)


def test_no_program_is_needed_but_a_trace_is(capture: Path) -> None:
    out = ask_gdb(None, [SOURCE, "trace dump", f"trace open {capture}", "trace dump 1,1"])
    assert out["trace dump"].strip() == (
        "there is no trace: `trace start` makes one, `trace open FILE` shows a saved one"
    )
    assert " ProgTraceSync TCODE=9 SYNC=1 " in out["trace dump 1,1"]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("trace dump 1000", "Range out of bounds: numbers go from 1 to {messages}."),
        ("trace dump 5,3", "Bad range: its end, 3, is before its beginning, 5."),
        ("trace dump here", "Expected positive number, got: here."),
        ("trace dump /x", "Invalid modifier: x."),
        ("trace dump -offset", "trace dump: -offset takes the number of a byte, got: none."),
        ("trace dump -offset nowhere", "trace dump: -offset takes the number of a byte, got: nowhere."),
        ("trace dump -offset 999999", "Range out of bounds: bytes go from 0x0 to {last:#x}."),
    ],
)
def test_wrong_arguments(command: str, line: str, capture: Path) -> None:
    expected = line.format(messages=len(list(split(STREAM))), last=len(STREAM) - 1)
    assert ask_gdb(ELF, [SOURCE, f"trace open {capture}", command])[command].strip() == expected


@every_gdb
@pytest.mark.parametrize(
    ("typed", "offered"), [("trace du", ["trace dump"]), ("trace dump -", ["trace dump -offset"]), ("trace dump 1", [])]
)
def test_completion(typed: str, offered: list[str], gdb: str) -> None:
    assert ask_gdb(None, [SOURCE, f"complete {typed}"], gdb=gdb)[f"complete {typed}"].split("\n")[:-1] == offered


def test_help() -> None:
    out = ask_gdb(None, [SOURCE, "help trace dump", "help set trace hart"])
    assert "Usage: trace dump [/r] [RANGE | -offset BYTE]" in out["help trace dump"]
    assert "the hart whose history is shown" in out["help set trace hart"]


def test_the_history_is_that_of_the_hart_that_is_set(tmp_path: Path) -> None:
    harts = [reference_streams.from_source(STREAM, 2, 1), reference_streams.from_source(STREAM[:400], 2, 2)]
    capture = imported(tmp_path, reference_streams.in_turn(*harts), "--src-bits", "2")
    commands = ["trace history", "set trace hart 2", "show trace hart", "trace history  1,100000", "trace status"]
    commands += ["set trace hart 3", "trace history   ", "set trace hart", "trace history 1,+1"]
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", *commands])
    count, _ = reference_streams.golden("median")
    assert out["trace history"].splitlines()[-1].startswith(f"{count}\t"), "the first one, if none is set"
    assert out["show trace hart"].strip() == "The trace hart is 2."
    pcs = [int(pc, 16) for pc in re.findall(r"^\d+\t(?:=> |   )0x([0-9a-f]+)", out["trace history  1,100000"], re.M)]
    assert 100 < len(pcs) < count
    assert re.search(rf"history:  hart 1: {count} instructions, .*\nhistory:  hart 2: ", out["trace status"])
    assert out["trace history   "].strip() == "hart 3 is not in this trace, which has harts 1, 2"
    assert out["trace history 1,+1"].startswith("1\t")


@pytest.fixture
def gdb() -> Iterator[Gdb]:
    gdb = Gdb(ELF)
    try:
        for command in ("set confirm off", SOURCE, "set height 0"):
            gdb.run(command)
        yield gdb
    finally:
        gdb.process.kill()
        gdb.process.communicate()


@thorough("gdbext/commands/test_find.py::test_long_lists_can_be_interrupted")
def test_a_long_dump_can_be_interrupted(gdb: Gdb, tmp_path: Path) -> None:
    gdb.run(f"trace open {imported(tmp_path, STREAM * 3000)}")
    gdb.reports()
    gdb.type("trace dump")
    gdb.until("[reading messages: ")
    gdb.interrupt()
    assert "Quit" in gdb.answer()
    assert "sink: " in gdb.run("info line main\ntrace status", 120)


def test_the_history_is_that_of_the_selected_thread(tmp_path: Path) -> None:
    """On a target with two harts, each of which is a thread in gdb: QEMU."""
    harts = [reference_streams.from_source(STREAM, 1, 0), reference_streams.from_source(STREAM[:400], 1, 1)]
    capture = imported(tmp_path, reference_streams.in_turn(*harts), "--src-bits", "1")
    qemu = "qemu-system-riscv64 -M virt -smp 2 -S -bios none -display none -monitor none -serial none -gdb stdio"
    commands = [SOURCE, f"target remote | {qemu}", f"trace open {capture}"]
    commands += ["trace history", "thread 2", "trace history ", "thread 1", "trace history  1,+1", "set trace hart 1"]
    out = run_gdb(ELF, [*commands, "trace history   ", "kill"])  # else the program would run, as long as gdb waits
    count, _ = reference_streams.golden("median")
    assert out["trace history"].splitlines()[-1].startswith(f"{count}\t")
    assert 0 < int(out["trace history "].splitlines()[-1].split("\t")[0]) < count
    assert out["trace history  1,+1"].startswith("1\t")
    assert not out["trace history   "].splitlines()[-1].startswith(f"{count}\t")
