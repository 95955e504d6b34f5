"""Files that are written whole or not at all, and folders to which nobody else can write.

A written file stays readable for the same people as before. Private folders are for code that is loaded, and for
sockets.
"""

import errno
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import BinaryIO

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import is_file_name

_UNMAPPED = 65534  # owners that a container does not know are shown as this one


class NotPrivate(RvtraceError):
    """*folder* is accessible to others; *problem*: why."""

    def __init__(self, folder: Path, problem: str) -> None:
        self.folder, self.problem = folder, problem
        super().__init__(f"{folder}: {problem}")


def private_folder(folder: Path) -> Path:
    """Return *folder*, created if it does not exist, for its owner alone. Raises NotPrivate, OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(folder)
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & 0o022:
        os.chmod(folder, stat.S_IMODE(found.st_mode) & ~0o022)
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Raise NotPrivate if another user can put something into *folder*, or another folder in its place. Raises OSError.

    Root always can. In a folder with the sticky bit, such as /tmp, files of other owners stay where they are.
    """
    real = Path(os.path.realpath(folder))
    for place in (real, *real.parents):
        found = os.stat(place)
        if found.st_uid not in ((0, os.geteuid()) if place == real else (0, os.geteuid(), _UNMAPPED)):
            raise NotPrivate(folder, f"{place} belongs to somebody else (user {found.st_uid})")
        if found.st_mode & stat.S_IWOTH and (place == real or not found.st_mode & stat.S_ISVTX):
            raise NotPrivate(folder, f"everybody can write to {place}")


def is_ours(file: Path) -> bool:
    """Return whether *file* is a plain file that no other user can have written."""
    try:
        found = os.lstat(file)
    except OSError:
        return False
    ours = found.st_uid in (0, os.geteuid()) and not found.st_mode & stat.S_IWOTH
    return ours and stat.S_ISREG(found.st_mode)


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for data that can be recreated (XDG Base Directory Specification).

    It may not exist, nor be private.
    """
    named, home = environ.get("XDG_CACHE_HOME", ""), environ.get("HOME", "")
    if named.startswith("/"):
        return Path(named, "rvtrace")
    if home.startswith("/"):
        return Path(home, ".cache", "rvtrace")
    return Path(tempfile.gettempdir(), f"rvtrace-{os.geteuid()}")


class OutputError(RvtraceError):
    """A file that cannot be written. *path*: its name; *problem*, *why*: the system's reason."""

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        self.why = error.strerror or str(error)
        self.problem = f"cannot be written: {self.why}"
        super().__init__(f"{path}: {self.problem}")


class _OutputFile(FileIO):
    """A file that raises OutputError if it cannot be written, which tells that from other errors."""

    def __init__(self, file: str | Path, mode: str, path: str, opener: Callable[[str, int], int] | None = None) -> None:
        self._path = path
        super().__init__(file, mode, opener=opener)

    def write(self, data, /):  # type: ignore[no-untyped-def]
        with _output_errors(self._path):
            return super().write(data)

    def close(self) -> None:
        with _output_errors(self._path):
            super().close()


@contextmanager
def _output_errors(path: str) -> Iterator[None]:
    """Raise OutputError, with the name of the file *path*, for what the system refuses in this context."""
    try:
        yield
    except OSError as error:
        raise OutputError(path, error) from None


@contextmanager
def atomic_output(path: str, like: str | None = None) -> Iterator[BinaryIO]:
    """Yield a file to write to, which becomes *path* when the context ends without an exception; `-` is standard
    output.

    Pipes and devices are written to directly, and never replaced; for a symbolic link, its target is. An existing file
    keeps its mode and, if possible, its owner and group; a new one has those of *like*, if that exists, else what the
    umask says. Raises OutputError for that file alone: any other exception is passed on.
    """
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not is_file_name(path):
        raise OutputError(path, OSError(errno.EINVAL, "that is not the name of a file"))
    if os.path.exists(path) and not os.path.isfile(path):
        with _output_errors(path):
            device = BufferedWriter(_OutputFile(path, "w", path))
        with device:
            yield device
    else:
        yield from _through_temporary(path, like)


def protect_inputs(path: str | None, inputs: Iterable[str | None]) -> None:
    """Protect files that are read: *path* (None for no file) must not be one of *inputs*. Raises OutputError."""
    for name in inputs:
        with suppress(OSError, ValueError):
            if path and name and os.path.isfile(path) and os.path.samefile(path, name):
                raise OutputError(path, OSError(None, "it is one of the files that are read"))


def write_file(path: str, content: bytes) -> None:
    """Write a whole file, as `atomic_output` does. Raises OutputError."""
    with atomic_output(path) as file:
        file.write(content)


def opener_beside(path: str) -> Callable[[str, int], int]:
    """Return an `opener` for a new file with the content of *path*: only those who can read *path* can read it."""
    before = _file_status(path)
    return _by_umask if before is None else lambda name, flags: _opened(name, flags, before)


def _through_temporary(path: str, like: str | None) -> Iterator[BinaryIO]:
    real = Path(os.path.realpath(path))
    temporary = real.with_name(f".{real.name[:32]}.{os.getpid()}.tmp")
    before = _file_status(real) or (_file_status(like) if like else None)
    try:
        with _output_errors(path):
            file = BufferedWriter(_OutputFile(temporary, "x", path, _by_umask if before is None else _private))
        with file:
            yield file
            file.flush()
            with _output_errors(path):
                if before is not None:
                    _keep_access(file.fileno(), before)
                os.fsync(file.fileno())
        with _output_errors(path):
            os.replace(temporary, real)
    finally:
        with _output_errors(path):
            temporary.unlink(missing_ok=True)


def _file_status(path: str | Path) -> os.stat_result | None:
    """Return the status of a file, None if it does not exist."""
    with suppress(OSError, ValueError):
        found = os.stat(path)
        return found if stat.S_ISREG(found.st_mode) else None
    return None


def _by_umask(name: str, flags: int) -> int:
    return os.open(name, flags, 0o666)


def _private(name: str, flags: int) -> int:
    """Create a file that only its owner can read: its final access rights are set when it is complete."""
    return os.open(name, flags, 0o600)


def _opened(name: str, flags: int, before: os.stat_result) -> int:
    file = _private(name, flags)
    _keep_access(file, before)
    return file


def _keep_access(file: int, before: os.stat_result) -> None:
    """Give a file the owner, group and mode it had. If the group cannot be kept, it gets no more
    rights than everybody.
    """
    mode = stat.S_IMODE(before.st_mode)
    for owner in (before.st_uid, -1):  # only root gives files away; a group, who is in it
        with suppress(OSError):
            os.fchown(file, owner, before.st_gid)
            break
    now = os.fstat(file)
    if now.st_gid != before.st_gid:
        mode &= ~0o070 | (mode & 0o007) << 3
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        mode &= 0o777
    os.fchmod(file, mode)
