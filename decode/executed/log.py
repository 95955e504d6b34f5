"""The file an execution log is in: plain or gzip, a file or standard input, read in pieces of constant size."""

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from types import TracebackType
from typing import BinaryIO, Self

from rvtrace_gdb.support.errors import RvtraceError

HEAD = 64
"""How many lines are looked at to recognize a format."""

_LONGEST_HEAD_LINE = 1 << 12  # bytes; a file without line ends is no log
_BUFFER = 1 << 18  # bytes
_GZIP = b"\x1f\x8b"


class LogError(RvtraceError):
    """An execution log cannot be used. *file*: its name; *line*: the number of the line at fault, if it is one."""

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        self.file, self.line, self.problem = file, line, problem
        super().__init__(f"{file}: {problem}" if line is None else f"{file}, line {line}: {problem}")


class Log:
    """`with Log(path) as log:` - the lines of the file *path*, or of standard input for `-`.

    gzip is recognized by its first bytes. Everything that reads raises LogError when the file cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == "-" else path
        self.line = 0
        """How many lines came before the batch that was given out last."""
        self._head: list[bytes] = []
        self._opened = ExitStack()
        try:
            self._raw = self._open(path)
            self.size = _size(self._raw)
            compressed = self._raw.peek(2)[:2] == _GZIP
        except OSError as error:
            raise LogError(self.name, None, f"cannot be read: {error.strerror}") from None
        self._lines: BinaryIO = self._raw
        if compressed:
            self._lines = io.BufferedReader(gzip.GzipFile(fileobj=self._raw), _BUFFER)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def _open(self, path: str) -> io.BufferedReader:
        if path != "-":
            return io.BufferedReader(self._opened.enter_context(open(path, "rb", buffering=0)), _BUFFER)
        assert isinstance(sys.stdin.buffer, io.BufferedReader)
        return sys.stdin.buffer

    @property
    def done(self) -> int:
        """Bytes of the file that were read, of `size`; only where that is known."""
        return self._raw.tell()

    def head(self) -> list[bytes]:
        """The first lines; `batches` gives them out again. To be called before it."""
        if not self._head:
            short_lines = iter(lambda: self._lines.readline(_LONGEST_HEAD_LINE), b"")
            self._head = self._read(lambda: list(islice(short_lines, HEAD)))
        return self._head

    def batches(self) -> Iterator[list[bytes]]:
        """All lines, with their ends, in batches of about a quarter of a MiB."""
        batch = self.head()
        while batch:
            yield batch
            self.line += len(batch)
            batch = self._read(lambda: self._lines.readlines(_BUFFER))

    def _read(self, lines: Callable[[], list[bytes]]) -> list[bytes]:
        try:
            return lines()
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise LogError(self.name, None, f"is a damaged gzip file ({error})") from None
        except OSError as error:
            raise LogError(self.name, None, f"cannot be read: {error.strerror}") from None

    def error(self, index: int, problem: str) -> LogError:
        """What to raise for the line at *index* of the batch that was given out last."""
        return LogError(self.name, self.line + index + 1, problem)


def _size(file: BinaryIO) -> int | None:
    """The size of a file on disk; None for a pipe."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None
