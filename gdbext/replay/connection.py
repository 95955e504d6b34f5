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

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.client import TRACE_GOES_ON
from rvtrace_gdb.gdbext.tracer import tracer

Stub = tuple[str, int]  # host and port


class ProxyConnection:
    """The connections that rvtrace let gdb make, and the session that the current one passes through."""

    def __init__(self) -> None:
        self._targets: dict[str, Stub | None] = {}  # by address, as gdb writes it; None: a trace alone
        self._last_target: Stub | None = None
        self._session: int | None = None
        self._is_reported = False

    def remember(self, place: str, stub: Stub | None) -> None:
        """Note that gdb connects at *place*, and through rvtrace to *stub*; None stands for a trace alone."""
        self._targets[place] = stub
        tracer().ports[place] = None if stub is None else stub[1]
        self._last_target = stub or self._last_target

    @property
    def last_target(self) -> Stub | None:
        """The target that gdb was last connected to through rvtrace; None if there was none."""
        return self._last_target

    def connected_to(self) -> str | None:
        """Return the address that gdb is connected to now, as gdb writes it; None if it is not connected."""
        current = getattr(gdb.selected_inferior(), "connection", None)
        return None if current is None else str(current.details or current.type)

    def is_ours(self) -> bool:
        """Whether gdb is connected to rvtrace. gdb may not have noticed yet that the connection has ended."""
        return self.connected_to() in self._targets

    def other_inferior(self) -> int | None:
        """Return the number of another inferior than the selected one that is connected through rvtrace; None: none."""
        for inferior in gdb.inferiors():
            details = getattr(getattr(inferior, "connection", None), "details", None)
            if details in self._targets and inferior is not gdb.selected_inferior():
                return int(inferior.num)
        return None

    def target(self) -> Stub | None:
        """Return the target that gdb is connected to through rvtrace; None for a trace alone."""
        return self._targets[self.connected_to() or ""]

    def is_without_target(self) -> bool:
        """Whether gdb is connected to a trace, without a target."""
        return self.is_ours() and self.target() is None

    def leads_to_trace_alone(self, removed: object) -> bool:
        """Whether a gdb.TargetConnection leads to a trace, without a target."""
        place = getattr(removed, "details", None)
        return place in self._targets and self._targets[place] is None

    def forget_description(self) -> None:
        """Let gdb forget the target description of a connection that has ended, unless the user has set one.

        gdb keeps that description, and would then refuse a program of another XLEN.
        """
        with contextlib.suppress(gdb.error):
            if "read from the target" in neutral.printed("show tdesc filename"):
                gdb.execute("unset tdesc filename", to_string=True)

    def attach_session(self) -> None:
        """Note that gdb's connection passes through the session that runs now."""
        self._session, self._is_reported = tracer().session, False

    def is_session_lost(self) -> bool:
        """Whether the session that gdb's connection passes through has ended."""
        return self._session is not None and tracer().session != self._session

    @contextlib.contextmanager
    def command_ends_with_session(self) -> Iterator[None]:
        """A context for code that gdb calls while it computes frames.

        Raises KeyboardInterrupt, which ends gdb's command, if the session or gdb's connection is lost.
        """
        if self.is_session_lost():
            self._end_command()
        try:
            yield
        except (gdb.error, gdb.GdbError, ValueError):
            if self.is_session_lost() or not gdb.selected_inferior().pid:
                self._end_command()
            raise
        if self.is_session_lost():
            self._end_command()

    def _end_command(self) -> None:
        self.report_end()
        raise KeyboardInterrupt

    def report_end(self) -> None:
        """Print, once, that the session has ended and gdb with it is disconnected."""
        if not self._is_reported:
            self._is_reported = True
            connected = "gdb is no longer connected, `trace connect` connects it again"
            print(f"{tracer().end_of_session()}: {connected}{TRACE_GOES_ON}")

    def disconnect(self) -> None:
        """End gdb's connection, whose session has ended. Must not be called while gdb computes frames."""
        self.report_end()
        self._session = None
        if self.connected_to() is not None:
            for _ in range(2):  # only now may gdb notice that the other end is closed
                with contextlib.suppress(gdb.error):
                    gdb.execute("disconnect", to_string=True)
                    break


connection = ProxyConnection()
