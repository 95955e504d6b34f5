"""Reading a stream while what came before is decoded: a probe that is not read from in time loses bytes."""

import os
import threading
import time
from collections import deque
from typing import BinaryIO

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.stream.interface import Stream
from rvtrace_gdb.transport.stream.opening import open_stream

__all__ = ["WAITING", "NotKept", "Reader", "Spool", "Stream", "open_stream"]

_PIECE = 1 << 16  # bytes given away at once
WAITING = 1 << 26
"""Bytes in memory that may wait."""

_TURN = 0.1  # seconds
_DRAINING = 1.0


class NotKept(RvtraceError):
    """What arrives cannot be written any more. *file*: where the first *kept* bytes are."""

    def __init__(self, file: str, error: OSError, kept: int) -> None:
        what = f"the first {kept} bytes are kept, no more of them" if kept else "nothing is kept"
        super().__init__(f"{file}: cannot be written: {error.strerror}: {what}; decoding goes on")
        self.file, self.kept = file, kept


class Spool:
    """Bytes on their way from the reader to the decoder, in order.

    With a *file* they go there, all of them, and wait on disk; without one, or when it takes no more, so many wait in
    memory, and the reader with them.
    """

    def __init__(self, file: BinaryIO | None = None, *, limit: int = WAITING) -> None:
        self._file, self._limit = file, limit
        self._pieces: deque[bytes] = deque()
        self._written = self._taken = 0
        self._ended = False
        self._changed = threading.Condition()
        self.kept = 0
        """How many of them are in the file."""
        self.failure: NotKept | None = None
        """Why the others are not."""
        self.held_up = False
        """Whether the reader had to wait: who sends had to, then."""

    @property
    def waiting(self) -> int:
        """Bytes that were not taken yet."""
        return self._written - self._taken

    @property
    def _in_memory(self) -> int:
        return self._written - max(self._taken, self.kept)

    @property
    def written(self) -> int:
        """Bytes so far."""
        return self._written

    def put(self, data: bytes) -> None:
        """More of them."""
        with self._changed:
            if self._file is not None and self.failure is None:
                data = self._keep(data, self._file)
            if data:
                while self._in_memory >= self._limit and not self._ended:
                    self.held_up = True
                    self._changed.wait(_TURN)
                self._pieces.append(data)
                self._written += len(data)
            self._changed.notify_all()

    def _keep(self, data: bytes, file: BinaryIO) -> bytes:
        """What the file does not take."""
        view = memoryview(data)
        while view:
            try:
                count = os.pwrite(file.fileno(), view, self._written)
            except OSError as error:
                self.failure = NotKept(str(file.name), error, self.kept)
                break
            self._written += count
            self.kept += count
            view = view[count:]
        return bytes(view)

    def get(self, wait: float) -> bytes | None:
        """The next ones; b"" if none came within *wait* seconds, None at the end."""
        with self._changed:
            if not self.waiting and not self._ended:
                self._changed.wait(wait)
            if not self.waiting:
                return None if self._ended else b""
            data = self._next()
            self._taken += len(data)
            self._changed.notify_all()
        return data

    def _next(self) -> bytes:
        if self._file is not None and self._taken < self.kept:
            return os.pread(self._file.fileno(), min(_PIECE, self.kept - self._taken), self._taken)
        size, pieces = 0, []
        while self._pieces and size < _PIECE:
            pieces.append(self._pieces.popleft())
            size += len(pieces[-1])
        return b"".join(pieces)

    def end(self) -> None:
        """No more of them."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Reader:
    """Reads *stream* into *spool*, in a thread, from `start` to its end or `stop`."""

    def __init__(self, stream: Stream, spool: Spool) -> None:
        self.failure: RvtraceError | None = None
        """Why it ended, if that was not its end."""
        self._stream, self._spool = stream, spool
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read, name="stream", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more than what is there. The spool ends soon."""
        self._stopping.set()

    def join(self) -> None:
        """Wait for the end, after `stop`."""
        self._stopping.set()
        self._spool.end()
        if self._thread.ident is not None:
            self._thread.join()

    def _read(self) -> None:
        try:
            while not self._stopping.is_set():
                data = self._stream.read(_TURN)
                if data is None:
                    break
                if data:
                    self._spool.put(data)
            else:
                self._read_what_is_there()
        except RvtraceError as error:
            self.failure = error
        finally:
            self._spool.end()

    def _read_what_is_there(self) -> None:
        """It has come, too. Of who sends faster than we read, not for ever; but once, however late it is."""
        end = time.monotonic() + _DRAINING
        while data := self._stream.read(0):
            self._spool.put(data)
            if time.monotonic() >= end:
                break
