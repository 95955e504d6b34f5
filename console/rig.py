"""The simulated target and a real OpenOCD against it, as child processes: for the demo, the tests, the benchmarks."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from rvtrace_gdb.support.errors import RvtraceError

STARTUP_SECONDS = 60
ENDING_SECONDS = 20  # killed before it has ended by itself, the simulated target leaves half a log


class RigError(RvtraceError):
    """A part of the rig did not start or ended; `log` is what it said."""

    def __init__(self, what: str, log: str) -> None:
        last = log.strip().splitlines()[-1] if log.strip() else "it said nothing"
        super().__init__(f"{what}: {last}")
        self.log = log


@contextlib.contextmanager
def held_port(port: int = 0) -> Iterator[int]:
    """A local TCP port nobody listens on (*port*, or any), which no program is given by chance within the `with` block.

    OpenOCD, QEMU and all that listen with SO_REUSEADDR can listen on it meanwhile (Linux). Raises OSError for a *port*
    that is taken.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        yield int(holder.getsockname()[1])


class Processes:
    """A target of child processes, for *elf*; their files are in *folder*. They end with the `with` block.

    *target_file*: the target description; *gdb_port*: where gdb connects to. A subclass has `start`.
    """

    def __init__(self, elf: str | os.PathLike[str], folder: str | os.PathLike[str]) -> None:
        self.elf, self.folder = Path(elf), Path(folder)
        self.target_file = self.folder / "rvtrace.toml"
        self._children: list[subprocess.Popen[bytes]] = []
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.hold_ports(self._held)
            self.start()
        except BaseException:  # leave no child behind, whatever happened
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            self.stop()

    def hold_ports(self, held: contextlib.ExitStack) -> None:
        """Choose the ports. They are kept from other programs until one of ours listens, and when it starts again."""
        self.gdb_port, self.tcl_port = held.enter_context(held_port()), held.enter_context(held_port())

    def start(self) -> None:
        """Start all, and wait until gdb can connect. Raises RigError."""
        raise NotImplementedError

    def stop(self) -> None:
        """End all; the last started first: OpenOCD aborts when its adapter goes away under it."""
        with contextlib.ExitStack() as ends:  # all of them even when a wait is interrupted
            for child in self._children:
                ends.callback(_end, child)
        self._children.clear()

    def _start(self, command: list[str], log: Path, printed: int | None = None) -> subprocess.Popen[bytes]:
        """To a file, because a pipe that nobody reads would stop a program that prints much.

        *printed*: where its standard output goes instead.
        """
        with log.open("wb") as out:
            child = subprocess.Popen(
                [*_tied(), *command], stdout=out if printed is None else printed, stderr=out,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._children.append(child)
        return child


class Rig(Processes):
    """`with Rig(elf, folder) as rig:` - the program halted at its entry, OpenOCD listening on gdb_port and tcl_port.

    The files (target description, OpenOCD configuration, logs) are written to *folder*. Raises RigError.

    For a subclass to set: `openocd_commands`, what OpenOCD is to do after its configuration.
    """

    openocd_commands = "init; halt"

    def __init__(self, elf: str | os.PathLike[str], folder: str | os.PathLike[str], *sim_options: str) -> None:
        super().__init__(elf, folder)
        self.openocd_log = self.folder / "openocd.log"
        self._sim_options = sim_options

    def start(self) -> None:
        """Start the simulated target and OpenOCD."""
        self.start_simulator()
        self.start_openocd()

    def start_simulator(self) -> None:
        """Start `rvtrace sim` on a unix socket in the folder and wait until it listens."""
        configuration = self.folder / "openocd.cfg"
        log = self.folder / "sim.log"
        command = [sys.executable, "-m", "rvtrace_gdb", "sim", "--elf", str(self.elf)]
        command += ["--unix", str(self.folder / "jtag.sock"), "--write-target", str(self.target_file)]
        command += ["--write-openocd", str(configuration), "--tcl-port", str(self.tcl_port)]
        command += ["--gdb-port", str(self.gdb_port), *self._sim_options]
        self.simulator = self._start(command, log)
        wait_until(self.simulator, "the simulated target", log, lambda: b"listening on" in log.read_bytes())

    def start_openocd(self) -> None:
        """Start the real openocd, or start it again, and wait until it serves gdb and Tcl."""
        openocd = shutil.which("openocd")
        if openocd is None:
            raise RigError("openocd is not installed", "apt install openocd")
        command = [openocd, "-f", str(self.folder / "openocd.cfg")]
        command += ["-c", self.openocd_commands]
        self.openocd = self._start(command, self.openocd_log)
        # The gdb port is opened by `init`; the Tcl port is opened last, after all commands.
        ready = f"Listening on port {self.tcl_port} for tcl".encode()
        wait_until(self.openocd, "openocd", self.openocd_log, lambda: ready in self.openocd_log.read_bytes())

    def kill_openocd(self) -> None:
        """As when it crashes: the simulated target stays, and `start_openocd` starts another."""
        self.openocd.kill()
        self.openocd.wait()


def _tied() -> list[str]:
    """Put before a command (Linux): it ends with this process even when that is killed and cannot end it."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(ENDING_SECONDS)
    finally:
        child.kill()
        child.wait()


def listens(port: int) -> bool:
    """Whether a local TCP port is listened on, without connecting: OpenOCD takes a connection for a gdb."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        with open(table, encoding="ascii") as file:
            if any(f[1].endswith(wanted) and f[3] == "0A" for f in (line.split() for line in file) if len(f) > 3):
                return True
    return False


def wait_until(child: subprocess.Popen[bytes], what: str, log: Path, ready: Callable[[], bool]) -> None:
    """Until a child is *ready*. Raises RigError, with the last line of its *log*."""
    deadline = time.monotonic() + STARTUP_SECONDS
    while not ready():
        if child.poll() is not None or time.monotonic() > deadline:
            raise RigError(f"{what} did not start", log.read_text(errors="replace"))
        time.sleep(0.02)
