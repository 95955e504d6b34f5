"""Pipes, sockets, terminals: whatever can be waited for as a file descriptor."""

import errno
import os
import select
import stat
from collections.abc import Callable

from rvtrace_gdb.transport.stream.interface import PIECE, StreamLost

_GONE = {
    errno.ECONNRESET: "the other side broke the connection off",
    errno.ETIMEDOUT: "the other side does not answer any more",
    errno.EIO: "the device is gone (unplugged?)",
    errno.ENODEV: "the device is gone (unplugged?)",
    errno.ENXIO: "the device is gone (unplugged?)",
}


class Descriptor:
    """Bytes from *fd*, which *close* closes. Without an end when *ends* is False: a line that hangs up is lost."""

    endless = False

    def __init__(self, name: str, kind: str, fd: int, close: Callable[[], None], *, ends: bool = True) -> None:
        self.name, self.kind = name, kind
        self.lasting = stat.S_ISREG(os.fstat(fd).st_mode)
        self._fd, self._close, self._ends = fd, close, ends
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def read(self, wait: float) -> bytes | None:
        """See `Stream`."""
        ready = self._poll.poll(wait * 1000)
        if not ready:
            return b""
        try:
            data = os.read(self._fd, PIECE)
        except (BlockingIOError, InterruptedError):
            return b""
        except OSError as error:
            raise StreamLost(self.name, _GONE.get(error.errno or 0, f"cannot be read: {error.strerror}")) from None
        if data:
            return data
        if not self._ends:
            raise StreamLost(self.name, _GONE[errno.EIO])
        return None

    def notices(self) -> list[str]:
        """See `Stream`."""
        return []

    def close(self) -> None:
        """See `Stream`."""
        self._close()
