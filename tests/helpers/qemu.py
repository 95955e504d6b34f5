"""The real QEMU as a gdb stub, and its own log of what ran: what the proxy's past is made of in tests.

Source: QEMU's documentation of -d exec ("Trace CPU: host [cs_base/pc/flags/cflags]") and -singlestep.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rvtrace_gdb.console.bench.rig import held_port

_TRACE = re.compile(rb"Trace (\d+): 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/")
_RAM = 0x80000000


class Qemu:
    """A `virt` machine that runs an ELF, stopped at reset, its stub at *port*."""

    def __init__(self, child: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        self.child, self.port, self._log = child, port, log

    def retired(self, hart: int) -> list[int]:
        """What ran on a hart, but for the boot ROM."""
        pcs: list[int] = []
        newest = hart
        for line in self._log.read_bytes().splitlines():
            if match := _TRACE.match(line):
                newest = int(match[1])
                if newest == hart:
                    pcs.append(int(match[2], 16))
            elif line.startswith((b"Stopped execution", b"cpu_io_recompile: rewound")) and newest == hart:
                pcs.pop()  # it was about to run, or runs again: an access to a device
        return [pc for pc in pcs if pc >= _RAM]


@contextmanager
def running(elf: Path, folder: Path, harts: int = 1, *, logged: bool = True) -> Iterator[Qemu]:
    """Ends with the block, however that ends."""
    log = folder / "qemu.log"
    word = "32" if "rv32" in elf.name else "64"
    command = [f"qemu-system-riscv{word}", "-M", "virt", "-m", "64", "-smp", str(harts), "-bios", "none"]
    command += ["-kernel", str(elf), "-display", "none", "-serial", "null", "-monitor", "none", "-S"]
    # A nanosecond for each instruction: the timer interrupt comes at the same place each time.
    command += ["-icount", "shift=0,sleep=off"]
    if logged:
        command += ["-singlestep", "-d", "exec,nochain", "-D", str(log)]
    setpriv = shutil.which("setpriv")
    tied = [setpriv, "--pdeathsig", "TERM"] if setpriv else []
    with (
        held_port() as port,
        subprocess.Popen([*tied, *command, "-gdb", f"tcp:127.0.0.1:{port}"], stdin=subprocess.DEVNULL) as child,
    ):
        try:
            _wait(child, port)
            yield Qemu(child, port, log)
        finally:
            child.kill()


def _wait(child: "subprocess.Popen[bytes]", port: int) -> None:
    """Until it listens, without connecting: that would be a gdb."""
    deadline = time.monotonic() + 60
    wanted = f":{port:04X}"
    while time.monotonic() < deadline and child.poll() is None:
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        if any(row[1].endswith(wanted) and row[3] == "0A" for row in rows[1:]):
            return
        time.sleep(0.02)
    raise AssertionError("QEMU did not start")
