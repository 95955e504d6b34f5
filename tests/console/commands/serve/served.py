"""`rvtrace serve` as a process, and a capture that it serves, of which is known what ran."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.machine import build
from tests.helpers.remote_protocol import Rsp
from tests.helpers.started_python import Started
from tests.session.board import DEMO, SMALL_RAM, board

INSTRUCTIONS = 700
_RAM = "[[memory]]\naddress = 0x8000_0000\nsize = 0x10_0000\nkind = \"ram\"\n"


class Moment(NamedTuple):
    """The state of the hart before an instruction."""

    pc: int
    x: tuple[int, ...]


class Served(NamedTuple):
    """A capture, and every moment of the run, found by stepping another machine without any trace."""

    file: Path
    moments: list[Moment]


def capture(folder: Path, elf: Path = DEMO) -> Served:
    demo, file = board(folder, elf), folder / "served.rvt"
    demo.registers = True
    session, context = Session(demo.connect, {}), demo.describe(extra=_RAM)
    session.start(context)
    demo.run(INSTRUCTIONS)
    session.save(file, context)
    session.close()
    return Served(file, list(islice(_moments(elf), demo.machine.hart.instret + 1)))


def _moments(elf: Path) -> Iterator[Moment]:
    hart = build(elf, memory_map=SMALL_RAM).hart
    while True:
        moment, before = Moment(hart.pc, tuple(hart.x)), hart.instret
        hart.step()
        if hart.instret != before:
            yield moment


class Packets(Rsp):
    """A client that sends the packets of a test and no others."""

    def __enter__(self) -> Self:
        return self

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._received = b""

    def monitor(self, command: str) -> list[str]:
        """The lines that the server prints for a command."""
        return self._lines(self.ask(f"qRcmd,{command.encode().hex()}"))

    def interrupted(self, command: str) -> list[str]:
        """The lines for a command with which Ctrl-C comes."""
        body = f"qRcmd,{command.encode().hex()}".encode()
        self._socket.sendall(b"$%b#%02x\x03" % (body, sum(body) % 256))
        return self._lines(self._answer())

    def _lines(self, answer: str) -> list[str]:
        said = b""
        while answer.startswith("O") and answer != "OK":
            said += bytes.fromhex(answer[1:])
            answer = self._answer()
        assert answer == "OK", answer
        return said.decode().splitlines()

    def stop(self, packet: str) -> str:
        """The stop after a packet that resumes, without what is printed before."""
        answer = self.ask(packet)
        while answer.startswith("O"):
            answer = self._answer()
        return answer

    def place(self) -> int:
        """The address of the instruction that runs next."""
        return int.from_bytes(bytes.fromhex(self.ask("p20")), "little")


class Server(NamedTuple):
    """A running server. *place*: what it printed with --json."""

    process: Started
    place: dict[str, object]

    @property
    def port(self) -> int:
        return int(str(self.place["port"]))

    def client(self) -> Packets:
        return Packets(self.port)

    def end(self, number: int = signal.SIGTERM) -> int:
        os.kill(self.process.pid, number)
        return self.process.wait()


@contextmanager
def serving(*words: object) -> Iterator[Server]:
    """A server with these arguments, which is there to the end of the context."""
    reader, writer = os.pipe()
    with open(os.devnull, "r+b") as nothing, open(reader, encoding="utf-8") as printed:
        process = Started(["serve", *map(str, words), "--json"], (nothing.fileno(), writer, nothing.fileno()))
        os.close(writer)
        try:
            yield Server(process, json.loads(printed.readline()))
        finally:
            process._server.close()  # which ends it, if it has not ended
