"""The bytes of a tandem-trace port as they arrive in a file that somebody appends to."""

import os
from io import FileIO
from pathlib import Path

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress
from rvtrace_gdb.support.text import why_not

_PIECE = 1 << 20


class PortFileError(RvtraceError):
    """The file or socket of a port cannot be read, or is not what it was. *path*: which one."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}")


class PortFile:
    """The file at *path*. `data` is all that was read of it; what has been read stays, whatever becomes of the file.

    Raises PortFileError.
    """

    wrapped = False

    def __init__(self, path: str) -> None:
        self.path = path
        self.data = bytearray()
        try:
            self._file = FileIO(path, "r")
        except (OSError, ValueError) as error:
            raise PortFileError(path, f"cannot be read: {why_not(error)}; is the port's other end running?") from None
        if not Path(path).is_file():
            self._file.close()
            raise PortFileError(path, "is no file: the trace has to arrive in one")
        self._identity = self._inode(os.fstat(self._file.fileno()))

    def close(self) -> None:
        self._file.close()

    @property
    def unread(self) -> int:
        """Bytes that have arrived since. Raises PortFileError."""
        return self._checked_size() - len(self.data)

    def read(self, progress: Progress) -> None:
        """All that has arrived. Raises PortFileError, and what *progress* raises."""
        end = self._checked_size()
        while len(self.data) < end:
            progress("reading the trace", len(self.data), end)
            try:
                piece = self._file.read(min(_PIECE, end - len(self.data)))
            except OSError as error:
                raise PortFileError(self.path, f"cannot be read: {error.strerror}") from None
            if not piece:
                raise self._shorter(len(self.data))
            self.data += piece

    def _checked_size(self) -> int:
        """How long the file is, which is still the one that was opened, and no shorter than what was read of it."""
        try:
            size = os.fstat(self._file.fileno()).st_size
            there = os.stat(self.path)
        except OSError as error:
            raise PortFileError(self.path, f"is gone: {error.strerror}; {self._kept()}") from None
        if self._inode(there) != self._identity:
            raise PortFileError(self.path, f"is another file than before; {self._kept()}")
        if size < len(self.data):
            raise self._shorter(size)
        return size

    def _shorter(self, size: int) -> PortFileError:
        return PortFileError(self.path, f"has only {size} bytes left; {self._kept()}")

    def _kept(self) -> str:
        return f"the {len(self.data)} bytes read before are kept, `trace start` begins with the new ones"

    @staticmethod
    def _inode(found: os.stat_result) -> tuple[int, int]:
        return found.st_dev, found.st_ino
