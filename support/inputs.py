"""Files that are read. What a pipe brings can be read once only, so it is remembered, and read again from there.

So `--parameters <(jq ... settings.json)` is like a file, however often and wherever it is read. A pipe is read no
further than somebody has asked for: what is shown as it arrives still is.
"""

import errno
import io
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

_PIECE = 1 << 16


class _Pipe:
    """A pipe, and what it has brought up to now."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.data = bytearray()

    def reach(self, size: int | None) -> None:
        """Read until there are *size* bytes, or to the end. None: to the end."""
        while not self._file.closed and (size is None or len(self.data) < size):
            piece = self._file.read(_PIECE)
            self.data += piece
            if not piece:
                self._file.close()



class _PipeReader(io.RawIOBase):
    """One who reads a pipe, from its beginning."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe, self._at = pipe, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            self._pipe.reach(None)
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._pipe.data)}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer)).cast("B")
        if self._at >= len(self._pipe.data):
            self._pipe.reach(self._at + 1)
        piece = bytes(self._pipe.data[self._at : self._at + len(view)])
        view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


_stand_ins: dict[str, str] = {}


def use_stand_ins(files: Mapping[str, str], before: Mapping[str, str]) -> Mapping[str, str]:
    """Have other files stand for some, by their paths, where `stand_in` is asked: sources that came with a trace. Those
    of *before* do so no more. Returns *files*.
    """
    for path, there in before.items():
        if _stand_ins.get(path) == there:
            del _stand_ins[path]
    _stand_ins.update(files)
    return files


def stand_in(path: str) -> str:
    """Return the file that is to be read for a path."""
    return _stand_ins.get(path, path)


_supplied: Mapping[str, bytes] | None = None


@contextmanager
def supplied_files(files: Mapping[str, bytes]) -> Iterator[None]:
    """Read these files, by their paths, and no other: they are those of the machine that has sent them. It holds for
    all threads of this process.
    """
    global _supplied
    before, _supplied = _supplied, files
    try:
        yield
    finally:
        _supplied = before


def is_input(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a file or a pipe with a name."""
    return os.fspath(path) in _supplied if _supplied is not None else os.path.isfile(path) or is_pipe(path)


def size_of_file(path: str | os.PathLike[str]) -> int | None:
    """Return how many bytes an ordinary file has; None for what is none. Raises OSError, ValueError."""
    if _supplied is not None:
        return len(_supplied[os.fspath(path)]) if os.fspath(path) in _supplied else None
    found = os.stat(path)
    return found.st_size if stat.S_ISREG(found.st_mode) else None


_pipes: dict[tuple[int, int], _Pipe] = {}


def _identity(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Return what tells a pipe from others; None for what is not a pipe, or is not there."""
    if _supplied is not None:
        return None
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISFIFO(found.st_mode) else None


def is_pipe(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is that of a pipe."""
    return _identity(path) is not None


def open_input(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file to read it; a pipe is read from its beginning each time. Raises OSError, ValueError."""
    if _supplied is not None:
        return io.BufferedReader(cast(io.RawIOBase, io.BytesIO(_supplied_file(path))))
    identity = _identity(path)
    if identity is None:
        return open(path, "rb")
    if identity not in _pipes:
        _pipes[identity] = _Pipe(open(path, "rb", buffering=0))  # noqa: SIM115 - until it has been read
    return io.BufferedReader(_PipeReader(_pipes[identity]))


def read_input(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file, or of a pipe, each time all of it. Raises OSError, ValueError."""
    if _supplied is not None:
        return _supplied_file(path)
    if not is_pipe(path):
        return Path(path).read_bytes()
    with open_input(path) as file:
        return file.read()


def _supplied_file(path: str | os.PathLike[str]) -> bytes:
    name = os.fspath(path)
    if _supplied is None or name not in _supplied:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return _supplied[name]


def forget(path: str | os.PathLike[str]) -> None:
    """Read a pipe of this name anew: what somebody now writes into it is another content."""
    identity = _identity(path)
    if identity is not None:
        _pipes.pop(identity, None)


def pipe_refused(path: str | os.PathLike[str], who: str) -> str:
    """Return the line for a pipe that *who*, another program, cannot read."""
    return f"{path}: is a pipe, which {who} cannot read: give a file"
