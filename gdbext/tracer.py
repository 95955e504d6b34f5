"""The session process as the `trace` commands use it: requests, the context that gdb provides, and progress.

`progress_bar` draws progress directly on the terminal: gdb counts the lines that go through gdb.write, and would stop
at its pager in the middle. If RVTRACE_PROGRESS is "plain", a program reads the output (console/gdb_driver/mi.py) and
gets the numbers instead.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext import csr_access, harts, neutral, objfiles, progress_bar, results, same_openocd, settings
from rvtrace_gdb.gdbext.client import Client, SessionError
from rvtrace_gdb.gdbext.text import print_line

TERMINAL = 2  # the file descriptor: standard error


class GdbProgressLine(progress_bar.BarLine):
    """A progress bar on the terminal, except while gdb's text user interface draws."""

    def __init__(self) -> None:
        super().__init__(TERMINAL)
        self._plain = os.environ.get("RVTRACE_PROGRESS") == "plain" and os.isatty(TERMINAL)
        self._in_thread = False
        if self._plain:
            self.soon = 0.0

    @contextlib.contextmanager
    def at_work(self, label: str) -> Iterator[None]:
        """Show, from a thread, how long gdb itself works; it must print nothing meanwhile."""
        if not self._plain and not (self._able and _no_window()):
            yield
            return
        ended = threading.Event()
        thread = threading.Thread(target=self._draw, args=[ended], name="progress", daemon=True)
        self.begin(label)
        self._in_thread = True
        without_signals(thread)
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self._in_thread = False
            self.end()

    def _draw(self, ended: threading.Event) -> None:
        while not ended.wait(progress_bar.PAUSE):
            self.tick()

    def _show(self) -> None:
        if self._plain:
            self._columns = 1
            self._write_terminal(f"{progress_bar.CLEAR}{self._bar.plain}")
        elif self._able and (self._in_thread or _no_window()):  # a thread must not call gdb
            super()._show()

    def _gone(self, columns: int) -> str:
        return progress_bar.CLEAR if self._plain else super()._gone(columns)


def _no_window() -> bool:
    """Whether gdb's text user interface is off."""
    return "not active" in neutral.printed("info win")


def without_signals(thread: threading.Thread) -> None:
    """Start a thread that receives no signals: these are for gdb's own threads."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        thread.start()
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


ADDRESSES = (1 << 64) - 1
_NOTICING_SECONDS = 10.0
_AGAIN_SECONDS = 0.02
_DOING = {
    "start": "setting up the trace", "ctr_start": "setting up the trace", "stop": "stopping the trace",
    "ctr_stop": "stopping the trace", "connect": "connecting", "open": "opening the capture",
    "save": "writing the capture", "export": "writing the export", "info": "looking at the trace components",
    "regs": "reading registers",
}  # fmt: skip
"""The label of a request's progress, until the session reports one."""


