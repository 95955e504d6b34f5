"""`rvtrace serve FILE` with clients that have nothing of rvtrace: gdb without our commands, and packets."""

import os
import re
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.commands.serve.served import Served, Server, capture, serving
from tests.gdbext.gdb_process import GDB, GDB18, run_gdb
from tests.helpers.started_python import rvtrace
from tests.session.board import DEMO

ABI = """zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7
s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6"""
NAMES = ABI.split()
STEPS = 12
SINK = 16 + 8 + 60
"""leaf(6) + fib(6) + accumulate(6), as one computes them by hand from demo.c."""
_END = re.compile("No more reverse-execution history|Reached end of recorded history")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return capture(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def server(served: Served) -> Iterator[Server]:
    with serving(served.file) as server:
        yield server
        assert server.end(signal.SIGINT) == 0


GDB18_ITSELF = "lib/python3*/site-packages/gdb_for_pwndbg/_vendor/bin/gdb"
"""What the script `gdb` of that package starts."""


def gdbs() -> list[Any]:
    """gdb 13, and the newest as if it were built without Python: that fails to start where PYTHONHOME is wrong.

    Debian's gdb-minimal is built without Python, but it knows no RISC-V.
    """
    found = [] if GDB18 is None else sorted(Path(GDB18).parent.parent.glob(GDB18_ITSELF))
    return [pytest.param(GDB, {}, id="gdb"), *(pytest.param(str(it), NO_PYTHON, id="no-python") for it in found)]


NO_PYTHON = {"PYTHONHOME": "/nonexistent"}


@pytest.mark.parametrize(("gdb", "environ"), gdbs())
def test_gdb_without_rvtrace_goes_back_and_forth(
    served: Served, server: Server, gdb: str, environ: dict[str, str]
) -> None:
    back = [f"reverse-stepi{' ' * n}" for n in range(STEPS)]
    pcs = [f"print/x $pc{' ' * n}" for n in range(STEPS)]
    steps = [word for pair in zip(back, pcs, strict=True) for word in pair]
    commands = [
        f"target remote localhost:{server.port}", "show osabi", "info threads", "bt", "x/i $pc", "info registers",
        *steps, "break fib", "reverse-continue", "print $trace_pos", "info registers   ", "bt 2", "continue", "delete",
        "continue ", "reverse-continue ", "info registers ", "watch sink", "continue  ", "continue   ",
        "reverse-continue  ",
    ]  # fmt: skip
    questions = [f"monitor trace {words}" for words in ("functions 1,3", "goto fib", "position")]
    said = run_gdb(None, [*commands, *questions, "python print(1)"], gdb=gdb, **environ)
    assert ("Python not initialized" in said["python print(1)"]) == bool(environ)
    assert said[questions[0]].splitlines() == ["1\t_start", "2\tmain", "3\tleaf"]
    assert "The next step goes there" in said[questions[1]] and "In the past" in said[questions[2]]
    moments = served.moments
    assert 'currently "none"' in said["show osabi"]
    assert len(re.findall(r"^[* ] \d+ ", said["info threads"], re.M)) == 1
    assert f"{moments[-1].pc:#x}" in said["x/i $pc"], "the program was found, and where it stopped is known"
    assert "#0 " in said["bt"] and "main ()" in said["bt"]
    compare_registers(said["info registers"], moments[-1].x)
    reached = [int(said[word].rpartition("0x")[2], 16) for word in pcs]
    assert reached == [moment.pc for moment in moments[-2 : -2 - STEPS : -1]]
    entered = max(n for n, moment in enumerate(moments[:-STEPS]) if moment.pc == address(said["break fib"]))
    assert said["print $trace_pos"].split() == ["$" + str(STEPS + 1), "=", str(entered + 1)]
    compare_registers(said["info registers   "], moments[entered].x)
    assert _END.search(said["continue "]) and _END.search(said["reverse-continue "])
    compare_registers(said["info registers "], moments[0].x)
    assert f"New value = {SINK}\n" in said["continue  "]
    assert changes(said["continue   "]) == (SINK, SINK + 1)
    assert changes(said["reverse-continue  "]) == (SINK + 1, SINK)


def changes(said: str) -> tuple[int, ...]:
    """What gdb prints of a watchpoint: the values before and after."""
    return tuple(map(int, re.findall("(?:Old|New) value = (.*)", said)))


def compare_registers(said: str, expected: tuple[int, ...]) -> None:
    """The registers that gdb shows are those of the hart, or unavailable."""
    shown = dict(line.split()[:2] for line in said.splitlines() if line.strip())
    known = {name: int(text, 16) for name, text in shown.items() if text.startswith("0x") and name in NAMES}
    assert set(shown) >= set(NAMES[1:]) and len(known) > 5
    assert known == {name: expected[NAMES.index(name)] for name in known}


def address(said: str) -> int:
    return int(re.findall("at (0x[0-9a-f]+)", said)[0], 16)


def test_one_client_after_another_reads_the_program_and_nothing_else(server: Server, served: Served) -> None:
    for _ in range(2):
        with server.client() as client:
            assert client.ask("qXfer:exec-file:read::0,400") == f"l{DEMO}"
            assert client.ask("vFile:setfs:0") == "F0"
            opened = client.ask(f"vFile:open:{str(DEMO).encode().hex()},0,0")
            assert re.fullmatch("F[0-9a-f]+", opened)
            assert "\x7fELF" in client.ask(f"vFile:pread:{opened[1:]},4,0")
            assert client.ask(f"vFile:close:{opened[1:]}") == "F0"
            assert client.ask(f"vFile:close:{opened[1:]}") == "F-1,9"
            for path, flags in (("/etc/passwd", 0), (str(DEMO), 1), (str(DEMO), 0x601)):
                assert client.ask(f"vFile:open:{path.encode().hex()},{flags:x},1a4").startswith("F-1,")
            assert client.ask(f"vFile:unlink:{str(DEMO).encode().hex()}") == ""
            assert client.ask("vFile:pread:zz,4,0").startswith("F-1,")
            assert client.ask("M80000000,1:00").startswith("E")


def test_unknown_registers_are_not_guessed_and_the_server_ends_with_its_client(served: Served) -> None:
    with serving(served.file, "--values", "off", "--once") as server:
        with server.client() as client:
            description = client.ask("qXfer:features:read:target.xml:0,3000")
            assert 'name="sp"' in description and "<osabi>none</osabi>" in description
            registers, number = client.ask("g"), 32 * 16
            assert set(registers[16:number]) == {"x"} and "x" not in registers[number : number + 16]
            assert client.ask("D") == "OK"
        assert server.process.wait() == 0


def test_a_socket_is_private_and_is_gone_at_the_end(served: Served, tmp_path: Path) -> None:
    path = tmp_path / "gdb"
    with serving(served.file, "--unix", path) as server:
        assert server.place == {"where": str(path), "program": str(DEMO)}
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"$?#3f")
            assert client.recv(10).startswith(b"+$T05")
        assert server.end() == 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "give a FILE, or --connect"),
        (["x.rvt", "--connect", ":1"], "give a FILE, or --connect"),
        (["--connect", "somewhere"], "is not HOST:PORT"),
        (["x.rvt", "--target", "t.toml"], "--target"),
        (["--connect", "127.0.0.1:1"], "--connect 127.0.0.1:1: no OpenOCD and no other gdb stub"),
    ],
)
def test_what_cannot_be_served(words: list[str], problem: str) -> None:
    done = rvtrace("serve", *words)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and problem in done.stderr
