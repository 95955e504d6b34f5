"""A gdb that is typed at, at `finish` of a program that is traced on the simulated target; and that target's end."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import GDB, SOURCE
from tests.gdbext.test_interrupt import Gdb

POS = "print $trace_pos"


def beginning(rig: Rig, *, traced: bool = True) -> list[str]:
    """Commands that lead from reset to `finish`."""
    commands = [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]
    commands += ["monitor reset halt", "maintenance flush register-cache"]  # the rig may have been used before
    return [*commands, "trace start", "tbreak finish", "continue"] if traced else commands


class Typed(Gdb):
    """A gdb at `finish` that is typed at, with all it said."""

    def __init__(self, rig: Rig, *, traced: bool = True, gdb: str = GDB) -> None:
        super().__init__(rig.elf, gdb)
        self.said = ""
        for command in ("set height 0", "set width 0", "set confirm off", *beginning(rig, traced=traced)):
            self.run(command)

    def answer(self, timeout: float = 60) -> str:
        said = super().answer(timeout)
        self.said += said
        return said

    def place(self) -> int:
        """$trace_pos."""
        return int(re.findall(r"\$\d+ = (-?\d+)", self.run(POS))[-1])

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.check_said()

    def check_said(self) -> None:
        assert "Traceback" not in self.said and "Python Exception" not in self.said, self.said


@contextmanager
def typed(rig: Rig, *, traced: bool = True, gdb: str = GDB) -> Iterator[Typed]:
    session = Typed(rig, traced=traced, gdb=gdb)
    try:
        yield session
    finally:
        session.close()


def without_prompts(text: str) -> str:
    return re.sub(r"^(?:\(gdb\) )+", "", text, flags=re.M).strip()


def power_off(rig: Rig) -> None:
    """The simulated target is gone, and its end of the cable."""
    rig.simulator.kill()
    rig.simulator.wait()
    deadline = time.monotonic() + 60
    while _is_there(rig.folder / "jtag.sock"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_there(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as cable:
        return cable.connect_ex(str(path)) == 0
