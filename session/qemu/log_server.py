"""The recorder of a QEMU without a plugin: a pipe with its log in, the ring out, and the commands of a session."""

import fcntl
import os
import select
import socket
import sys
import termios
from pathlib import Path

from rvtrace_gdb.session.qemu.log_source import LogSource, pipe
from rvtrace_gdb.transport.qemu.errors import QemuError
from rvtrace_gdb.transport.qemu.ring import CONTROL, LOG, Ring

_PIECE = 1 << 18  # bytes
_ROOM = 1 << 12  # blocks that a ring has room for while the log is read


class LogServer:
    """`serve` again and again. *stalling*: record from the start, and let QEMU wait while there is no room."""

    def __init__(self, folder: Path, words: int, harts: int, xlen: int, *, stalling: bool) -> None:
        self._log = pipe(folder / LOG)
        self._ring = Ring.made(folder, words, harts, stalling=stalling, recording=stalling)
        self._source = LogSource(self._ring, xlen)
        self._calls = socket.socket(socket.AF_UNIX)
        self._calls.bind(str(folder / CONTROL))
        self._calls.listen(8)
        self.failure: QemuError | None = None
        """Why the log cannot be read any further; what it said before is in the ring."""

    def serve(self, patience: float) -> bool:
        """Does what there is to do, waiting at most *patience* seconds for it; whether there was any of the log."""
        if self._ring.stalling and any(self._ring.room(hart) < _ROOM for hart in range(self._ring.harts)):
            return True
        ready, _, _ = select.select([self._log, self._calls.fileno()], [], [], patience)
        if self._calls.fileno() in ready:
            self._obey()
        return self._log in ready and self._read()

    def finish(self) -> None:
        """QEMU has ended."""
        self._drain()
        self._source.settle()
        self._ring.end()

    def close(self) -> None:
        self._calls.close()
        os.close(self._log)
        self._source.close()
        self._ring.close()

    def _read(self) -> bool:
        return bool(self._piece(_PIECE))

    def _piece(self, size: int) -> bytes:
        """At most so many bytes of the log, which are taken."""
        try:
            data = os.read(self._log, size)
        except BlockingIOError:
            return b""
        if self.failure is None:
            try:
                self._source.feed(data)
            except QemuError as error:
                self.failure = error
        return data

    def _drain(self) -> None:
        while self._read():
            pass

    def _read_waiting(self) -> None:
        """What is in the pipe by now; while the program runs it never gets empty."""
        waiting = bytearray(4)
        fcntl.ioctl(self._log, termios.FIONREAD, waiting)
        left = int.from_bytes(waiting, sys.byteorder)
        while left > 0 and (data := self._piece(left)):
            left -= len(data)

    def _obey(self) -> None:
        caller, _ = self._calls.accept()
        with caller:
            caller.settimeout(1)
            try:
                command = caller.recv(64).decode(errors="replace").strip()
                self._read_waiting()  # what QEMU wrote before belongs to what was before
                if command == "settle":
                    self._source.settle()
                else:
                    self._source.record(command == "on")
                caller.sendall(b"ok\n")
            except OSError:
                return  # the caller has gone
