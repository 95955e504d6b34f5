"""Ctrl-C during long work in the real gdb: the work stops, gdb and the session go on, nothing captured is lost."""

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import GDB, HOME, PATIENT, SOURCE, gdb_environ, in_time
from tests.helpers.cross_compiler import compile_program
from tests.transport.simulated.openocd import Tcl

PROGRAM = Path(__file__).resolve().parent.parent / "programs" / "dense.c"
SINK_WRITES_AT = 0x2000_1020  # trRamWPLow of the simulated target, whose bit 0 is set when the buffer was full once

# Written past gdb's own output, which would count lines.
_REPORTS = """
import os, sys
client = sys.modules["rvtrace_gdb.gdbext.tracer"].tracer()._client
drawn, requests = client._progress, []
def told(label, done, total=None):
    drawn(label, done, total)
    requests.append(client._last_id)
    os.write(1, f"[{label}: {done}, report {requests.count(client._last_id)}]\\n".encode())
client._progress = told
"""


class Gdb:
    """A gdb that is typed at, and interrupted, over pipes.

    It is interrupted at work, never after a while: wait with `until` for something that it prints when it is.
    """

    def __init__(self, elf: Path | None, gdb: str = GDB) -> None:
        self.process = subprocess.Popen(
            [gdb, "-q", "-nx", "-ex", PATIENT, *([str(elf)] if elf else [])], cwd=HOME, env=gdb_environ(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._number = 0
        self._seen = b""

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
        self.until(f"\n@{self._number}@", timeout=timeout)
        seen, self._seen = self._seen, b""
        return in_time(seen.decode())

    def until(self, *texts: str, timeout: float = 60) -> str:
        """Which of these gdb has printed since the last answer, as soon as it has; the next answer has it, too."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout
        while not (found := [text for text in texts if text.encode() in self._seen]):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"gdb does not print {texts}; so far: {self._seen[-500:]!r}"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, "gdb ended"
            self._seen += data
        return found[0]

    def reports(self) -> None:
        """From now on gdb prints how far the session says it is with a request, as [LABEL: DONE, report N]."""
        self.run(f"python exec({_REPORTS!r})")

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def runs_until(self, there: Callable[[], bool], timeout: float = 300) -> None:
        """The program goes on, and is interrupted when it is there."""
        self.type("continue")
        deadline = time.monotonic() + timeout
        while not there():
            assert time.monotonic() < deadline, "the program does not come there"
            time.sleep(0.02)
        self.interrupt()
        assert "SIGINT" in self.answer()

    def fills_the_buffer(self, rig: Rig) -> None:
        """The program goes on until its trace has filled the buffer once, so that all of that is to be read out."""
        with closing(Tcl(rig.tcl_port)) as tcl:
            self.runs_until(lambda: bool(tcl.words(SINK_WRITES_AT, 1)[0] & 1))


Traced = tuple[Gdb, Rig]


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Traced]:
    elf = compile_program(tmp_path, PROGRAM)
    with Rig(elf, tmp_path / "rig", "--trace-size", "131072") as rig:
        gdb = Gdb(elf)
        try:
            for command in ("set confirm off", SOURCE, f"set trace target {rig.target_file}"):
                gdb.run(command)
            gdb.run(f"target extended-remote :{rig.gdb_port}")
            yield gdb, rig
        finally:
            gdb.process.kill()
            gdb.process.communicate()


def test_reading_out_a_big_buffer(traced: Traced) -> None:
    """128 KiB take more than a second over JTAG: that can be interrupted, and asked for again."""
    gdb, rig = traced
    gdb.run("trace start")
    gdb.fills_the_buffer(rig)
    gdb.reports()
    gdb.type("trace history")
    gdb.until("[reading trace: ")
    gdb.interrupt()
    assert "Quit" in gdb.answer()
    assert re.search(r"encoder: .*sink: ", gdb.run("trace status"), re.S)
    assert len(re.findall(r"\d+\t(?:=> |   )0x", gdb.run("trace history"))) == 10
