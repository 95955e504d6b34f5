"""What a user is told when something is missing: one line that says what to do, in the real gdb."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.reverse.walk_model import Code
from tests.gdbext.gdb_process import SOURCE, killed, run_gdb
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import compile_program, demo

OTHER = """
int finish(int v) { return v + 1; }
int main(void) { int s = 3; while (s < 1000) s *= finish(s); return s; }
"""


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("messages")
    with Rig(demo(folder), folder / "rig") as rig:
        yield rig


@pytest.fixture(scope="module")
def other_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with the same symbols at other places."""
    folder = tmp_path_factory.mktemp("other")
    source = folder / "other.c"
    source.write_text(OTHER)
    return compile_program(folder, source)


AGAIN = ["monitor reset halt", "maintenance flush register-cache"]  # what a gdb let go of has run on
NEVER = "trace save /tmp/never.rvt"
WRONG = {
    "trace start -fast": "unknown option -fast",
    "trace start -sync-period many": "number of halfwords",
    "trace history /x": "Invalid modifier: x.",
    "trace history 5,": "Expected positive number",
    "trace save": "One file name is needed",
    "trace open /nowhere.rvt": "`trace stop`",
    "set trace encoder-base here": "not a number",
    "set trace openocd-port 70000": "out of range",
}


def connect(rig: Rig) -> list[str]:
    return [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]


def one_line(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert "Traceback" not in text and "Python Exception" not in text
    return lines[0]


@pytest.fixture(scope="module")
def said(rig: Rig) -> dict[str, str]:
    """What one gdb said, in which one mistake is made after the other; with a # what a `trace start` was about."""
    starts: dict[str, list[str]] = {
        "no target": [],
        "no description": [f"target extended-remote :{rig.gdb_port}"],
        "no such description": ["set trace target /nowhere/x.toml"],
        "no OpenOCD": [f"set trace target {rig.target_file}", "set trace openocd-port 1"],
        "no Tcl": [f"set trace openocd-port {rig.gdb_port}"],
        "right": [f"set trace openocd-port {rig.tcl_port}"],
    }
    commands, named = [SOURCE, "trace history", "trace stop", NEVER, "trace status"], {}
    for number, (name, before) in enumerate(starts.items()):
        named[name] = "trace start" + " " * number
        commands += [*before, named[name]]
    found = run_gdb(rig.elf, [*commands, "trace history ", "stepi 10", "trace history  ", *WRONG])
    return found | {f"#{name}": found[command] for name, command in named.items()}


def test_nothing_attached(said: dict[str, str]) -> None:
    line = one_line(said["#no target"])
    assert "not connected to a target" in line and "`trace connect`" in line


def test_openocd_is_not_running(said: dict[str, str]) -> None:
    line = one_line(said["#no OpenOCD"])
    assert "127.0.0.1:1" in line and "start" in line.lower() and "openocd" in line.lower()


def test_the_port_is_not_openocds_tcl_port(rig: Rig, said: dict[str, str]) -> None:
    line = one_line(said["#no Tcl"])
    assert str(rig.gdb_port) in line and "tcl_port" in line


def test_no_target_description(said: dict[str, str]) -> None:
    line = one_line(said["#no description"])
    assert "set trace target FILE" in line and "RVTRACE_TARGET" in line and "rvtrace.toml" in line


def test_the_target_description_does_not_exist(said: dict[str, str]) -> None:
    assert "/nowhere/x.toml" in one_line(said["#no such description"])


def test_history_before_anything(said: dict[str, str]) -> None:
    for command in ("trace history", "trace stop", NEVER):
        assert "trace start" in one_line(said[command])
    assert "nothing" in said["trace status"] or "no target description" in said["trace status"]


def test_history_before_the_program_ran(said: dict[str, str]) -> None:
    assert "tracing:" in said["#right"]
    assert "nothing has been traced yet" in one_line(said["trace history "])


@pytest.mark.parametrize(("command", "words"), WRONG.items())
def test_wrong_arguments(command: str, words: str, said: dict[str, str]) -> None:
    assert len(said["trace history  "].splitlines()) >= 10  # there is a trace
    assert words in one_line(said[command])


def test_the_target_description_from_the_environment(rig: Rig) -> None:
    commands = [SOURCE, f"target extended-remote :{rig.gdb_port}", "trace start"]
    out = run_gdb(rig.elf, commands, RVTRACE_TARGET=str(rig.target_file))["trace start"]
    assert "tracing:" in out and "encoder0" in out


def test_parameters_alone_are_enough(rig: Rig) -> None:
    settings = {"encoder-base": 0x20000000, "ram-sink-base": 0x20001000, "buffer-start": 0x30000000}
    settings |= {"buffer-size": 0x1000, "openocd-port": rig.tcl_port}
    commands = [SOURCE, f"target extended-remote :{rig.gdb_port}"]
    commands += [f"set trace {name} {value}" for name, value in settings.items()]
    out = run_gdb(rig.elf, [*commands, "trace start"])["trace start"]
    assert "tracing:" in out and "4096 bytes" in out


def test_no_program(rig: Rig) -> None:
    line = one_line(run_gdb(None, ["set architecture riscv:rv64", *connect(rig), "trace start"])["trace start"])
    assert "no program" in line and "file" in line


def test_wrong_program(rig: Rig, other_program: Path) -> None:
    """gdb has loaded another ELF than the one that runs: said at once, and named; what the target has counts."""
    there = f"tbreak *{Code(rig.elf).symbols['finish']:#x}"  # of the one that runs
    commands = [*connect(rig), *AGAIN, "trace start", there]
    out = run_gdb(other_program, [*commands, "continue", "trace history", "trace status"])
    assert "Temporary breakpoint 1, " in out["continue"], out["continue"]
    said = rf"memory has other code than {re.escape(other_program.name)} at \d+ places, the first at 0x[0-9a-f]+"
    assert re.search(said, out["trace history"]), out["trace history"]
    assert "other code than" in out["trace status"], out["trace status"]


def test_a_capture_that_is_none(tmp_path: Path) -> None:
    contents = {"there is none": None, "junk": b"PK\3\4junk", "nothing": b""}
    words = {"there is none": "No such file", "junk": "damaged", "nothing": "empty"}
    paths = {name: tmp_path / f"{number}.rvt" for number, name in enumerate(contents)}
    for name, content in contents.items():
        if content is not None:
            paths[name].write_bytes(content)
    out = run_gdb(None, [SOURCE, *(f"trace open {path}" for path in paths.values())])
    for name, path in paths.items():
        line = one_line(out[f"trace open {path}"])
        assert str(path) in line and words[name] in line, name


@thorough("endtoend/trace/test_failures.py::test_openocd_is_started_anew")
def test_openocd_dies(rig: Rig, tmp_path: Path) -> None:
    """What was read before is kept, can be listed and saved; gdb stays usable."""
    capture = tmp_path / "kept.rvt"
    commands = [*connect(rig), *AGAIN, "trace start", "stepi 100", "trace history"]
    commands += [killed(rig.openocd.pid, "TERM")]
    commands += ["trace history 90,100", f"trace save {capture}", "trace status", "print 6 * 7"]
    out = run_gdb(rig.elf, commands)
    rig.start_openocd()  # for the tests after this one
    assert "100\t" in out["trace history"]
    assert "OpenOCD" in out["trace history 90,100"] and "90\t   0x" in out["trace history 90,100"]
    assert capture.exists()
    assert "OpenOCD" in out["trace status"]
    assert out["print 6 * 7"].strip() == "$1 = 42"
