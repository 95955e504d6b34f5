"""The debugger that goes back in time with a session's trace, and what a session asks of it: whether it is in the past,
where, and how often it resumed the target.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import DebuggerWrites
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import InThePast
from rvtrace_gdb.session.formats.sinks import HartHistories
from rvtrace_gdb.session.selected_history import HistoryNumber

if TYPE_CHECKING:
    from rvtrace_gdb.session.proxy.backend import HartExtensionContext
    from rvtrace_gdb.session.proxy.writes.write_log import WriteLog

_T = TypeVar("_T")
_RETURN = "you are in the past, return to the present first (`trace live`)"
_DISCONNECT = (
    "gdb replays a trace without a target (`trace replay`): end that first (`disconnect`; `trace connect` connects"
    " gdb to a target)"
)
_GONE = "you are in the past, and the target is gone: `disconnect` first (`trace connect` connects gdb again)"


class ProxyLock:
    """The session's *lock*, as the debugger's proxy takes it: gdb waits for the proxy, so work that nobody waits for
    lets it pass when the lock `has_waiters`.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._waiting: set[int] = set()  # the threads that want it

    @property
    def has_waiters(self) -> bool:
        """Whether a thread waits for the lock."""
        return bool(self._waiting)

    def __enter__(self) -> None:
        this_thread = threading.get_ident()
        self._waiting.add(this_thread)
        try:
            self._lock.acquire()
        finally:
            self._waiting.discard(this_thread)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class ReverseDebugger(Protocol):
    """A debugger that goes back in time. *resumes* counts how often it resumed the target, *writes* what it wrote."""

    writes: "WriteLog"

    @property
    def resumes(self) -> int: ...

    @property
    def connected(self) -> bool: ...

    @property
    def has_target(self) -> bool:
        """Whether there is a target besides the trace."""

    @property
    def is_target_gone(self) -> bool:
        """Whether the target has ended the connection."""

    def away(self) -> bool:
        """Return whether it is in the past."""

    def number(self, hart: int | None) -> int | None:
        """Return the number of a hart's position in the past, None in the present."""

    def place(self, hart: int | None) -> HistoryNumber | None:
        """Return the place in a history where a thread's hart is; None in the present."""

    def call(self, work: "Callable[[HartExtensionContext], _T]") -> _T | None:
        """Return the result of *work* with its connection to the target; None: that is not possible now."""

    def trace_begins(self, *, now: bool = True) -> None:
        """Note that a trace was started: from now on it is noted what the debugger writes. *now*: just now."""

    def trace_ends(self) -> None:
        """Note that the trace was stopped."""

    def written(self, harts: Sequence[int]) -> tuple[DebuggerWrites, ...]:
        """Return what the debugger wrote at each halt of these harts since the trace was started, () if unknown."""

    def close(self) -> None: ...


def is_away(debugger: ReverseDebugger | None) -> bool:
    """Return whether the debugger is in the past: nothing new runs then, and rows keep their numbers."""
    return debugger is not None and debugger.away()


def resumptions(context: Context, debugger: ReverseDebugger | None) -> int | None:
    """Return a number that changes whenever the target is resumed, None if nobody counts.

    gdb, which counts if there is no proxy, also counts its resumptions in the past. Its numbers are made negative, so
    that they never equal those of the proxy.
    """
    if debugger is not None and debugger.connected:
        return debugger.resumes
    return None if context.runs is None else -1 - context.runs


def check_present(debugger: ReverseDebugger | None, what: str) -> None:
    """Raise `InThePast` if the debugger is in the past; *what* is the command that was given."""
    if debugger is not None and debugger.away():
        if debugger.is_target_gone:
            raise InThePast(f"{what}: {_GONE}")
        raise InThePast(f"{what}: {_RETURN if debugger.has_target else _DISCONNECT}")


def positions(debugger: ReverseDebugger | None, harts: HartHistories, context: Context) -> list[str]:
    """Return lines about where the debugger is in the past, for each hart that is there."""
    if debugger is None:
        return []
    threads = [*harts.histories, context.thread_hart]  # None: one thread that stands for any hart
    places = [place for hart in threads if (place := debugger.place(hart)) is not None]
    return report.positions(harts, dict(places))
