"""The operating system: what it refuses, the memory there is, and the start of a process.

A refusal is told to people: what it is, and with what. Memory may not be enough, and can be limited. The start of a
process is mostly loading modules.
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
    """What has gone wrong, and with which file, if the system says."""
    why = error.strerror or str(error)
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else error.filename
    where = "" if name is None else f"{name}: "
    return f"{where}{why}{_REMEDIES.get(error.errno or 0, '')}"


def is_refusal(error: OSError) -> bool:
    """Whether a user can do something about it: it is of a file with a name, or a limit of the machine. What else the
    system refuses was not to be asked.
    """
    return error.filename is not None or error.errno in _OF_THE_MACHINE


_RESOURCE: Any = import_module("resource") if os.name == "posix" else None
"""Loaded now: when memory is short, nothing more can be."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class OutOfMemory(RvtraceError):
    """What was asked for needs more memory than there is."""

    def __init__(self) -> None:
        limit = _limit()
        has = "" if limit is None else f" (this program may have {memory_size(limit)}, see `ulimit -v`)"
        raise_it = "close other programs" if limit is None else "raise that limit"
        super().__init__(
            f"there is not enough memory for this{has}: {raise_it}, or trace less: a smaller buffer, or filters"
            " (`trace start`); what was captured is kept"
        )


def memory_size(count: int) -> str:
    """A number of bytes, for people."""
    power = min(max(count.bit_length() - 1, 0) // 10, 3)
    unit = ("bytes", "KiB", "MiB", "GiB")[power]
    whole, rest = divmod(count, 1 << 10 * power)
    return f"{count / (1 << 10 * power):.1f} {unit}" if rest else f"{whole} {unit}"


def bytes_of(text: str) -> int | None:
    """The bytes that "512M" or "4G" stand for; None for what is no such number."""
    found = re.fullmatch(r"([0-9]{1,15})([KMGT]?)(?:i?B)?", text.strip(), re.ASCII | re.IGNORECASE)
    return None if found is None else int(found[1]) * _UNITS[found[2].upper()]


class BadLimit(RvtraceError):
    """A limit that is no number of bytes. *name*: of the environment variable."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"${name} is {text!r}, which is no number of bytes: 512M or 4G, say")
        self.name = name


def limit_of(environ: Mapping[str, str], name: str, default: int) -> int:
    """What the environment variable *name* says. Raises BadLimit."""
    text = environ.get(name, "")
    found = bytes_of(text) if text else default
    if found is None:
        raise BadLimit(name, text)
    return found


def _limit() -> int | None:
    """Of the address space, if there is one."""
    if _RESOURCE is None:
        return None
    soft = int(_RESOURCE.getrlimit(_RESOURCE.RLIMIT_AS)[0])
    return None if soft == _RESOURCE.RLIM_INFINITY else soft


@contextmanager
def starting() -> Iterator[None]:
    """What is loaded inside stays: Python's search for garbage, which would take a fifth of the time, leaves it alone.

    For programs at their beginning: of what has been made before, nothing is searched any more, either.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
