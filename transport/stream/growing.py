"""A file that grows, from its beginning on, as `tail -F` follows one: also when it is cut short or replaced."""

import os
import time
from pathlib import Path
from typing import BinaryIO

from rvtrace_gdb.transport.stream.interface import PIECE, NoStream, StreamLost

_PAUSE = 0.02  # seconds between two looks


class Growing:
    """The bytes of *path* and those that are added; it may appear later. Raises NoStream."""

    kind = "file"
    endless = True
    lasting = True

    def __init__(self, path: str) -> None:
        self.name = path
        self._file: BinaryIO | None = None
        self._notices: list[str] = []
        if not self._open():
            self._notices.append(f"{path}: is not there yet: waiting for it")

    def read(self, wait: float) -> bytes | None:
        """See `Stream`."""
        end = time.monotonic() + wait
        while not (data := self._now()):
            left = end - time.monotonic()
            if left <= 0:
                return b""
            time.sleep(min(_PAUSE, left))
        return data

    def notices(self) -> list[str]:
        """See `Stream`."""
        found, self._notices = self._notices, []
        return found

    def close(self) -> None:
        """See `Stream`."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> bool:
        try:
            self._file = open(self.name, "rb", buffering=0)  # noqa: SIM115 - until `close`
        except FileNotFoundError:
            return False
        except OSError as error:
            raise NoStream(self.name, f"cannot be read: {error.strerror}") from None
        return True

    def _now(self) -> bytes:
        """What there is. At the end of the file: is it still the same, and as long as it was?"""
        try:
            if self._file is None:
                return self._now() if self._open() else b""
            data = self._file.read(PIECE)
            return data or self._after_the_end(self._file)
        except OSError as error:
            raise StreamLost(self.name, f"cannot be read: {error.strerror}") from None

    def _after_the_end(self, file: BinaryIO) -> bytes:
        there = os.fstat(file.fileno())
        if there.st_size < file.tell():
            self._notices.append(f"{self.name}: was cut short: going on at its beginning")
            file.seek(0)
            return file.read(PIECE)
        try:
            named = Path(self.name).stat()
        except FileNotFoundError:
            return b""  # moved away: another one will come in its place, and until then this one may grow
        if (named.st_dev, named.st_ino) != (there.st_dev, there.st_ino):
            rest = file.read(PIECE)  # came while it was looked at
            if rest:
                return rest
            self._notices.append(f"{self.name}: was replaced by another file: going on with that")
            file.close()
            self._file = None
        return b""
