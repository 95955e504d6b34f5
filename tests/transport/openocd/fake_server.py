"""A server that speaks the Tcl RPC framing and misbehaves on request. It knows only the commands the client sends."""

import contextlib
import re
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

WRAPPED = re.compile(r"set _rvtrace_code \[catch \{(.*)\} _rvtrace\]; return (?:-level 0 -code exit )?\"", re.DOTALL)
READ = re.compile(r"(?:(\S+) )?read_memory (0x[0-9a-f]+) 32 (\d+) phys")
WRITE = re.compile(r"(?:(\S+) )?write_memory (0x[0-9a-f]+) 32 \{(0x[0-9a-f]+)\} phys")
LOOP = re.compile(r"_rvtrace_i < (\d+)\}.*read_memory (0x[0-9a-f]+) 32 1 phys", re.DOTALL)


class Close(Exception):
    """Raised by a handler: end the connection without an answer."""


class Silence(Exception):
    """Raised by a handler: never answer."""


class FakeOpenOcd:
    """Answers on a port of its own. *memory*: word by address, else an error. *before*: called with each command.

    *exits*: as OpenOCD does after 0.12, a result with the code "exit" ends the connection.
    """

    def __init__(self, greeting: str | None = None, banner: bytes = b"", exits: bool = False) -> None:
        self.memory: dict[int, int] = {}
        self.before: Callable[[str], None] = lambda command: None
        self.commands: list[str] = []
        self.connections = 0
        self.greeting, self.banner, self.exits = greeting, banner, exits
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._current: socket.socket | None = None
        self._ending = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending = True
        with socket.create_connection(("127.0.0.1", self.port)):
            while self._thread.is_alive():  # it may just take up a connection, which is not dropped yet
                self.drop()
                self._thread.join(0.05)
        self._listener.close()

    def drop(self) -> None:
        """End the present connection, as when OpenOCD is restarted."""
        connection = self._current
        if connection is not None:
            with contextlib.suppress(OSError):  # the client was first
                connection.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while not self._ending:
            connection = self._listener.accept()[0]
            with connection:
                self._current = connection
                self.connections += 1
                try:
                    connection.sendall(self.banner)
                    self._converse(connection)
                except (Close, OSError):
                    pass
                self._current = None

    def _converse(self, connection: socket.socket) -> None:
        pending = b""
        while data := connection.recv(4096):
            pending += data
            while b"\x1a" in pending:
                request, _, pending = pending.partition(b"\x1a")
                if self.exits and b"-code exit" in request:
                    connection.sendall(b"\x1a")
                    return
                try:
                    answer = self._answer(request.decode())
                except Silence:
                    continue
                connection.sendall(answer.encode() + b"\x1a")

    def _answer(self, request: str) -> str:
        if request.startswith("catch {target names}"):
            return self.greeting or "rvtrace\nOpen On-Chip Debugger 0.12.0\nriscv.cpu0 riscv.cpu1"
        wrapped = WRAPPED.match(request)
        if wrapped is None:
            raise Close
        self.commands.append(wrapped[1])
        self.before(wrapped[1])
        try:
            return f"0 {self._execute(wrapped[1])}"
        except KeyError:
            return "1 read_memory: failed to read memory"

    def _execute(self, command: str) -> str:
        if loop := LOOP.search(command):
            return self._loop(int(loop[1]), int(loop[2], 16))
        if write := WRITE.fullmatch(command):
            self.memory[int(write[2], 16)] = int(write[3], 16)
            return ""
        if read := READ.fullmatch(command):
            address = int(read[2], 16)
            return " ".join(f"{self.memory[address + 4 * n]:#x}" for n in range(int(read[3])))
        return "read_memory" if command == "info commands read_memory" else ""

    def _loop(self, count: int, address: int) -> str:
        """Each read of a word gives the next number, up to an error where memory holds the end."""
        words: list[str] = []
        for _ in range(count):
            if self.memory[address] == self.memory.get(address + 4):
                return " ".join(words) + "\nread_memory: failed to read memory"
            words.append(f"{self.memory[address]:#x}")
            self.memory[address] += 1
        return " ".join(words) + "\n"
