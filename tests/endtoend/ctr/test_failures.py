"""Control Transfer Records when things do not go as planned: odd orders, resets, other targets, lost connections."""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import GDBS, SOURCE, run_gdb
from tests.helpers.amounts import LONG, thorough
from tests.helpers.cross_compiler import demo
from tests.helpers.qemu10 import running

NOT_RECORDING = "there are no records, and none are being made: no privilege mode is enabled"


def youngest(said: str) -> str:
    """What the first row of `trace ctr show` says."""
    found = re.search(r"^0\t.*<(\w+)\+\d+>.* -> .*<(\w+)\+\d+>", said, re.M)
    assert found, said
    return f"{found[1]} -> {found[2]}"


ONLY, NONE_AT_ALL = (
    "trace ctr start -only not-taken-branch",
    "trace ctr start -without calls,returns,jumps,branches,traps",
)
NOTHING_BUT_BRANCHES = [ONLY, NONE_AT_ALL, "trace ctr status", "trace ctr stop"]
TO_MAIN = ["trace ctr start", "tbreak main", "continue"]
CONTROL = "print/x $mctrctl"
TWICE = [*TO_MAIN, "trace ctr stop", "trace ctr stop ", CONTROL]
AGAIN = [*TO_MAIN, "disconnect", "target remote :PORT", "trace ctr show", "trace ctr stop", CONTROL]
WHILE_DISCONNECTED = ["set $mctrctl = 0x100", "trace ctr start", "disconnect", "trace ctr stop"]
WHILE_DISCONNECTED += ["target remote :PORT", "trace ctr start ", "trace ctr stop ", CONTROL]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """What one gdb said in each of four stories, which begin with a reset."""
    folder = tmp_path_factory.mktemp("stories")
    elf = demo(folder)
    with running(elf, folder) as machine:
        commands, names = [SOURCE, f"target remote :{machine.port}"], []
        for number, story in enumerate((NOTHING_BUT_BRANCHES, TWICE, AGAIN, WHILE_DISCONNECTED)):
            spaces = " " * 16 * (number + 1)  # a command has its output under its own text
            names.append({command: command.replace("PORT", str(machine.port)) + spaces for command in story})
            commands += [f"monitor system_reset{spaces}", f"maintenance flush register-cache{spaces}"]
            commands += names[-1].values()
        said = run_gdb(elf, commands)
    return [{command: said[spelt] for command, spelt in spelling.items()} for spelling in names]


@thorough("gdbext/ctr/test_commands.py::test_a_stretch_leads_from_one_record_to_the_next")
def test_records_of_nothing_but_branches_not_taken(stories: list[dict[str, str]]) -> None:
    said = stories[0]
    assert ", only not-taken branches\n" in said[ONLY]
    assert ", no kind of transfer\n" in said[NONE_AT_ALL] and ", no kind of transfer\n" in said["trace ctr status"]


def test_stopped_twice(stories: list[dict[str, str]]) -> None:
    said = stories[1]
    assert said["trace ctr stop"].startswith("Tracing stopped.\n")
    assert said["trace ctr stop "].startswith("The trace had ended already.\n")
    assert "not started by rvtrace" not in said["trace ctr stop "]
    assert said[CONTROL].split()[-1] == "0x0"


def test_the_same_target_connected_again(stories: list[dict[str, str]]) -> None:
    said = stories[2]
    assert youngest(said["trace ctr show"]) == "_start -> main"
    assert said["trace ctr stop"].startswith("Tracing stopped.") and "warning" not in said["trace ctr stop"]
    assert said[CONTROL].split()[-1] == "0x0"


def test_stopped_while_disconnected_and_started_again(stories: list[dict[str, str]]) -> None:
    """What the hart had before is put back although `trace ctr stop` could not the first time."""
    said = stories[3]
    assert "warning" in said["trace ctr stop"]
    assert "recording was on" not in said["trace ctr start "]
    assert said[CONTROL].split()[-1] == "0x100"


@thorough("test_stopped_twice")
def test_reset_while_recording(tmp_path: Path) -> None:
    """By `monitor`, of which gdb sees nothing."""
    elf = demo(tmp_path)
    looks = ["trace ctr show", "trace ctr stack", "trace ctr status"]
    again = ["monitor reset halt", *(f"{look} " for look in looks), "trace ctr stop", "trace ctr stop "]
    with Rig(elf, tmp_path / "rig", "--ctr", "1.0") as rig:
        begin = [SOURCE, f"trace connect :{rig.gdb_port}", "trace ctr start", "tbreak main", "continue"]
        said = run_gdb(elf, [*begin, *looks, *again, "info registers pc"])
    assert youngest(said["trace ctr show"]) == "_start -> main"
    assert "main" in said["trace ctr stack"]
    assert NOT_RECORDING in said["trace ctr show "]
    assert NOT_RECORDING in said["trace ctr stack "]
    reset = "note:     hart 0 was reset since `trace ctr start`, or other software ended the recording: "
    assert "records nothing" in said["trace ctr status "] and reset in said["trace ctr status "]
    assert "note:" not in said["trace ctr status"]
    assert said["trace ctr stop"].startswith("Tracing stopped.") and reset in said["trace ctr stop"]
    assert said["trace ctr stop "].startswith("The trace had ended already.")
    assert "_start" in said["info registers pc"]


@thorough("test_stopped_twice")
@pytest.mark.parametrize("gdb", GDBS if LONG else GDBS[-1:])
def test_runs_are_told_apart_before_and_after_connecting(tmp_path: Path, gdb: str) -> None:
    """gdb and the proxy count them each for itself; the same number does not mean that nothing ran."""
    elf = demo(tmp_path)
    with running(elf, tmp_path) as machine:
        begin = [SOURCE, f"target remote :{machine.port}", "trace ctr start", "tbreak main", "continue"]
        more = ["trace ctr show 0,0", f"trace connect :{machine.port}", "tbreak classify", "continue "]
        said = run_gdb(elf, [*begin, *more, "trace history", "info registers pc"], gdb=gdb)
    assert youngest(said["trace ctr show 0,0"]) == "_start -> main"
    assert "<main+58>" in said["trace history"].splitlines()[-1], said["trace history"]


@thorough("test_the_same_target_connected_again")
@pytest.mark.parametrize("connect", ["target remote", "trace connect"])
def test_another_target_has_its_registers_elsewhere(tmp_path: Path, connect: str) -> None:
    """QEMU numbers its CSRs by what else the hart has: nothing is read or written by the numbers of another target."""
    elf = demo(tmp_path)
    looks = ["trace history", "trace status", "trace ctr show", "trace ctr stop"]
    with running(elf, tmp_path) as machine, running(elf, tmp_path, cpu="max") as other:
        begin = [SOURCE, f"{connect} :{machine.port}", "trace ctr start", "tbreak main", "continue"]
        again = ["trace ctr show 0,0", "disconnect", f"{connect} :{other.port}", *looks]
        back = ["disconnect ", f"{connect} :{machine.port} ", "trace ctr show 0,0 ", "print/x $mctrctl"]
        said = run_gdb(elf, [*begin, *again, *back])
    assert youngest(said["trace ctr show 0,0"]) == "_start -> main"
    assert "<_start+44>" in said["trace history"], "what was read out is kept"
    assert "hart 0 no longer recorded with its settings when gdb was connected again" in said["trace status"]
    assert NOT_RECORDING in said["trace ctr show"] and "cannot be" not in "".join(said[look] for look in looks)
    assert youngest(said["trace ctr show 0,0 "]) == "_start -> main", "it goes on recording"
    assert said["print/x $mctrctl"].split()[-1] == "0x7"
