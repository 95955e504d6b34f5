"""A small process that keeps gdb's connection open when this process is killed, and ends it at a safe moment.

gdb 13 and 16 crash when their connection ends while they compute frames: they free all frames, and continue to use one
of them. So a small process also has gdb's connection. It does nothing as long as this process lives; after that it
answers the packets with which gdb computes frames with an error, and ends the connection at any other packet.

This file is also the program of that process, and needs nothing else of rvtrace:

    caretaker.py CONNECTION ALIVE UNANSWERED

The arguments are file descriptors: gdb's connection; a pipe that ends with this process; a byte that is the first of
the packet to which gdb waits for an answer, or 0.
"""

import contextlib
import mmap
import os
import re
import socket
import subprocess
import sys
import tempfile

OF_FRAMES = (b"m", b"x", b"p")  # packets with which gdb computes frames
_NOTHING = b"\0"
_ERROR = b"+$E01#a6"
_PACKET = re.compile(rb"\$([^#]*)#..", re.S)
_AT_ONCE = 1 << 16


class Caretaker:
    """The caretaker of one gdb's connection. If it cannot be started, there is none."""

    def __init__(self, connection: socket.socket) -> None:
        self._unanswered: mmap.mmap | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._alive = -1
        if sys.platform != "win32":
            with contextlib.suppress(OSError, ValueError):
                self._start_process(connection)

    def _start_process(self, connection: socket.socket) -> None:
        with tempfile.TemporaryFile() as note:
            note.truncate(1)
            self._unanswered = mmap.mmap(note.fileno(), 1)
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

    def note_unanswered(self, packet: bytes) -> None:
        """Note that gdb waits for an answer to this packet; b"" means that it waits for none."""
        if self._unanswered is not None:
            self._unanswered[:1] = packet[:1] or _NOTHING

    def dismiss(self) -> None:
        """End the process: the connection has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._alive >= 0:
            os.close(self._alive)
        if self._unanswered is not None:
            self._unanswered.close()
        self._unanswered, self._process, self._alive = None, None, -1


def _take_over(gdb: socket.socket, unanswered: bytes) -> None:
    """Answer gdb with errors until it sends some other packet, or ends the connection."""
    if unanswered != _NOTHING:
        if unanswered not in OF_FRAMES:
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
    connection, alive, unanswered = map(int, words)
    os.read(alive, 1)  # nobody ever writes to it
    with contextlib.suppress(OSError), socket.socket(fileno=connection) as gdb:
        gdb.setblocking(True)
        _take_over(gdb, os.pread(unanswered, 1, 0))


if __name__ == "__main__":
    main(sys.argv[1:])
