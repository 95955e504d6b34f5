"""Real gdb-multiarch, real openocd, simulated target: a return to where no call came from is an event of its own.

What is expected follows from the program (tests/programs/returns): two of its returns go where its overrun says, and
those of setjmp, of tasks, of tail calls and of saved registers go where they are meant to. objdump says where the call
is that they should have returned to.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from tests.endtoend.trace.test_find import names
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import HOME, compile_program
from tests.helpers.page_sessions import sessions, shown

PROGRAM = HOME / "tests" / "programs" / "returns"
OPTIONS = ("-btm", *long_only("-format etrace"), "-format etrace -implicit-return full")
NOWHERE = 0x4140
EVENT = re.compile(
    r"(\d+)\t@(\d+)\s0x\w+ <(\w+)\+\d+>:\tmismatched return: to 0x(\w+)(?: <(\S+)>)?, not to 0x(\w+) <(\S+)>, at"
    r" 0x(\w+) <\w+\+\d+>"
)


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("returns")
    options = ("-msave-restore", "-march=rv64imac", "-misa-spec=2.2")  # the libraries have the registers of that
    return compile_program(folder, PROGRAM / "returns.c", PROGRAM / "switch.S", options=options)


@pytest.fixture(scope="module")
def said(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What gdb printed: a round traced with each of the options, then the past of the last one."""
    folder = tmp_path_factory.mktemp("session")
    with Rig(elf, folder / "rig") as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        commands += ["set trust-readonly-sections on", "trace connect", "break round_done"]
        for number, options in enumerate(OPTIONS):
            more = " " * number
            commands += [f"trace start {options}", f"continue{more}", f"trace events mismatched-return{more}"]
            commands += [f"trace events 1,1000{more}", f"trace save {folder}/{number}.rvt", f"trace stop{more}"]
        commands += ["trace goto event mismatched-return 1", "bt", "trace goto -next event mismatched-return", "bt "]
        commands += ["reverse-stepi", "bt  ", "complete trace events mism"]
        found = run_gdb(elf, commands)
    return {**found, "captures": str(folder)}


def after_the_call(elf: Path) -> int:
    """The address after the call of greet in overrun."""
    text = subprocess.run(["riscv64-unknown-elf-objdump", "-d", str(elf)], capture_output=True, text=True, check=True)
    lines = text.stdout.partition("<overrun>:\n")[2].splitlines()
    call = next(number for number, line in enumerate(lines) if line.endswith("<greet>"))
    return int(lines[call + 1].partition(":")[0], 16)


@pytest.mark.parametrize("number", range(len(OPTIONS)), ids=OPTIONS)
def test_the_overruns_and_nothing_else(said: dict[str, str], elf: Path, number: int) -> None:
    lines = said["trace events mismatched-return" + " " * number].strip().splitlines()
    events = [match for line in lines if (match := EVENT.fullmatch(line))]
    at, back = names(elf), after_the_call(elf)
    assert [int(event[4], 16) for event in events] == [NOWHERE, at["gadget"]] and len(lines) == 2
    assert {int(event[6], 16) for event in events} == {back}
    assert [event[3] for event in events] == ["on_trap", "gadget"] and events[0][5] is None


def test_it_comes_before_the_trap_that_follows_it(said: dict[str, str]) -> None:
    lines = said["trace events 1,1000"].splitlines()
    returns = [number for number, line in enumerate(lines) if "mismatched return" in line]
    assert len(returns) == 2
    following = lines[returns[0] + 1]
    assert "trap: exception, at 0x0000000000004140" in following
    assert following.split(" ")[0].split("\t")[1] == lines[returns[0]].split(" ")[0].split("\t")[1]


def test_the_callers_below_it_are_known(said: dict[str, str]) -> None:
    def frames(command: str) -> list[str]:
        return [match[1] for match in re.finditer(r"^#\d+ +(?:0x\w+ in )?(\S*) ?\(", said[command], re.M)]

    assert frames("bt") == ["on_trap", "??", "overrun", "main"] and "0x0000000000004140" in said["bt"]
    assert frames("bt ") == ["gadget", "overrun", "main"]
    assert frames("bt  ")[1:] == ["overrun", "main"]
    assert "Event 1 of 2: mismatched return: to 0x0000000000004140" in said["trace goto event mismatched-return 1"]
    assert "Event 2 of 2" in said["trace goto -next event mismatched-return"]


def test_the_page_says_what_is_printed(said: dict[str, str]) -> None:
    [session] = (found for found in sessions("finding.md") if "mismatched" in found[0].command)
    lines = shown(said[session[0].command])
    assert lines[:1] == session[0].lines


def test_it_is_completed(said: dict[str, str]) -> None:
    assert said["complete trace events mism"].split("\n")[:2] == [
        "trace events mismatch",
        "trace events mismatched-return",
    ]


def test_programs_get_its_three_places(said: dict[str, str], elf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", f"{said['captures']}/0.rvt", "--kind", "mismatched-return", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    at, back = names(elf), after_the_call(elf)
    assert [int(row["to"]["addr"], 16) for row in rows] == [NOWHERE, at["gadget"]]
    assert {int(row["expected"]["addr"], 16) for row in rows} == {back}
    assert {row["expected"]["func"] for row in rows} == {"overrun"} and all("trace-byte" not in row for row in rows)
    assert all(row["from"]["func"].startswith("__riscv_restore_") for row in rows)
