"""The simulated target in a child process, and a real openocd connected to it."""

import contextlib
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from support.errors import RvtraceError
from transport.openocd import OpenOcd

ROOT = Path(__file__).parents[2]
ENTRY = 0x8000_0000
EBREAK = ENTRY + 0x10
CODE = (
    0x000012B7,  # lui  t0, 1          4096 rounds
    0x010000EF,  # jal  ra, 0x14
    0xFFF28293,  # addi t0, t0, -1
    0xFE029CE3,  # bnez t0, 0x4
    0x00100073,  # ebreak
    0x00008067,  # ret
)
LOOP_FOREVER = (0x0000006F,)  # j 0
STARTUP_SECONDS = 20


def write_elf(path: Path, code: tuple[int, ...] = CODE) -> Path:
    """An ELF64 for RISC-V with one segment, loaded and entered at ENTRY."""
    text = struct.pack(f"<{len(code)}I", *code)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 243, 1, ENTRY, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 120, ENTRY, ENTRY, len(text), len(text), 4)
    path.write_bytes(header + segment + text)
    return path


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(listener.getsockname()[1]) for listener in listeners]


class Live:
    """Use as a context. `openocd()` gives connections; the processes' logs are in *folder*."""

    def __init__(self, folder: Path, code: tuple[int, ...] = CODE) -> None:
        self.folder = folder
        self.elf = write_elf(folder / "program.elf", code)
        self.tcl_port, self.gdb_port, self.telnet_port = free_ports(3)
        self._simulator: subprocess.Popen[bytes] | None = None
        self._openocd: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._start_simulator()
            self.start_openocd()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def connect(self, port: int | None = None, timeout: float = 10.0) -> OpenOcd:
        return OpenOcd(port=port or self.tcl_port, timeout=timeout)

    def _start_simulator(self) -> None:
        adapter = self.folder / "jtag.sock"
        command = [sys.executable, "-m", "tests.transport.simulator", str(self.elf), str(adapter)]
        with (self.folder / "simulator.log").open("wb") as log:
            self._simulator = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._wait(self._simulator, "simulator.log", adapter.exists)

    def start_openocd(self) -> None:
        ports = f"gdb_port {self.gdb_port}; telnet_port {self.telnet_port}; tcl_port {self.tcl_port}"
        adapter = f"adapter driver remote_bitbang; remote_bitbang port 0; remote_bitbang host {self.folder}/jtag.sock"
        hart = "jtag newtap sim cpu -irlen 5; target create sim.cpu riscv -chain-position sim.cpu; poll_period 10"
        command = ["openocd", "-c", f"{adapter}; {ports}; {hart}; init"]
        with (self.folder / "openocd.log").open("ab") as log:
            self._openocd = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._wait(self._openocd, "openocd.log", self._answers)

    def kill_openocd(self) -> None:
        """As a user's Ctrl-C does, or a crash."""
        assert self._openocd is not None
        self._openocd.kill()
        self._openocd.wait()

    def stop(self) -> None:
        """OpenOCD first: it aborts when its adapter goes away under it."""
        for child in (self._openocd, self._simulator):
            if child is not None and child.poll() is None:
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(5)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()

    def _answers(self) -> bool:
        with self.connect(timeout=1) as openocd:
            try:
                return openocd.state() in ("running", "halted")
            except RvtraceError:
                return False

    def _wait(self, child: subprocess.Popen[bytes], log: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + STARTUP_SECONDS
        while not ready():
            if child.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"did not start: {(self.folder / log).read_text(errors='replace')}")
            time.sleep(0.05)