class SessionRefusal(gdb.GdbError):
    """An error of the session, one line. *kind*: the session's name for it."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class Tracer:
    """The session process, with the facts about gdb that its requests need."""

    def __init__(self, home: str) -> None:
        self._progress = GdbProgressLine()
        self._client = Client(home, self._show_progress, csr_access.answer, self._tick)
        self._work: tuple[str, float] | None = None  # the label and the beginning of a request, until it takes long
        self._runs = 0  # how often the program was resumed: shows the session whether there can be new trace
        self._tvec: int | None = None
        self.connection: int | None = None
        """The number of gdb's connection that the session last got for access to CSRs."""
        self.reported: dict[str, Any] | None = None
        """The last state of the trace that the session reported (session/rpc/protocol.py), until `-rvtrace-told`."""
        self.ports: dict[str, int | None] = {}
        """The ports of the stubs that gdb was connected to through rvtrace, by the address of that connection."""
        self.needs_tvec = False
        """Whether the trace omits the addresses of trap handlers, so that the session needs mtvec."""

    def request(self, method: str, **params: Any) -> Any:
        """Send a request to the session and return its result. Raises gdb.GdbError, one line, for its errors."""
        self._work = _DOING.get(method, "working"), time.monotonic()
        try:
            if self.connection is not None and csr_access.connection() not in (None, self.connection):
                self.connection = csr_access.connection()
                self._client.request("ctr_connected", access=csr_access.access_params())
            found = self._answer(method, params)
            if isinstance(found, dict) and "state" in found:
                self.reported = found["state"]
            return found
        except SessionError as error:
            raise SessionRefusal(str(error), error.kind) from None
        finally:
            self._end_progress()

    @property
    def late_answer(self) -> Any:
        """The result of the request that Ctrl-C has interrupted last, if only a part of it was left out; else None."""
        return self._client.late

    def _show_progress(self, label: str, done: int, total: int | None = None) -> None:
        """Show progress that the session reports."""
        self._begin_progress()
        self._progress(label, done, total)

    def _tick(self) -> None:
        """Show that time passes while the session sends nothing."""
        self._begin_progress()
        self._progress.tick()

    def _begin_progress(self) -> None:
        if self._work is not None:
            self._progress.begin(*self._work)
            self._work = None

    def _end_progress(self) -> None:
        if self._work is None:
            self._progress.end()
        self._work = None

    def _answer(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result. Raises SessionError.

        The session may not have noticed yet that gdb is disconnected: an error for that reason is retried for a while.
        """
        deadline = time.monotonic() + _NOTICING_SECONDS
        while True:
            try:
                return self._client.request(method, **params)
            except SessionError as error:
                gone = gdb.selected_inferior().pid == 0 and error.kind == "InThePast"
                if not gone or time.monotonic() > deadline:
                    raise
            time.sleep(_AGAIN_SECONDS)

    def at_work(self, label: str) -> contextlib.AbstractContextManager[None]:
        """Show how long gdb works, without a request and without printing anything."""
        return self._progress.at_work(label)

    def context(self) -> dict[str, Any]:
        """Return the program and the target as gdb and the user's settings define them now."""
        target_file, overrides = settings.target_settings()
        openocd = self.learn_harts()
        return {
            "elf": program(),
            "objfiles": objfiles.placed(),
            "openocd": openocd,
            "target_file": target_file,
            "overrides": overrides,
            "runs": self._runs,
            "hart": settings.hart(),
            "thread_hart": harts.selected_hart(),
            "threads": harts.table(),
            "on_hart": harts.on_hart(),
            "candidates": harts.candidates(),
            "values": settings.values(),
            "rtos": settings.rtos(),
            "tvec": self._trap_vector() if self.needs_tvec else None,
            "save_memory": settings.save_memory(),
        }

    def learn_harts(self) -> str | None:
        """Find out which harts gdb's threads are, if OpenOCD serves them; return its mark, None if it does not."""
        openocd = same_openocd.mark()
        if openocd is not None:
            harts.learn(stop=self._runs, port=self._port(), is_gone=self._is_target_gone)
        return openocd

    def _port(self) -> int | None:
        """Return the port of the stub that gdb is connected to, directly or through rvtrace; None if it has none."""
        details = self._details()
        port = details.rpartition(":")[2]
        return self.ports[details] if details in self.ports else int(port) if port.isdecimal() else None

    def _details(self) -> str:
        """Return the address that gdb is connected to, as gdb writes it; "" if it is not connected, or has none."""
        return str(getattr(getattr(gdb.selected_inferior(), "connection", None), "details", None) or "")

    def _is_target_gone(self) -> bool:
        """Whether the target has ended its connection to rvtrace, and rvtrace has not ended gdb's yet."""
        return self.has_session and self._details() in self.ports and bool(self.request("gone")["gone"])

    def _trap_vector(self) -> int | None:
        """Return mtvec, or its last known value if it cannot be read now."""
        with contextlib.suppress(gdb.error, ValueError):
            self._tvec = int(gdb.newest_frame().read_register("mtvec")) & ADDRESSES
        return self._tvec

    def resumed(self) -> None:
        """Count that the program was resumed."""
        self._runs += 1

    @property
    def has_session(self) -> bool:
        """Whether a session is running, so that a request does not start one."""
        return self._client.running

    @property
    def session(self) -> int | None:
        """The number of the running session, counted from 1; None if none is running."""
        return self._client.session

    def end_of_session(self) -> str:
        """Return a line that says how the last session has ended; it counts as reported to the user then."""
        return self._client.end()

    def close(self) -> None:
        self._client.close()


_tracer: Tracer | None = None


def open_tracer(home: str) -> None:
    """Create the one tracer, with the session from the project in the folder *home*."""
    global _tracer
    _tracer = Tracer(home)


def tracer() -> Tracer:
    """Return the one tracer."""
    assert _tracer is not None  # set before any command exists
    return _tracer


def program() -> str | None:
    """Return the path of the program that gdb has loaded; None if there is none."""
    space = gdb.current_progspace()
    return neutral.of_any_bytes(lambda: space.filename or "") or None if space else None


def print_lines(result: dict[str, Any]) -> None:
    """Print the lines in a result of the session; a program also gets its facts."""
    lines = list(result.get("lines", ()))
    if results.WANTED:
        results.add({**(result.get("state") or {}), **({"messages": lines} if lines else {})})
    for line in lines:
        print_line(line)


def arguments(text: str, usage: str) -> list[str]:
    """Split a command line into words as gdb does. Raises gdb.GdbError, whose text ends with *usage*."""
    try:
        return gdb.string_to_argv(text)
    except gdb.error as error:
        raise gdb.GdbError(f"{error} {usage}") from None
