"""The bytes of AUX buffers. They stay where they are until they are needed: in the file, or, of what comes through a
pipe, in a temporary file.
"""

import tempfile
import weakref
from collections.abc import Callable
from contextlib import closing
from typing import BinaryIO, NamedTuple, Protocol

from rvtrace_gdb.session.perf_data.file import PerfFile

_PIECE = 1 << 20


class AuxStore(Protocol):
    """Where bytes are."""

    def read(self, offset: int, size: int) -> bytes:
        """Return *size* bytes. Raises OSError."""
        ...


class AuxBytes(NamedTuple):
    """*size* bytes of a store."""

    store: AuxStore
    offset: int
    size: int

    def part(self, begin: int, end: int) -> "AuxBytes":
        """Return bytes *begin* to *end* - 1, as far as there are so many."""
        begin, end = min(max(begin, 0), self.size), min(max(end, 0), self.size)
        return AuxBytes(self.store, self.offset + begin, max(end - begin, 0))

    def read(self) -> bytes:
        """Return the bytes. Raises OSError."""
        return self.store.read(self.offset, self.size)


class FileStore:
    """A file that can be opened again: *reopen*."""

    def __init__(self, reopen: Callable[[], BinaryIO]) -> None:
        self._reopen = reopen

    def read(self, offset: int, size: int) -> bytes:
        """See `AuxStore`."""
        with closing(self._reopen()) as file:
            file.seek(offset)
            return file.read(size)


class OpenStore:
    """A file that somebody else has open."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, offset: int, size: int) -> bytes:
        """See `AuxStore`."""
        here = self._file.tell()
        self._file.seek(offset)
        try:
            return self._file.read(size)
        finally:
            self._file.seek(here)


class SpoolStore(OpenStore):
    """A temporary file."""

    def __init__(self) -> None:
        spool = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with this object
        super().__init__(spool)
        self._spool = spool
        weakref.finalize(self, spool.close)

    def take(self, file: PerfFile, size: int) -> AuxBytes:
        """Take the next bytes of a pipe, as many as *size*, or fewer at its end. Raises OSError."""
        begin = self._spool.seek(0, 2)
        while (left := begin + size - self._spool.tell()) and (piece := file.read(min(left, _PIECE))):
            self._spool.write(piece)
        return AuxBytes(self, begin, self._spool.tell() - begin)
