"""The MI commands in a gdb without a target: which there are, and what they say when it makes no sense."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gdbext.commands.test_dump import ELF, STREAM, imported
from tests.gdbext.gdb_process import GDB, NEWEST_GDB, SOURCE, run_gdb, some_gdbs
from tests.gdbext.mi.test_commands import COMMANDS
from tests.helpers import reference_streams
from tests.helpers.gdb_mi import GdbMi, MiError
from tests.helpers.qemu import running


@pytest.fixture(scope="module", params=NEWEST_GDB)
def alone(request: pytest.FixtureRequest) -> Iterator[GdbMi]:
    """A gdb without a target."""
    with GdbMi(None, request.param) as mi:
        yield mi


@pytest.mark.parametrize("name", COMMANDS)
def test_each_is_a_command(name: str, alone: GdbMi) -> None:
    assert alone.command(f"-info-gdb-mi-command rvtrace-{name}") == {"command": {"exists": "true"}}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("history", "there is no trace: `trace start` makes one, `trace open FILE` shows a saved one"),
        ("history --cont 5", "-rvtrace-history: there is no option --cont. "
         "Usage: -rvtrace-history [--begin N] [--count N] [--task TASK] [--process PROCESS]"
         " [--thread THREAD] [--opcodes]"),
        ("history 5", "-rvtrace-history: 5 is one word too many. "
         "Usage: -rvtrace-history [--begin N] [--count N] [--task TASK] [--process PROCESS]"
         " [--thread THREAD] [--opcodes]"),
        ("history --count", "-rvtrace-history: --count needs a value."),
        ("history --count 4097", "-rvtrace-history: --count takes a number from 0 to 4096, got: 4097."),
        ("history --begin 0", "-rvtrace-history: --begin takes a number from 1 on, got: 0."),
        ("history --begin -1", "-rvtrace-history: --begin takes a number from 1 on, got: -1."),
        ("history --begin 99999999999999999999", "-rvtrace-history: --begin takes a number from 1 on,"
         " got: 99999999999999999999."),
        ("find", "-rvtrace-find: LOCATION is missing."
         " Usage: -rvtrace-find [--begin N] [--count N] [--from N] [--task TASK] [--process PROCESS]"
         " [--thread THREAD] LOCATION"),
        ("find nonsense", '-rvtrace-find: nonsense: No symbol "nonsense" in current context.'),
        ("start --nonsense", "trace start: unknown option -nonsense. See `help trace start`."),
        ("open /nonsense.rvt", "/nonsense.rvt: cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_an_error_is_one_line(command: str, message: str, alone: GdbMi) -> None:
    before = len(alone.records)
    with pytest.raises(MiError) as caught:
        alone.command(f"-rvtrace-{command}")
    assert str(caught.value) == message
    assert ([it.kind for it in alone.records[before:]], alone.noise) == (["result"], "")  # and no traceback on the way


def test_starting_without_a_target(alone: GdbMi) -> None:
    with pytest.raises(MiError, match="Nothing to trace: gdb is not connected to a target"):
        alone.command("-rvtrace-start")


def test_loaded_a_second_time() -> None:
    with GdbMi(None, GDB, SOURCE) as mi:
        assert mi.command("-rvtrace-position") == {"state": "none"}


@some_gdbs
def test_a_gdb_that_has_no_mi_commands_in_python(gdb: str) -> None:
    """Before gdb 12: all the rest is there."""
    said = run_gdb(None, ["python del gdb.MICommand", SOURCE, "trace status"], gdb=gdb)
    assert said[SOURCE].strip() == ""
    assert "Nothing is being traced." in said["trace status"]


@some_gdbs
def test_the_selected_thread_is_the_hart(gdb: str, tmp_path: Path) -> None:
    """--thread is gdb's own option of all MI commands. Two harts, each of which is a thread in gdb: QEMU."""
    harts = [reference_streams.from_source(STREAM, 1, 0), reference_streams.from_source(STREAM[:400], 1, 1)]
    capture = imported(tmp_path, reference_streams.in_turn(*harts), "--src-bits", "1")
    with running(ELF, tmp_path, 2, logged=False) as qemu, GdbMi(ELF, gdb, f"target remote :{qemu.port}") as mi:
        mi.command(f"-rvtrace-open {capture}")
        first, second = (mi.command(f"-rvtrace-history --thread {n} --count 0") for n in (1, 2))
        assert [first["hart"], second["hart"]] == ["0", "1"]
        assert int(first["length"]) == reference_streams.golden("median")[0] > int(second["length"]) > 100
        assert mi.command("-rvtrace-position --thread 2")["hart"] == "1"


def test_an_ide_does_not_turn_the_users_pages(tmp_path: Path) -> None:
    capture = imported(tmp_path, STREAM)
    with GdbMi(ELF, GDB, f"trace open {capture}") as mi:
        mi.cli("trace history /a 100,+5")
        mi.command("-rvtrace-history --begin 7 --count 3")
        assert mi.cli("trace history /a").splitlines()[0].startswith("105\t")
        mi.cli("trace functions 3,4")
        mi.command("-rvtrace-functions --begin 1 --count 2")
        assert mi.cli("trace functions").splitlines()[0].startswith("5\t")
