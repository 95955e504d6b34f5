"""Memory that is not enough, and limits on it."""

import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from rvtrace_gdb.support.errors import RvtraceError

_RESOURCE: Any = import_module("resource") if os.name == "posix" else None
"""Loaded now: when memory is short, nothing more can be."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class OutOfMemory(RvtraceError):
    """What was asked for needs more memory than there is."""

    def __init__(self) -> None:
        limit = _limit()
        has = "" if limit is None else f" (this program may have {size(limit)}, see `ulimit -v`)"
        raise_it = "close other programs" if limit is None else "raise that limit"
        super().__init__(
            f"there is not enough memory for this{has}: {raise_it}, or trace less: a smaller buffer, or filters"
            " (`trace start`); what was captured is kept"
        )


def size(count: int) -> str:
    """A number of bytes, for people."""
    power = min(max(count.bit_length() - 1, 0) // 10, 3)
    unit = ("bytes", "KiB", "MiB", "GiB")[power]
    whole, rest = divmod(count, 1 << 10 * power)
    return f"{count / (1 << 10 * power):.1f} {unit}" if rest else f"{whole} {unit}"


def number_of(text: str) -> int | None:
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
    found = number_of(text) if text else default
    if found is None:
        raise BadLimit(name, text)
    return found


def _limit() -> int | None:
    """Of the address space, if there is one."""
    if _RESOURCE is None:
        return None
    soft = int(_RESOURCE.getrlimit(_RESOURCE.RLIMIT_AS)[0])
    return None if soft == _RESOURCE.RLIM_INFINITY else soft
