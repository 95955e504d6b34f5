"""What the pins of a simulated PIB, or an Arm trace bus, are connected with: a file, or a socket somebody reads from.

As with pins, what nobody takes is gone: to have all of it, connect before the trace is started.
"""

import contextlib
import socket
import struct
from pathlib import Path
from typing import Protocol

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.trace_atb_bridge import Transfer, record
from rvtrace_gdb.transport.simulated.trace_pib_sink import Probe

_SEND_TIMEOUT = 10  # seconds a reader may leave bytes unread before it counts as dead


class StreamError(RvtraceError):
    """A file that cannot be written."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"cannot write {path}: {error.strerror}")
        self.path = path


class Stream(Protocol):
    """A probe that is to be closed."""

    def write(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...


class FileStream:
    """All bytes, in a file that is begun anew, as soon as they are sent. Raises StreamError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise StreamError(path, error) from None

    def write(self, data: bytes, /) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise StreamError(self._path, error) from None

    def close(self) -> None:
        self._file.close()


class SocketStream:
    """The bytes for one reader after the other that connects to *listener*, which is closed with this."""

    def __init__(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._reader: socket.socket | None = None

    def write(self, data: bytes, /) -> None:
        """A reader that has gone away, or reads nothing for long, gets no more."""
        if self._reader is None:
            self._reader = self._accepted()
        if self._reader is not None:
            try:
                self._reader.sendall(data)
            except OSError:
                self._reader.close()
                self._reader = None

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._listener.close()

    def _accepted(self) -> socket.socket | None:
        with contextlib.suppress(BlockingIOError):
            reader, _ = self._listener.accept()
            reader.setblocking(True)
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_TIMEOUT, 0))
            return reader
        return None


def transfers(probe: Probe, width: int) -> Transfer:
    """An Arm trace bus of *width* bytes whose transfers go to *probe* as `AtbRecords` has them. More is several."""

    def transfer(atid: int, data: bytes) -> None:
        for n in range(0, len(data), width):
            probe.write(record(atid, data[n : n + width], width))

    return transfer
