"""The rig leaves nothing behind, however the program that holds it ends."""

import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig, RigError, held_port
from tests.helpers.cross_compiler import demo

# Its ports are the test's, which keeps other programs from them when it is gone. It ends with its standard input.
HOLDER = """
import sys
from pathlib import Path
from rvtrace_gdb.console.bench.rig import Rig
class Given(Rig):
    def hold_ports(self, held):
        self.gdb_port, self.tcl_port = map(int, sys.argv[3:])
with Given(Path(sys.argv[1]), Path(sys.argv[2])) as rig:
    print("ready", flush=True)
    sys.stdin.read()
"""
GONE_SECONDS = 60


class BadCommands(Rig):
    """*held*: keeps its ports for longer than it runs."""

    openocd_commands = "init; nonsense"

    def __init__(self, elf: Path, folder: Path, held: ExitStack) -> None:
        super().__init__(elf, folder)
        self._longer = held

    def hold_ports(self, held: ExitStack) -> None:
        super().hold_ports(self._longer)


def runs(folder: Path, tcl_port: int) -> bool:
    """Whether a part of the rig is still there: `rvtrace sim` removes its socket when it ends."""
    with socket.socket() as probe:
        return (folder / "jtag.sock").exists() or probe.connect_ex(("127.0.0.1", tcl_port)) == 0


def test_a_killed_holder_takes_the_rig_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "rig"
    with held_port() as gdb_port, held_port() as tcl_port:
        command = [sys.executable, "-c", HOLDER, str(demo(tmp_path)), str(folder), str(gdb_port), str(tcl_port)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            try:
                assert holder.stdout.readline() == b"ready\n"
                assert runs(folder, tcl_port)
            finally:
                holder.kill()
        deadline = time.monotonic() + GONE_SECONDS
        while runs(folder, tcl_port):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_an_openocd_that_does_not_start_leaves_no_simulator(tmp_path: Path) -> None:
    with ExitStack() as held:
        rig = BadCommands(demo(tmp_path), tmp_path / "rig", held)
        with pytest.raises(RigError, match="openocd did not start"), rig:
            pass
        assert not runs(rig.folder, rig.tcl_port)


class TakenPort(Rig):
    """Somebody else's program listens on the Tcl port, as it may when both were given the same one."""

    def hold_ports(self, held: ExitStack) -> None:
        super().hold_ports(held)
        self.tcl_port = held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]


def test_who_else_listens_on_the_tcl_port_is_not_taken_for_openocd(tmp_path: Path) -> None:
    rig = TakenPort(demo(tmp_path), tmp_path / "rig")
    with pytest.raises(RigError, match="openocd did not start") as caught, rig:
        pass
    assert f"couldn't bind tcl to socket on port {rig.tcl_port}" in caught.value.log


def test_a_held_port_is_for_who_is_told_it() -> None:
    """One that listens with SO_REUSEADDR, as OpenOCD and QEMU do; and for one of them only."""
    with held_port() as port, socket.socket() as stranger:
        with pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))
        with socket.create_server(("127.0.0.1", port)):
            with pytest.raises(OSError, match="in use"), socket.create_server(("127.0.0.1", port)):
                pass
            with pytest.raises(OSError, match="in use"), held_port(port):
                pass


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """Its socket is a word of OpenOCD's language."""
    with Rig(demo(tmp_path), tmp_path / "a b $x [y] z;") as rig:
        assert rig.openocd.poll() is None
