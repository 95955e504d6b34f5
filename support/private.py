"""Folders in which nobody else can put anything: for code that is loaded, and for sockets."""

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rvtrace_gdb.support.errors import RvtraceError

_UNMAPPED = 65534  # owners that a container does not know are shown as this one


class NotPrivate(RvtraceError):
    """*folder* is not only ours; *problem*: why."""

    def __init__(self, folder: Path, problem: str) -> None:
        self.folder, self.problem = folder, problem
        super().__init__(f"{folder}: {problem}")


def made(folder: Path) -> Path:
    """*folder*, made if it is not there, for its owner alone. Raises NotPrivate, OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(folder)
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & 0o022:
        os.chmod(folder, stat.S_IMODE(found.st_mode) & ~0o022)
    check(folder)
    return folder


def check(folder: Path) -> None:
    """Raises NotPrivate where somebody else can put something into *folder*, or another folder in its place; OSError.

    Root can anyway. In a folder with the sticky bit, as /tmp is, what others own stays where it is.
    """
    real = Path(os.path.realpath(folder))
    for place in (real, *real.parents):
        found = os.stat(place)
        if found.st_uid not in ((0, os.geteuid()) if place == real else (0, os.geteuid(), _UNMAPPED)):
            raise NotPrivate(folder, f"{place} belongs to somebody else (user {found.st_uid})")
        if found.st_mode & stat.S_IWOTH and (place == real or not found.st_mode & stat.S_ISVTX):
            raise NotPrivate(folder, f"everybody can write to {place}")


def is_ours(file: Path) -> bool:
    """Whether *file* is a plain file that nobody else can have written."""
    try:
        found = os.lstat(file)
    except OSError:
        return False
    ours = found.st_uid in (0, os.geteuid()) and not found.st_mode & stat.S_IWOTH
    return ours and stat.S_ISREG(found.st_mode)


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Where what can be made again is kept (XDG Base Directory Specification); it may not be there, nor be private."""
    named, home = environ.get("XDG_CACHE_HOME", ""), environ.get("HOME", "")
    if named.startswith("/"):
        return Path(named, "rvtrace")
    if home.startswith("/"):
        return Path(home, ".cache", "rvtrace")
    return Path(tempfile.gettempdir(), f"rvtrace-{os.geteuid()}")
