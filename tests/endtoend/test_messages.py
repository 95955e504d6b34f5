"""What a user is told when something is missing: one line that says what to do, in the real gdb."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.reverse.walk_model import Code
from tests.gdbext.gdb_process import SOURCE, killed, run_gdb
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


def connect(rig: Rig) -> list[str]:
    return [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]


def one_line(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert "Traceback" not in text and "Python Exception" not in text
    return lines[0]


def test_nothing_attached(rig: Rig) -> None:
    line = one_line(run_gdb(rig.elf, [SOURCE, "trace start"])["trace start"])
    assert "not connected to a target" in line and "`trace connect`" in line


def test_openocd_is_not_running(rig: Rig) -> None:
    commands = [*connect(rig), "set trace openocd-port 1", "trace start"]
    line = one_line(run_gdb(rig.elf, commands)["trace start"])
    assert "127.0.0.1:1" in line and "start" in line.lower() and "openocd" in line.lower()


def test_the_port_is_not_openocds_tcl_port(rig: Rig) -> None:
    commands = [*connect(rig), f"set trace openocd-port {rig.gdb_port}", "trace start"]
    line = one_line(run_gdb(rig.elf, commands)["trace start"])
    assert str(rig.gdb_port) in line and "tcl_port" in line


def test_no_target_description(rig: Rig) -> None:
    commands = [SOURCE, f"target extended-remote :{rig.gdb_port}", "trace start"]
    line = one_line(run_gdb(rig.elf, commands)["trace start"])
    assert "set trace target FILE" in line and "RVTRACE_TARGET" in line and "rvtrace.toml" in line


def test_the_target_description_does_not_exist(rig: Rig) -> None:
    commands = [SOURCE, f"target extended-remote :{rig.gdb_port}", "set trace target /nowhere/x.toml", "trace start"]
    assert "/nowhere/x.toml" in one_line(run_gdb(rig.elf, commands)["trace start"])


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
    """gdb has loaded another ELF than the one that runs: said at once, and named."""
    there = f"tbreak *{Code(rig.elf).symbols['finish']:#x}"  # of the one that runs
    out = run_gdb(other_program, [*connect(rig), "trace start", there, "continue", "trace history", "trace status"])
    assert "Temporary breakpoint 1, " in out["continue"], out["continue"]
    assert re.search(r"warning: .*does not match", out["trace history"]), out["trace history"]
    assert other_program.name in out["trace history"]
    assert "does not match" in out["trace status"]


def test_history_before_anything(rig: Rig) -> None:
    out = run_gdb(rig.elf, [SOURCE, "trace history", "trace stop", "trace save /tmp/never.rvt", "trace status"])
    for command in ("trace history", "trace stop", "trace save /tmp/never.rvt"):
        assert "trace start" in one_line(out[command])
    assert "nothing" in out["trace status"] or "no target description" in out["trace status"]


def test_history_before_the_program_ran(rig: Rig) -> None:
    out = run_gdb(rig.elf, [*connect(rig), "trace start", "trace history"])
    assert "nothing has been traced yet" in one_line(out["trace history"])


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("trace start -fast", "unknown option -fast"),
        ("trace start -sync-period many", "number of halfwords"),
        ("trace history /x", "Invalid modifier: x."),
        ("trace history 5,", "Expected positive number"),
        ("trace save", "One file name is needed"),
        ("trace open /nowhere.rvt", "`trace stop`"),
        ("set trace encoder-base here", "not a number"),
        ("set trace openocd-port 70000", "out of range"),
    ],
)
def test_wrong_arguments(command: str, words: str, rig: Rig) -> None:
    commands = [*connect(rig), "trace start", "stepi 10", "trace history", command]
    assert words in one_line(run_gdb(rig.elf, commands)[command])


@pytest.mark.parametrize(("content", "words"), [(None, "No such file"), (b"PK\3\4junk", "damaged"), (b"", "empty")])
def test_a_capture_that_is_none(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.rvt"
    if content is not None:
        path.write_bytes(content)
    line = one_line(run_gdb(None, [SOURCE, f"trace open {path}"])[f"trace open {path}"])
    assert str(path) in line and words in line


def test_openocd_dies(tmp_path: Path) -> None:
    """What was read before is kept, can be listed and saved; gdb stays usable."""
    capture = tmp_path / "kept.rvt"
    with Rig(demo(tmp_path), tmp_path / "rig") as rig:
        commands = [*connect(rig), "trace start", "stepi 100", "trace history"]
        commands += [killed(rig.openocd.pid, "TERM")]
        commands += ["trace history 90,100", f"trace save {capture}", "trace status", "print 6 * 7"]
        out = run_gdb(rig.elf, commands)
    assert "100\t" in out["trace history"]
    assert "OpenOCD" in out["trace history 90,100"] and "90\t   0x" in out["trace history 90,100"]
    assert capture.exists()
    assert "OpenOCD" in out["trace status"]
    assert out["print 6 * 7"].strip() == "$1 = 42"
