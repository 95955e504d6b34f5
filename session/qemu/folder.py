"""Where a recorder writes: a folder of its own in memory, which goes when `rvtrace qemu` ends.

One that was killed cannot take its folder away. It held a lock on a file in it, so the next one can tell, and does.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from rvtrace_gdb.transport.qemu.errors import QemuError

MEMORY = Path("/dev/shm")  # a file system in memory
_PREFIX = "rvtrace-qemu-"
_LOCK = "lock"
_BESIDE = 1 << 22
"""Bytes that code, log and sockets need beside the rings, at least."""


def made(resources: ExitStack, ring_bytes: int, harts: int) -> Path:
    """A new one with room for so many rings, until *resources* are closed. Raises QemuError."""
    base = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    remove_left(base)
    needed = ring_bytes * harts + _BESIDE
    free = _free(base)
    if free < needed:
        text = f"{base}: {free >> 10} KiB are free, the recorder needs {needed >> 10}: make the rings smaller (--ring)"
        raise QemuError(f"{text}, or room there")
    try:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX, dir=base)))
        resources.callback(os.close, _locked(folder / _LOCK))
    except OSError as error:
        raise QemuError(f"{base}: no folder for the recorder can be made: {error.strerror}") from None
    return folder


def remove_left(base: Path) -> None:
    """Removes what is there of our runs that were killed; others may have folders of such names, too."""
    for lock in base.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):
            if os.lstat(lock.parent).st_uid != os.geteuid():
                continue
            file = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: it is in use
                shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(file)


def _free(base: Path) -> int:
    try:
        found = os.statvfs(base)
    except OSError as error:
        raise QemuError(f"{base}: {error.strerror}") from None
    return found.f_bavail * found.f_frsize


def _locked(path: Path) -> int:
    """A file that was never there without its lock."""
    fresh = path.with_name(f"{path.name}.new")
    file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    fresh.rename(path)
    return file
