"""The session process is killed, as by the system when memory runs out, and gdb's connection to the target with it.

gdb must not crash, whatever it is doing: it says what happened, and can be connected again. Real gdb 13 and 16, real
OpenOCD, simulated target. One gdb bears it all, one time after the other; in the long run it also is a new gdb each
time, in which nothing has been killed before.
"""

import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.reverse.typed_gdb import Typed, beginning
from tests.gdbext.gdb_process import every_gdb, newest_gdb
from tests.gdbext.test_interrupt import Gdb
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import compile_program

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "deep.c"
TIMES = 2
KILLED = "the rvtrace session has ended unexpectedly, killed by signal 9"
CONNECTED = "is no longer connected, `trace connect` connects it again"
SESSION = "python import rvtrace_gdb.gdbext.tracer as it; print('session', it.tracer()._client._process.pid)"
NEVER = "break deep if $_streq(\"a\", \"b\")"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("killed")
    with Rig(compile_program(folder, PROGRAM), folder / "rig") as rig:
        yield rig


class Killed(Typed):
    """A gdb whose session can be killed, again and again: each time it is first led `to_bottom`."""

    def __init__(self, rig: Rig, gdb: str) -> None:
        Gdb.__init__(self, rig.elf, gdb)
        self.said = ""
        connects = beginning(rig, traced=False)
        for command in ("set height 0", "set width 0", "set confirm off", *connects):
            self.run(command)

    def to_bottom(self) -> None:
        """In the present of a new trace. What gdb said before is forgotten."""
        self.check_said()
        self.said = ""
        for command in ("delete", "set var forever = 0", "trace start", "tbreak bottom", "continue"):
            self.run(command)
        assert "#0  bottom" in self.run("frame")
        found = re.search(r"session (\d+)", self.run(SESSION))
        assert found is not None
        self._session = int(found[1])

    def kill(self) -> None:
        os.kill(self._session, signal.SIGKILL)


def idle(gdb: Killed) -> None:
    gdb.kill()


def past(gdb: Killed) -> None:
    gdb.run("reverse-finish")
    assert gdb.place() > 0
    gdb.kill()


def running(gdb: Killed) -> None:
    gdb.run("set var forever = 1")
    gdb.type("continue")
    gdb.until("Continuing")
    gdb.kill()
    gdb.answer()


def listing(gdb: Killed) -> None:
    """It is longer than what a pipe holds."""
    for _ in range(2):
        gdb.run("tbreak bottom")
        gdb.run("continue")
    gdb.type("trace history 1,10000000")
    gdb.until("\n1000\t")
    gdb.kill()
    gdb.answer()


def frames(gdb: Killed) -> None:
    """gdb 13 and 16 crash when the connection ends while they find frames."""
    gdb.type("backtrace")
    gdb.until("\n#3 ")
    gdb.kill()
    gdb.answer()


def frames_of_the_past(gdb: Killed) -> None:
    gdb.run("reverse-stepi")
    frames(gdb)


def on_its_way(gdb: Killed) -> None:
    """Many short ways, because a condition is false."""
    gdb.run(NEVER)
    gdb.type("reverse-continue")
    gdb.kill()
    gdb.answer()


State = Callable[[Killed], None]
STATES: list[State] = [idle, past, running, listing, frames, frames_of_the_past, on_its_way]
THEN = ("backtrace", "info threads", "backtrace full", "reverse-stepi", "info registers pc", "x/xw $sp", "trace status")


INSIDE: list[State] = [running, frames, frames_of_the_past, on_its_way]
"""Those in which gdb itself is at work when the connection ends: how it bears that may differ between versions."""


@newest_gdb
def test_gdb_goes_on(rig: Rig, gdb: str) -> None:
    killed_in(rig, STATES if LONG else INSIDE, gdb)


if LONG:

    @every_gdb
    @pytest.mark.parametrize("state", STATES, ids=[state.__name__ for state in STATES])
    def test_a_new_gdb_goes_on(rig: Rig, state: State, gdb: str) -> None:
        for _ in range(TIMES):
            killed_in(rig, [state], gdb)


def killed_in(rig: Rig, states: Sequence[State], program: str) -> None:
    gdb = Killed(rig, program)
    try:
        for state in states:
            gdb.to_bottom()
            state(gdb)
            for command in THEN:
                gdb.run(command)
            assert KILLED in gdb.said and gdb.said.count(CONNECTED) == 1, state
            assert "No stack." in gdb.run("backtrace")
            gdb.run(f"trace connect localhost:{rig.gdb_port}")
            assert re.search(r"\$\d+ = -1\b", gdb.run("print $trace_pos"))
            assert "main ()" in gdb.run("backtrace"), gdb.said[-3000:]
    finally:
        gdb.close()
