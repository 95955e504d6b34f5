"""The operating system: what it refuses, how much memory there is, and the start of a process.

A refusal becomes a message: what was refused, and with which file. Memory may not be enough, and can be limited. The
start of a process mostly consists of imports.
"""

import errno
import gc
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from rvtrace_gdb.support.errors import RvtraceError

_REMEDIES = {
    errno.EMFILE: "; `ulimit -n` says how many one process may have open",
    errno.ENFILE: "; that is the limit of the whole machine",
    errno.ENOMEM: "; less at once needs less memory",
    errno.EAGAIN: "; `ulimit -u` says how many processes there may be",
}
_OF_THE_MACHINE = {*_REMEDIES, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS}


def refusal(error: OSError) -> str:
    """Return what went wrong, and with which file, if the system names one."""
    why = error.strerror or str(error)
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else error.filename
    where = "" if name is None else f"{name}: "
    return f"{where}{why}{_REMEDIES.get(error.errno or 0, '')}"


def is_refusal(error: OSError) -> bool:
    """Return whether a user can do something about an error: it concerns a named file, or a limit of the machine.

    Any other refusal of the system is a bug in the caller.
    """
    return error.filename is not None or error.errno in _OF_THE_MACHINE


_RESOURCE: Any = import_module("resource") if os.name == "posix" else None
"""Imported in advance: when memory is short, imports fail."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class OutOfMemory(RvtraceError):
    """The request needs more memory than there is."""

    def __init__(self) -> None:
        limit = _limit()
        has = "" if limit is None else f" (this program may have {memory_size(limit)}, see `ulimit -v`)"
        raise_it = "close other programs" if limit is None else "raise that limit"
        super().__init__(
            f"there is not enough memory for this{has}: {raise_it}, or trace less: a smaller buffer, or filters"
            " (`trace start`); what was captured is kept"
        )


def memory_size(count: int) -> str:
    """Return the text for a number of bytes."""
    power = min(max(count.bit_length() - 1, 0) // 10, 3)
    unit = ("bytes", "KiB", "MiB", "GiB")[power]
    whole, rest = divmod(count, 1 << 10 * power)
    return f"{count / (1 << 10 * power):.1f} {unit}" if rest else f"{whole} {unit}"


def bytes_of(text: str) -> int | None:
    """Return the number of bytes that "512M" or "4G" stand for; None for any other text."""
    found = re.fullmatch(r"([0-9]{1,15})([KMGT]?)(?:i?B)?", text.strip(), re.ASCII | re.IGNORECASE)
    return None if found is None else int(found[1]) * _UNITS[found[2].upper()]


class BadLimit(RvtraceError):
    """A limit that is not a number of bytes. *name*: of the environment variable."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"${name} is {text!r}, which is not a number of bytes: 512M or 4G, say")
        self.name = name


def limit_of(environ: Mapping[str, str], name: str, default: int) -> int:
    """Return the number of bytes in the environment variable *name*. Raises BadLimit."""
    text = environ.get(name, "")
    found = bytes_of(text) if text else default
    if found is None:
        raise BadLimit(name, text)
    return found


def _limit() -> int | None:
    """Return the limit of the address space, None if there is none."""
    if _RESOURCE is None:
        return None
    soft = int(_RESOURCE.getrlimit(_RESOURCE.RLIMIT_AS)[0])
    return None if soft == _RESOURCE.RLIM_INFINITY else soft


@contextmanager
def frozen_startup() -> Iterator[None]:
    """Exclude what is imported in this context from garbage collection, which would take a fifth of the time.

    For programs at their beginning: what was created before is also excluded.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
