"""A capture with a tandem trace in the real gdb: every command that shows a capture shows this one."""

from pathlib import Path

import pytest

from tests.decode.tandem.corpus import DATA, golden_steps
from tests.endtoend.command_line import printed
from tests.gdbext.gdb_process import SOURCE, run_gdb

NAME = "flute_rv64mi-p-scall"
ELF = DATA / "riscv-tests/rv64mi-p-scall"
TVT = DATA / f"tandem/{NAME}.tvt"
STEPS = [step for step in golden_steps(NAME) if step.pc >= 0x80000000]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tandem") / "x.rvt"
    printed("import", TVT, "--tandem", "--dialect", "flute", "--elf", ELF, "--hart", 2, "-o", file)
    return file


@pytest.fixture(scope="module")
def shown(file: Path) -> dict[str, str]:
    """What each command printed."""
    commands = [
        SOURCE, "trace history", f"trace open {file}", "trace status", "trace history 9,+4", "trace dump 9,+2",
        "trace dump /r 9", "trace data 1,4", "trace info", "trace regs", "trace regs tandem9", "trace functions",
        "trace calls", "trace coverage", "trace find *0x80000000", "trace events", "trace gaps",
        f"trace save {file.parent / 'again.rvt'}",
    ]  # fmt: skip
    found = run_gdb(ELF, commands)
    assert "Traceback" not in "".join(found.values()) and "Python Exception" not in "".join(found.values())
    return found


def test_what_it_is(shown: dict[str, str], file: Path) -> None:
    size = TVT.stat().st_size
    tandem = f"tandem:   tandem2, hart 2: RV64, FLEN 64, MLEN 64, flute, {size} bytes"
    opened, status = shown[f"trace open {file}"].splitlines(), shown["trace status"].splitlines()
    assert opened[0] == f"capture:  {file}"
    assert opened[2] == tandem
    assert status[:3] == opened
    assert status[3].endswith(f"; {size} bytes: {size} decoded, 0 idle, 0 skipped")
    assert (
        f"tandem2:  tandem trace, hart 2: RV64, FLEN 64, MLEN 64, flute\n          {size} bytes" in shown["trace info"]
    )
    assert shown["trace regs"].startswith("tandem2: tandem trace port, hart 2, in the capture\n  note: ")
    assert "there is no component 'tandem9' in this capture: there are tandem2" in shown["trace regs tandem9"]


def test_what_ran(shown: dict[str, str]) -> None:
    """The boot ROM's 8 instructions are another core's in the golden log."""
    rows = shown["trace history 9,+4"].splitlines()
    assert [int(row.split()[1], 16) for row in rows] == [step.pc for step in STEPS[:4]]
    assert [row.split("\t")[0] for row in rows] == ["9", "10", "11", "12"]
    assert shown["trace find *0x80000000"].startswith("1\t@9\t0x0000000080000000")
    assert shown["trace gaps"].startswith("No gaps")
    assert "exception 8 (environment call from U-mode or VU-mode)" in shown["trace events"]
    assert shown["trace functions"] and shown["trace calls"] and shown["trace coverage"]


def test_its_groups(shown: dict[str, str]) -> None:
    """Group 1 is the reset, so that of number N is the instruction of number N - 1."""
    groups = shown["trace dump 9,+2"].splitlines()
    assert [line.split()[0] for line in groups] == ["9", "10"]
    assert f"instr=0x{STEPS[0].word:08x}" in groups[1]
    assert int(groups[0].split("pc=")[1].split()[0], 16) == STEPS[0].pc
    assert "RAW=01070a" in shown["trace dump /r 9"]
    assert "load 8 bytes at 0x0000000070000018" in shown["trace data 1,4"]


def test_it_is_saved_as_it_was(shown: dict[str, str], file: Path) -> None:
    again = file.parent / "again.rvt"
    assert shown[f"trace save {again}"].strip() == f"Saved {TVT.stat().st_size} bytes of trace to {again}."
    assert again.read_bytes() == file.read_bytes()
