"""A small process that keeps gdb's connection when this process is killed, and ends it when gdb can take that.

gdb 13 and 16 crash when their connection ends while they find frames: they let go of all frames, and go on with one
of them. So a small process has gdb's connection, too. It does nothing as long as this one lives; then it answers
what gdb reads to find frames with an error, and ends the connection at anything else.

This file is also its program, and needs nothing else of rvtrace: `caretaker.py CONNECTION ALIVE OWED`, file
descriptors: gdb's connection; a pipe that ends with this process; a byte, what the packet begins with that gdb waits
for an answer to, or 0.
"""

import contextlib
import mmap
import os
import re
import socket
import subprocess
import sys
import tempfile

OF_FRAMES = (b"m", b"x", b"p")  # what gdb reads when it finds frames
_NOTHING = b"\0"
_ERROR = b"+$E01#a6"
_PACKET = re.compile(rb"\$([^#]*)#..", re.S)
_AT_ONCE = 1 << 16


class Caretaker:
    """Of one gdb's connection. Where there cannot be one, or it cannot be started, there is none."""

    def __init__(self, connection: socket.socket) -> None:
        self._owed: mmap.mmap | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._alive = -1
        if sys.platform != "win32":
            with contextlib.suppress(OSError, ValueError):
                self._start(connection)

    def _start(self, connection: socket.socket) -> None:
        with tempfile.TemporaryFile() as note:
            note.truncate(1)
            self._owed = mmap.mmap(note.fileno(), 1)
            watched, self._alive = os.pipe()
            try:
                descriptors = [connection.fileno(), watched, note.fileno()]
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", __file__, *map(str, descriptors)], pass_fds=descriptors,
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )  # fmt: skip
            finally:
                os.close(watched)

    def owes(self, packet: bytes) -> None:
        """gdb waits for an answer to this packet; to none, if it is empty."""
        if self._owed is not None:
            self._owed[:1] = packet[:1] or _NOTHING

    def dismiss(self) -> None:
        """The connection has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._alive >= 0:
            os.close(self._alive)
        if self._owed is not None:
            self._owed.close()
        self._owed, self._process, self._alive = None, None, -1


def _take_over(gdb: socket.socket, owed: bytes) -> None:
    """Until gdb asks for something else, or is gone."""
    if owed != _NOTHING:
        if owed not in OF_FRAMES:
            return
        gdb.sendall(_ERROR)
    received = b""
    while data := gdb.recv(_AT_ONCE):
        received += data
        while match := _PACKET.search(received):
            received = received[match.end() :]
            if match[1][:1] not in OF_FRAMES:
                return
            gdb.sendall(_ERROR)


def main(words: list[str]) -> None:
    connection, alive, owed = map(int, words)
    os.read(alive, 1)  # nothing is ever written
    with contextlib.suppress(OSError), socket.socket(fileno=connection) as gdb:
        gdb.setblocking(True)
        _take_over(gdb, os.pread(owed, 1, 0))


if __name__ == "__main__":
    main(sys.argv[1:])
