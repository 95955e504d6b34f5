"""gdb's connection: what it leads to, and what happens when the session that it passes through ends.

A connection leads through rvtrace to a target, through rvtrace to a trace without a target, or does not pass through
rvtrace.

The session process may end, killed or out of memory, and gdb's connection with it. When a connection ends, gdb discards
all frames, including those that it is computing. It keeps using them, and crashes, where something treats the end as an
error of the one frame: a Python unwinder that returns, or gdb itself as it looks for tail calls (gdb 13 and 16,
dwarf2_tailcall_sniffer_first; with OS ABI "none" and any target that dies). Therefore nothing here reads from a target
that is gone, and the unwinder then ends the command as Ctrl-C does, which is not treated as an error of a frame. What
gdb reads before it calls the unwinder is answered by another process while gdb computes frames (the proxy's caretaker).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import gdb

from rvtrace_gdb.gdbext.client import TRACE_GOES_ON
from rvtrace_gdb.gdbext.tracer import tracer

Stub = tuple[str, int]  # host and port

_targets: dict[str, Stub | None] = {}
"""The addresses at which rvtrace let gdb connect, as gdb writes them, each with its target; None: a trace alone."""
_last_target: Stub | None = None


def remember(place: str, stub: Stub | None) -> None:
    """Note that gdb connects at *place*, and through rvtrace to *stub*; None: to a trace alone."""
    global _last_target
    _targets[place] = stub
    _last_target = stub or _last_target


def last_target() -> Stub | None:
    """Return the target that gdb was last connected to through rvtrace; None if there was none."""
    return _last_target


def connected_to() -> str | None:
    """Return the address that gdb is connected to now, as gdb writes it; None if it is not connected."""
    connection = getattr(gdb.selected_inferior(), "connection", None)
    return None if connection is None else str(connection.details or connection.type)


def is_ours() -> bool:
    """Whether gdb is connected to rvtrace. gdb may not have noticed yet that the connection has ended."""
    return connected_to() in _targets


def target() -> Stub | None:
    """Return the target that gdb is connected to through rvtrace; None for a trace alone."""
    return _targets[connected_to() or ""]


def leads_to_trace_alone(connection: object) -> bool:
    """Whether a gdb.TargetConnection leads to a trace, without a target."""
    place = getattr(connection, "details", None)
    return place in _targets and _targets[place] is None


def forget_description() -> None:
    """Let gdb forget the target description of a connection that has ended, unless the user has set one.

    gdb keeps that description, and would then refuse a program of another XLEN.
    """
    with contextlib.suppress(gdb.error):
        if "read from the target" in gdb.execute("show tdesc filename", to_string=True):
            gdb.execute("unset tdesc filename", to_string=True)


def is_without_target() -> bool:
    """Whether gdb is connected to a trace, without a target."""
    return is_ours() and target() is None


_attached_session: int | None = None
_is_reported = False


def attach_session() -> None:
    """Note that gdb's connection passes through the session that runs now."""
    global _attached_session, _is_reported
    _attached_session, _is_reported = tracer().session, False


def is_session_lost() -> bool:
    """Whether the session that gdb's connection passes through has ended."""
    return _attached_session is not None and tracer().session != _attached_session


@contextlib.contextmanager
def command_ends_with_session() -> Iterator[None]:
    """A context for code that gdb calls while it computes frames.

    Raises KeyboardInterrupt, which ends gdb's command, if the session or gdb's connection is lost.
    """
    if is_session_lost():
        _end_command()
    try:
        yield
    except (gdb.error, gdb.GdbError, ValueError):
        if is_session_lost() or not gdb.selected_inferior().pid:
            _end_command()
        raise
    if is_session_lost():
        _end_command()


def _end_command() -> None:
    report_end()
    raise KeyboardInterrupt


def report_end() -> None:
    """Print, once, that the session has ended and gdb with it is disconnected."""
    global _is_reported
    if not _is_reported:
        _is_reported = True
        connected = "gdb is no longer connected, `trace connect` connects it again"
        print(f"{tracer().end_of_session()}: {connected}{TRACE_GOES_ON}")


def disconnect() -> None:
    """End gdb's connection, whose session has ended. Must not be called while gdb computes frames."""
    global _attached_session
    report_end()
    _attached_session = None
    if getattr(gdb.selected_inferior(), "connection", None) is not None:
        for _ in range(2):  # only now may gdb notice that the other end is closed
            with contextlib.suppress(gdb.error):
                gdb.execute("disconnect", to_string=True)
                break
