"""Ctrl-C during long work in the real gdb: the work stops, gdb and the session go on, nothing captured is lost."""

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.rig import Rig
from tests.compiling import compile_program
from tests.gdb.running import HOME, SOURCE, gdb_environ

PROGRAM = Path(__file__).resolve().parent.parent / "programs" / "dense.c"


class Gdb:
    """A gdb that is typed at, and interrupted, over pipes."""

    def __init__(self, elf: Path) -> None:
        self.process = subprocess.Popen(
            ["gdb-multiarch", "-q", "-nx", str(elf)], cwd=HOME, env=gdb_environ(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._number = 0

    def type(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def run(self, command: str, timeout: float = 60) -> str:
        """What a command prints."""
        self.type(command)
        return self.answer(timeout)

    def answer(self, timeout: float = 60) -> str:
        """What gdb prints up to here."""
        self._number += 1
        self.type(f"echo \\n@{self._number}@\\n")
        assert self.process.stdout is not None
        seen, end, deadline = b"", b"\n@%d@" % self._number, time.monotonic() + timeout
        while end not in seen:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"gdb does not answer; so far: {seen[-500:]!r}"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, "gdb ended"
            seen += data
        return seen.decode()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)


@pytest.fixture
def gdb(tmp_path: Path) -> Iterator[Gdb]:
    elf = compile_program(tmp_path, PROGRAM)
    with Rig(elf, tmp_path / "rig", "--trace-size", "262144") as rig:
        gdb = Gdb(elf)
        try:
            for command in ("set confirm off", SOURCE, f"set trace target {rig.target_file}"):
                gdb.run(command)
            gdb.run(f"target extended-remote :{rig.gdb_port}")
            yield gdb
        finally:
            gdb.process.kill()
            gdb.process.communicate()


def test_reading_out_a_big_buffer(gdb: Gdb) -> None:
    """256 KiB take three seconds over JTAG: that can be interrupted, and asked for again."""
    gdb.run("trace start")
    gdb.type("continue")
    time.sleep(1.5)  # the buffer fills, and wraps
    gdb.interrupt()
    assert "SIGINT" in gdb.answer()
    gdb.type("trace history")
    time.sleep(0.7)
    gdb.interrupt()
    assert "Quit" in gdb.answer()
    assert re.search(r"encoder: .*sink: ", gdb.run("trace status"), re.S)
    assert len(re.findall(r"\d+\t(?:=> |   )0x", gdb.run("trace history"))) == 10
