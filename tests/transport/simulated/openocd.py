"""The simulated target with a real OpenOCD on it, and a Tcl client for the tests to talk to that."""

import socket
from contextlib import ExitStack, closing
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig


class TclError(Exception):
    """OpenOCD refused a command; the text is its own."""


class Tcl:
    """OpenOCD's Tcl RPC: a command and 0x1a there, the result and 0x1a back."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)

    def close(self) -> None:
        self._socket.close()

    def __call__(self, command: str) -> str:
        """The result of *command*. Raises TclError."""
        self._socket.sendall(b"set rc [catch {%s} out]; return \"$rc $out\"\x1a" % command.encode())
        reply = b""
        while not reply.endswith(b"\x1a"):
            data = self._socket.recv(1 << 20)
            if not data:
                raise ConnectionError("OpenOCD closed the connection")
            reply += data
        status, _, result = reply[:-1].decode().partition(" ")
        if status != "0":
            raise TclError(result.strip())
        return result.strip()

    def words(self, address: int, count: int) -> list[int]:
        """32-bit words of memory."""
        return [int(word, 0) for word in self(f"read_memory {address:#x} 32 {count}").split()]

    def store(self, address: int, value: int, bits: int = 32) -> None:
        self(f"write_memory {address:#x} {bits} {value:#x}")

    def reg(self, name: str) -> int:
        """A register, read from the hart and not from OpenOCD's cache."""
        return int(self(f"get_reg -force {name}").split()[1], 0)

    def set_reg(self, name: str, value: int) -> None:
        self(f"set_reg {{{name} {value:#x}}}")

    @property
    def state(self) -> str:
        return self("sim.cpu curstate")


class OpenOcd(Rig):
    """`with OpenOcd(elf, folder) as target:` the program halted at its entry; `target.tcl(...)` talks to OpenOCD."""

    tcl: Tcl

    def __init__(self, elf: Path, folder: Path, *sim_options: str) -> None:
        super().__init__(elf, folder, *sim_options)
        self._connections = ExitStack()

    def start_openocd(self) -> None:
        """As Rig, and `tcl` talks to the one just started."""
        super().start_openocd()
        self.tcl = self._connections.enter_context(closing(Tcl(self.tcl_port)))

    def stop(self) -> None:
        with self._connections:
            super().stop()
