"""The simulated target and a real OpenOCD against it, as child processes: for the demo, the tests, the benchmarks."""

import contextlib
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from support.errors import RvtraceError


class RigError(RvtraceError):
    """A part of the rig did not start or ended; `log` is what it said."""

    def __init__(self, what: str, log: str) -> None:
        last = log.strip().splitlines()[-1] if log.strip() else "it said nothing"
        super().__init__(f"{what}: {last}")
        self.log = log


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now. All are held until the last is found, so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


class Rig:
    """`with Rig(elf, folder) as rig:` - the program halted at its entry, OpenOCD listening on gdb_port and tcl_port.

    The files (target description, OpenOCD configuration, logs) are written to *folder*. Raises RigError.
    """

    def __init__(self, elf: Path, folder: Path, *sim_options: str) -> None:
        self.elf = elf
        self.folder = folder
        self.target_file = folder / "rvtrace.toml"
        self.openocd_log = folder / "openocd.log"
        self.gdb_port, self.tcl_port = free_ports(2)
        self._sim_options = sim_options
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.start_simulator()
            self.start_openocd()
        except BaseException:  # leave no child behind, whatever happened
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start_simulator(self) -> None:
        """Start `rvtrace sim` on a unix socket in the folder and wait until it listens."""
        configuration = self.folder / "openocd.cfg"
        log = self.folder / "sim.log"
        command = [sys.executable, "-m", "console.main", "sim", "--elf", str(self.elf)]
        command += ["--unix", str(self.folder / "jtag.sock"), "--write-target", str(self.target_file)]
        command += ["--write-openocd", str(configuration), "--tcl-port", str(self.tcl_port)]
        command += ["--gdb-port", str(self.gdb_port), *self._sim_options]
        with log.open("wb") as stderr:
            self.simulator = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=stderr, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self._children.append(self.simulator)
        _wait_for_line(self.simulator, rb"listening", log)

    def start_openocd(self) -> None:
        """Start the real openocd and wait until it serves gdb."""
        openocd = shutil.which("openocd")
        if openocd is None:
            raise RigError("openocd is not installed", "apt install openocd")
        with self.openocd_log.open("wb") as log:
            self.openocd = subprocess.Popen(
                [openocd, "-f", str(self.folder / "openocd.cfg"), "-c", "init; halt; echo {rig is ready}"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._children.append(self.openocd)
        deadline = time.monotonic() + 20
        while not _listens(self.gdb_port) or b"rig is ready" not in self.openocd_log.read_bytes():
            if self.openocd.poll() is not None or time.monotonic() > deadline:
                raise RigError("openocd did not start", self.openocd_log.read_text(errors="replace"))
            time.sleep(0.02)

    def stop(self) -> None:
        """End both; OpenOCD first, because it aborts when its adapter goes away under it."""
        for child in reversed(self._children):
            if child.poll() is None:
                child.terminate()
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdout:
                child.stdout.close()
        self._children.clear()


def _listens(port: int) -> bool:
    """Whether a local TCP port is listened on, without connecting: OpenOCD takes a connection for a gdb."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        with open(table, encoding="ascii") as file:
            if any(f[1].endswith(wanted) and f[3] == "0A" for f in (line.split() for line in file) if len(f) > 3):
                return True
    return False


def _wait_for_line(child: subprocess.Popen[bytes], pattern: bytes, log: Path, seconds: float = 20) -> None:
    assert child.stdout is not None
    deadline = time.monotonic() + seconds
    seen = b""
    while not re.search(pattern, seen):
        ready, _, _ = select.select([child.stdout], [], [], max(0.0, deadline - time.monotonic()))
        data = os.read(child.stdout.fileno(), 4096) if ready else b""
        seen += data
        if not data:
            raise RigError("the simulated target did not start", log.read_text(errors="replace") or seen.decode())
