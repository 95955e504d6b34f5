"""Names of a hostile program in gdb's own lists of rvtrace: one row each, and nothing there that a terminal obeys."""

import re
from pathlib import Path

import pytest

from tests.console.test_hostile_names import captured
from tests.endtoend.trace.test_find import names
from tests.gdbext.ctr.test_commands import connected
from tests.gdbext.gdb_process import SOURCE, run_gdb, some_gdbs
from tests.helpers.amounts import thorough
from tests.helpers.hostile_program import SHOWN, hostile, unfit
from tests.helpers.started_python import rvtrace

LISTS = (
    "trace history 1,2021", "trace history /m 1,2021", "trace history /r 1,2021", "trace functions 1,200",
    "trace functions /cli 1,200", "trace calls /n 0", "trace coverage", "trace coverage -all", "trace info",
    "trace check", "trace events", "trace find *0x80000088", "trace log *0x80000088 /a $pc, $a0",
    "trace status", "trace dump 1,200", "trace gaps",
    "trace values", "trace regs", "trace who-wrote $a0", "trace why $a0", "trace goto begin", "trace position",
    "trace print $pc", "trace note -at 3 here", "trace note", "trace goto live", "trace report", "trace explain",
    "trace stack", "trace fork -check", "trace sql SELECT * FROM calls", "trace intervals trap",
)  # fmt: skip
RECORDS = (
    "trace ctr show 0,15", "trace ctr show /i 0,15", "trace ctr show /m 0,15", "trace ctr stack", "trace ctr status",
    "trace history 1,500", "trace functions 1,500",
)  # fmt: skip

UNTRIED = {
    "tasks": "needs a system of tasks, and prints names as the shell's: tests/session/tasks",
    "ctr": "RECORDS", "data": "needs a data trace: as the shell's, tests/console/test_hostile_names.py",
    "itc": "prints no name of the program, but what it wrote: tests/console/commands/test_event_traces.py",
    "export": "writes a file: tests/console/commands/test_export.py",
    "pgo": "writes a file with the names as they are, for compilers; what it prints has names of files alone",
    **dict.fromkeys(("start", "stop", "connect", "replay", "live", "enter", "native"), "prints no name of the program"),
    **dict.fromkeys(("save", "open", "close"), "prints no name of the program but the file's"),
    "calls-of": "as the shell's, tests/console/test_hostile_names.py",
    "diff": "needs another trace; its rows name functions as the shell's do",
    "top": "needs a target", "waves": "prints the file's name alone: tests/gdbext/replay/test_waves.py",
    "here": "needs the TUI window", "usb": "needs an adapter", "snapshot": "needs an ESP32 chip",
}  # fmt: skip
"""Commands that are not tried here, and why."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    hostile(made)
    for name in ("hostile", "demo-rv64imac_zicsr"):
        captured(made, made / f"{name}.elf")
    return made


@some_gdbs
def test_lists(gdb: str, folder: Path) -> None:
    said = {}
    for name in ("hostile", "demo-rv64imac_zicsr"):
        opened = [SOURCE, "set record instruction-history-size unlimited", f"trace open {folder / name}.rvt"]
        commands = [*opened, *LISTS, "help trace"]
        said[name] = run_gdb(folder / f"{name}.elf", commands, gdb=gdb)
    commands = re.findall(r"^trace ([a-z-]+) -- ", said["hostile"]["help trace"], re.M)
    assert sorted({command.split()[1] for command in LISTS} | UNTRIED.keys()) == sorted(commands)
    for command in LISTS:
        odd, plain = said["hostile"][command], said["demo-rv64imac_zicsr"][command]
        assert unfit(odd) == set(), command
        assert "Python Exception" not in odd and "Traceback" not in odd, (command, odd)
        assert len(odd.splitlines()) == len(plain.splitlines()), command
    for name in SHOWN:
        assert f"<{name}+0>" in said["hostile"]["trace history 1,2021"]
    assert all(name in said["hostile"]["trace functions 1,200"] for name in SHOWN[:2])


@thorough("test_lists")
@some_gdbs
def test_lists_of_records(gdb: str, folder: Path, tmp_path: Path) -> None:
    """Of the simulated hart, where gdb is connected and in a capture; what the command line says of that, too."""
    said = {}
    for name in ("hostile", "demo-rv64imac_zicsr"):
        elf, capture = folder / f"{name}.elf", tmp_path / f"{name}.rvt"
        with connected("1.0", elf, tmp_path / name[0]) as first:
            said[name] = run_gdb(
                elf,
                [*first, f"tbreak *{finish(folder):#x}", "trace ctr start -depth 16", "continue", *RECORDS,
                 f"trace save {capture}", "trace ctr stop", "disconnect", f"trace open {capture}",
                 *(f"{it} " for it in RECORDS)],
                gdb=gdb,
            )  # fmt: skip
        for words in (["dump"], ["dump", "--json"], ["decode"], ["decode", "--events"]):
            done = rvtrace(*words, capture)
            assert done.returncode == 0, done.stderr
            said[name][" ".join(words)] = done.stdout
    odd, plain = said["hostile"], said["demo-rv64imac_zicsr"]
    for command in plain:
        if command.startswith(("trace ctr", "trace history", "trace functions", "dump", "decode")):
            assert unfit(odd[command]) == set(), command
            assert "Python Exception" not in odd[command] and "Traceback" not in odd[command], (command, odd[command])
            assert len(odd[command].splitlines()) == len(plain[command].splitlines()), command
    assert f"<{SHOWN[0]}+" in odd[RECORDS[0]] and f"{SHOWN[0]}" in odd["decode"]


def finish(folder: Path) -> int:
    """Where the last function begins."""
    return names(folder / "demo-rv64imac_zicsr.elf")["finish"]
