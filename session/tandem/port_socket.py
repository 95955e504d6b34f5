"""The bytes of a tandem-trace port as a socket delivers them: received by a thread, so that the sender never waits."""

import time
from threading import Lock, Thread

from rvtrace_gdb.session.tandem.port_file import PortFileError
from rvtrace_gdb.support.progress import Progress
from rvtrace_gdb.transport.stream.interface import NoStream, Stream, StreamLost
from rvtrace_gdb.transport.stream.opening import open_stream

_WAIT = 0.1  # seconds the thread waits for bytes before it looks whether it is to end
_QUIET, _LONGEST = 0.03, 0.5  # seconds: what is under way has arrived when nothing has for so long; at most


class PortSocket:
    """Connected to *path*, `tcp:HOST:PORT` or `unix:PATH`. `data` is all that was taken over so far.

    Raises PortFileError.
    """

    wrapped = True
    """What was sent before is gone, and the first byte may be in the middle of a group."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.data = bytearray()
        self._lock, self._arrived, self._ended, self._closing = Lock(), bytearray(), "", False
        try:
            self._stream: Stream = open_stream(path)
        except NoStream as error:
            raise PortFileError(path, f"{error.problem}; is the port's other end running?") from None
        self._thread = Thread(target=self._receive, name=f"tandem port {path}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        self._thread.join()

    @property
    def unread(self) -> int:
        """Bytes that have arrived since. Raises PortFileError when there are none, and no more will come."""
        if self._ended and not self._arrived:
            raise self._lost()
        return len(self._arrived)

    def read(self, progress: Progress) -> None:
        """All that has arrived. Raises PortFileError when no more will, and what *progress* raises."""
        begun = changed = time.monotonic()
        while not self._ended and time.monotonic() - changed < _QUIET and time.monotonic() - begun < _LONGEST:
            progress("reading the trace", len(self.data))
            if self._take():
                changed = time.monotonic()
            time.sleep(_QUIET / 3)
        self._take()
        if self._ended:
            raise self._lost()

    def _lost(self) -> PortFileError:
        kept = f"the {len(self.data)} bytes received before are kept, `trace start` connects again"
        return PortFileError(self.path, f"{self._ended}; {kept}")

    def _take(self) -> int:
        with self._lock:
            piece, self._arrived = self._arrived, bytearray()
        self.data += piece
        return len(piece)

    def _receive(self) -> None:
        try:
            while not self._closing and not self._ended:
                piece = self._stream.read(_WAIT)
                if piece is None:
                    self._ended = "the other end has closed the connection"
                elif piece:
                    with self._lock:
                        self._arrived += piece
        except StreamLost as error:
            self._ended = error.problem
        finally:
            self._stream.close()
