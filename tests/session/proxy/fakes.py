"""A stub and a gdb that do what a test says: for details of the protocol that real ones do not show.

Both send at once what they send (TCP_NODELAY), as OpenOCD, QEMU and gdb do: an acknowledgment and a packet after it
would otherwise wait for each other's delayed acknowledgments of TCP, 40 ms each time.
"""

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

XML = b"""<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd">
<target><architecture>riscv:rv64</architecture>
<xi:include href="cpu.xml"/><!-- <reg name="no" bitsize="8"/> --></target>"""
CPU = (
    b'<feature name="org.gnu.gdb.riscv.cpu">'
    + b"".join(b'<reg name="x%d" bitsize="64" type="int"/>' % number for number in range(32))
    + b'<reg name="pc" bitsize="64" type="code_ptr"/><reg name="extra" bitsize="32" regnum="0x50"/></feature>'
)
REGISTERS = b"".join(b"%02x00000000000000" % number for number in range(33))
STOP = b"T05thread:p01.01;"


def packet(body: bytes) -> bytes:
    return b"$" + body + b"#" + f"{sum(body) % 256:02x}".encode()


class FakeStub:
    """Serves one connection after the other. *got*: the bodies of all packets, and interrupts as b"\\x03"."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.answers: dict[bytes, bytes | list[bytes] | None] = {}
        self.raw = b""  # of all connections
        self.acknowledges = True
        self.pc = 0x1010
        self._connection: socket.socket | None = None
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.hang_up()

    def hang_up(self) -> None:
        """As when it dies."""
        if self._connection is not None:
            with contextlib.suppress(OSError):  # it is closed
                self._connection.shutdown(socket.SHUT_RDWR)

    def send(self, raw: bytes) -> None:
        assert self._connection is not None
        self._connection.sendall(raw)

    def wait_for(self, body: bytes, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while body not in self.got:
            assert time.monotonic() < deadline, (body, self.got)
            time.sleep(0.005)

    def _serve(self) -> None:
        while True:
            try:
                self._connection, _ = self._server.accept()
                self.acknowledges = True
                with self._connection:
                    self._serve_one(self._connection)
            except OSError:
                if self._server.fileno() < 0:
                    return

    def _serve_one(self, connection: socket.socket) -> None:
        received = b""
        while data := connection.recv(1 << 16):
            self.raw += data
            received += data
            while match := re.match(rb"[^$\x03]*(?:\$([^#]*)#..|(\x03))", received, re.S):
                received = received[match.end() :]
                body = match[2] or match[1]
                self.got.append(body)
                if self.acknowledges and not match[2]:
                    connection.sendall(b"+")
                answers = self._answer(body)
                for answer in [answers] if isinstance(answers, bytes) else answers or []:
                    connection.sendall(packet(answer))
                if body == b"QStartNoAckMode":
                    self.acknowledges = False

    def _answer(self, body: bytes) -> bytes | list[bytes] | None:
        if body in self.answers:
            return self.answers[body]
        if body.startswith(b"qSupported"):
            return b"PacketSize=4000;QStartNoAckMode+;qXfer:features:read+;ConditionalBreakpoints+;swbreak+"
        if match := re.match(rb"qXfer:features:read:(.*):([0-9a-f]+),([0-9a-f]+)", body):
            document = {b"target.xml": XML, b"cpu.xml": CPU}.get(match[1])
            if document is None:
                return b"E00"
            begin, size = int(match[2], 16), int(match[3], 16)
            return (b"l" if begin + size >= len(document) else b"m") + document[begin : begin + size]
        if body == b"g":
            return REGISTERS[:-16] + self.pc.to_bytes(8, "little").hex().encode()
        if body == b"p20":
            return self.pc.to_bytes(8, "little").hex().encode()
        if body == b"qfThreadInfo":
            return b"mp01.01,p01.02"
        if body == b"?":
            return STOP
        if body[:1] in (b"H", b"T", b"Z", b"z", b"Q", b"M", b"X", b"P", b"G", b"D"):
            return b"OK"
        if body[:1] == b"m":
            return b"11" * int(body.partition(b",")[2], 16)
        if body.startswith((b"vCont;", b"c", b"s")):
            return STOP
        if body[:1] in (b"k", b"\x03"):
            return None
        return b""


class Client:
    """A gdb that a test drives."""

    def __init__(self, port: int, *, acknowledges: bool = True, feature: bytes = b"swbreak+") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(60)
        self._received = b""
        self.acknowledges = True
        self.output: list[bytes] = []  # of O packets
        self.socket.sendall(b"+")
        self.features = self.ask(b"qSupported:multiprocess+;" + feature)
        if not acknowledges:
            assert self.ask(b"QStartNoAckMode") == b"OK"
            self.acknowledges = False

    def close(self) -> None:
        self.socket.close()

    def ask(self, body: bytes) -> bytes:
        self.socket.sendall(packet(body))
        return self.answer()

    def answer(self) -> bytes:
        """The next packet that is not an output."""
        while True:
            body = self.packet()
            if body[:1] != b"O" or body == b"OK":
                return body
            self.output.append(bytes.fromhex(body[1:].decode()))

    def packet(self) -> bytes:
        while (match := re.match(rb"[+-]*[$%]([^#]*)#..", self._received, re.S)) is None:
            data = self.socket.recv(1 << 16)
            assert data, "the connection was closed"
            self._received += data
        self._received = self._received[match.end() :]
        if self.acknowledges:
            self.socket.sendall(b"+")
        return match[1]

    def is_closed(self) -> bool:
        """Waits for it."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass
        except TimeoutError:
            return False
        return True

    def read_target(self) -> bytes:
        """target.xml in small pieces, as gdb reads it."""
        document = b""
        while True:
            answer = self.ask(b"qXfer:features:read:target.xml:%x,40" % len(document))
            document += answer[1:]
            if answer[:1] == b"l":
                return document


@contextmanager
def fake_stub() -> Iterator[FakeStub]:
    stub = FakeStub()
    try:
        yield stub
    finally:
        stub.close()
