"""Where gdb's connection leads: through rvtrace to a target, to a trace alone, or past rvtrace."""

from __future__ import annotations

import contextlib

import gdb

Stub = tuple[str, int]  # host and port

_ours: dict[str, Stub | None] = {}
"""The places that rvtrace has told gdb to connect to, as gdb writes them, and what is behind; None: a trace alone."""
_last: Stub | None = None


def remember(place: str, stub: Stub | None) -> None:
    """gdb connects there, and through rvtrace to *stub*."""
    global _last
    _ours[place] = stub
    _last = stub or _last


def last() -> Stub | None:
    """The target that gdb was connected to last through rvtrace."""
    return _last


def connected_to() -> str | None:
    """Where gdb is connected now, as it writes it; None: nowhere."""
    connection = getattr(gdb.selected_inferior(), "connection", None)
    return None if connection is None else str(connection.details or connection.type)


def is_ours() -> bool:
    """Whether gdb is connected to rvtrace, as far as it knows: that it is over, it may not have noticed."""
    return connected_to() in _ours


def behind() -> Stub | None:
    """The target behind rvtrace, which gdb is connected to; None: a trace alone."""
    return _ours[connected_to() or ""]


def is_trace_alone(connection: object) -> bool:
    """Whether a connection of gdb's leads to a trace, without a target."""
    place = getattr(connection, "details", None)
    return place in _ours and _ours[place] is None


def forget_description() -> None:
    """gdb keeps the description of a target that it is not connected to any more, and takes no program of another XLEN
    then. One that the user has set stays.
    """
    with contextlib.suppress(gdb.error):
        if "read from the target" in gdb.execute("show tdesc filename", to_string=True):
            gdb.execute("unset tdesc filename", to_string=True)


def in_trace_alone() -> bool:
    """Whether gdb goes back in a trace, without a target."""
    return is_ours() and behind() is None
