"""Between gdb and OpenOCD: its one thread becomes two tasks, of which one is blocked, as with -rtos FreeRTOS.

usage: task_threads.py LISTEN OPENOCD RUNNING BLOCKED PC: the ports, the numbers of the threads and the blocked one's pc
in hexadecimal. Numbers are addresses of task control blocks: gdb writes those above 2^31 as negative ones.
"""

import contextlib
import re
import select
import socket
import sys
from collections import deque

_PACKET = re.compile(rb"\$([^#]*)#[0-9a-f]{2}", re.S)
_NAMES_THREAD = (b"T", b"H", b"qThreadE", b"vCont;")


class Tasks:
    """One connection of gdb."""

    def __init__(self, gdb: socket.socket, stub: socket.socket, running: bytes, blocked: bytes, pc: int) -> None:
        self.gdb, self.stub, self.running, self.blocked, self.pc = gdb, stub, running, blocked, pc
        self.current, self.acknowledges = running, True
        self.asked: deque[tuple[bytes, bytes]] = deque()
        self.buffers = {gdb: b"", stub: b""}

    def send(self, to: socket.socket, body: bytes) -> None:
        to.sendall(b"$%b#%02x" % (body, sum(body) & 255))

    def serve(self) -> None:
        while True:
            for side in select.select(list(self.buffers), [], [])[0]:
                data = side.recv(1 << 16)
                if not data:
                    return
                self.buffers[side] += data
                while self._one(side):
                    pass

    def _one(self, side: socket.socket) -> bool:
        """Handle the first item that a side has sent; False: there is no whole one."""
        text = self.buffers[side]
        if text[:1] in (b"+", b"-", b"\x03"):
            self.buffers[side] = text[1:]
            if text[:1] == b"\x03":
                self.stub.sendall(b"\x03")
            return True
        match = _PACKET.match(text)
        if match is None:
            return False
        self.buffers[side] = text[match.end() :]
        if self.acknowledges:
            side.sendall(b"+")
        (self._asks if side is self.gdb else self._answers)(match[1])
        return True

    def _asks(self, body: bytes) -> None:
        if body.startswith(_NAMES_THREAD):
            body = re.sub(rb"-([0-9a-f]{4,})", lambda match: b"%x" % ((1 << 32) - int(match[1], 16)), body)
        own = self._own_answer(body)
        if own is not None:
            self.send(self.gdb, own)
            return
        self.asked.append((body, self.current))
        body = re.sub(rb":(%b|%b)\b" % (self.running, self.blocked), b"", body)
        self.send(self.stub, b";".join(body.split(b";")[:2]) if body.startswith(b"vCont;") else body)

    def _own_answer(self, body: bytes) -> bytes | None:
        if body[:2] in (b"Hg", b"Hc"):
            if body[:2] == b"Hg":
                self.current = self.running if body[2:] in (b"0", b"-1") else body[2:]
            return b"OK"
        if body[:1] == b"T":
            return b"OK" if body[1:] in (self.running, self.blocked) else b"E01"
        if body.startswith(b"qThreadExtraInfo"):
            return (b"Name: run" if body.endswith(self.running) else b"Name: blocked").hex().encode()
        listed = {b"qfThreadInfo": b"m%b,%b" % (self.running, self.blocked), b"qsThreadInfo": b"l"}
        return {**listed, b"qC": b"QC" + self.running}.get(body)

    def _answers(self, body: bytes) -> None:
        if body[:1] == b"O" and body != b"OK":
            self.send(self.gdb, body)
            return
        asked, of = self.asked.popleft() if self.asked else (b"?", self.running)
        if asked.startswith(b"qSupported"):
            body = body.replace(b"qXfer:threads:read+", b"qXfer:threads:read-")
        if body[:1] in (b"T", b"S") and (asked[:1] in b"?cCsS" or asked.startswith(b"vCont;")):
            self.current = self.running
            body = b"T%bthread:%b;" % (body[1:3], self.running)
        if asked == b"g" and of == self.blocked:
            body = body[: 32 * 16] + self.pc.to_bytes(8, "little").hex().encode() + body[33 * 16 :]
        self.send(self.gdb, body)
        self.acknowledges = self.acknowledges and asked != b"QStartNoAckMode"


def main() -> None:
    listen, port = int(sys.argv[1]), int(sys.argv[2])
    with socket.create_server(("127.0.0.1", listen)) as server:
        sys.stdout.write("listens\n")
        sys.stdout.flush()
        while True:
            gdb, stub = server.accept()[0], socket.create_connection(("127.0.0.1", port))
            with gdb, stub, contextlib.suppress(ConnectionError):
                Tasks(gdb, stub, sys.argv[3].encode(), sys.argv[4].encode(), int(sys.argv[5], 16)).serve()


main()
