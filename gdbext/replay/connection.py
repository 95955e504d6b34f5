"""gdb's connection: where it leads, and what happens when the session ends that it leads through.

A connection leads through rvtrace to a target, to a trace alone, or past rvtrace.

The session process may end, killed or out of memory, and gdb's connection with it. When a connection ends, gdb lets go
of all frames, also of those that it is just finding. It goes on with them, and crashes, where something takes the end
for an error of the one frame: a Python unwinder that returns, or gdb itself, as it looks for tail calls (gdb 13 and 16,
dwarf2_tailcall_sniffer_first; with OS ABI "none" and any target that dies). So nobody here asks a target that is gone,
and the unwinder then ends the command, as Ctrl-C does, which nothing takes for an error of a frame. What gdb reads
without asking the unwinder first, another process answers as long as gdb deals with frames (the proxy's caretaker).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import gdb

from rvtrace_gdb.gdbext.client import TRACE_GOES_ON
from rvtrace_gdb.gdbext.tracer import tracer

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


_session: int | None = None
_told = False


def leads_through() -> None:
    """gdb's connection leads through the session that runs now."""
    global _session, _told
    _session, _told = tracer().session, False


def is_lost() -> bool:
    """Whether the session is gone that gdb's connection leads through."""
    return _session is not None and tracer().session != _session


@contextlib.contextmanager
def ending_command() -> Iterator[None]:
    """gdb finds frames: the command ends if the session is gone, or gdb's connection. Raises KeyboardInterrupt then."""
    if is_lost():
        _end_command()
    try:
        yield
    except (gdb.error, gdb.GdbError, ValueError):
        if is_lost() or not gdb.selected_inferior().pid:
            _end_command()
        raise
    if is_lost():
        _end_command()


def _end_command() -> None:
    tell()
    raise KeyboardInterrupt


def tell() -> None:
    """What happened is printed, once."""
    global _told
    if not _told:
        _told = True
        connected = "gdb is not connected any more, `trace connect` connects it again"
        print(f"{tracer().end_of_session()}: {connected}{TRACE_GOES_ON}")


def let_go() -> None:
    """gdb's connection is ended, as it leads nowhere. Not while gdb finds frames."""
    global _session
    tell()
    _session = None
    if getattr(gdb.selected_inferior(), "connection", None) is not None:
        for _ in range(2):  # gdb may notice only now that there is nobody at the other end
            with contextlib.suppress(gdb.error):
                gdb.execute("disconnect", to_string=True)
                break
