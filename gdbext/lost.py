"""The session process ends, killed or out of memory, and gdb's connection with it, which leads through that process.

When a connection ends, gdb lets go of all frames, also of those that it is just finding. It goes on with them, and
crashes, where something takes the end for an error of the one frame: a Python unwinder that returns, or gdb itself, as
it looks for tail calls (gdb 13 and 16, dwarf2_tailcall_sniffer_first; with OS ABI "none" and any target that dies).
So nobody here asks a target that is gone, and the unwinder ends the command then, as Ctrl-C does: that nothing takes
for an error of a frame. What gdb reads without asking the unwinder before, another process answers as long as gdb is
about frames (session/proxy/caretaker.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import gdb

from rvtrace_gdb.gdbext.client import TRACE_GOES_ON
from rvtrace_gdb.gdbext.tracer import tracer

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
