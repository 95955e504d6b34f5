"""What the `trace` commands share: the session, what it needs to know from gdb, and the progress of its work.

`progress_bar` draws progress, directly on the terminal: gdb counts what goes through gdb.write, and would stop at its
pager in the middle. Where RVTRACE_PROGRESS is "plain", a program reads along (console/gdb_driver/mi.py) and gets the
numbers.
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

from rvtrace_gdb.gdbext import csr_access, progress_bar, settings
from rvtrace_gdb.gdbext.client import Client, SessionError
from rvtrace_gdb.gdbext.text import print_line

TERMINAL = 2  # the file descriptor: standard error


class ProgressLine(progress_bar.BarLine):
    """A bar where somebody watches, and the text user interface does not draw."""

    def __init__(self) -> None:
        super().__init__(TERMINAL)
        self._plain = os.environ.get("RVTRACE_PROGRESS") == "plain" and os.isatty(TERMINAL)
        self._in_thread = False
        if self._plain:
            self.soon = 0.0

    @contextlib.contextmanager
    def at_work(self, label: str) -> Iterator[None]:
        """gdb itself works, and nothing is printed meanwhile: a thread draws how long it takes."""
        if not self._plain and not (self._able and _no_window()):
            yield
            return
        ended = threading.Event()
        thread = threading.Thread(target=self._draw, args=[ended], name="progress", daemon=True)
        self.begin(label)
        self._in_thread = True
        _without_signals(thread)
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
            self._write(f"{progress_bar.CLEAR}{self._bar.plain}")
        elif self._able and (self._in_thread or _no_window()):  # a thread must not ask gdb
            super()._show()

    def _gone(self, columns: int) -> str:
        return progress_bar.CLEAR if self._plain else super()._gone(columns)


def _no_window() -> bool:
    """Whether no text user interface draws."""
    return "not active" in gdb.execute("info win", to_string=True)


def _without_signals(thread: threading.Thread) -> None:
    """Start it: signals are for gdb's own threads."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        thread.start()
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


HARTS_AT_MOST = 4096
ADDRESSES = (1 << 64) - 1
_NOTICING_SECONDS = 10.0
_AGAIN_SECONDS = 0.02
_DOING = {
    "start": "setting up the trace", "ctr_start": "setting up the trace", "stop": "stopping the trace",
    "ctr_stop": "stopping the trace", "connect": "connecting", "open": "opening the capture",
    "save": "writing the capture", "info": "looking at the trace components", "regs": "reading registers",
}  # fmt: skip
"""What a request is for, as long as the session says nothing of it."""


class Tracer:
    """What the commands share: the session process and what gdb knows that the session needs."""

    def __init__(self, home: str) -> None:
        self._progress = ProgressLine()
        self._client = Client(home, self._progress, csr_access.answer, self._progress.tick)
        self._runs = 0  # how often the program was resumed: tells the session whether anything can be new
        self._tvec: int | None = None
        self.connection: int | None = None
        """gdb's connection, as the session was told when it was to reach CSRs."""
        self.told: dict[str, Any] | None = None
        """What the session told last of the trace (session/rpc/protocol.py), until `-rvtrace-told` takes it."""
        self.needs_tvec = False
        """The trace leaves out where traps lead, so that the session has to be told."""

    def request(self, method: str, **params: Any) -> Any:
        """The session's result; its errors become gdb.GdbError, one line."""
        self._progress.begin(_DOING.get(method, "working"))
        try:
            if self.connection is not None and csr_access.connection() not in (None, self.connection):
                self.connection = csr_access.connection()
                self._client.request("ctr_connected", access=csr_access.way())
            found = self._answer(method, params)
            if isinstance(found, dict) and "state" in found:
                self.told = found["state"]
            return found
        except SessionError as error:
            raise gdb.GdbError(str(error)) from None
        finally:
            self._progress.end()

    def _answer(self, method: str, params: dict[str, Any]) -> Any:
        """That gdb is not connected any more, the session may not have noticed yet. Raises SessionError."""
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
        """gdb works for long, without a request and without printing anything: how long is shown."""
        return self._progress.at_work(label)

    def context(self) -> dict[str, Any]:
        """The program and the target as gdb and the user's settings have them now."""
        target_file, overrides = settings.target_settings()
        return {
            "elf": program(),
            "target_file": target_file,
            "overrides": overrides,
            "runs": self._runs,
            "hart": settings.hart(),
            "thread_hart": selected_hart(),
            "tvec": self._trap_vector() if self.needs_tvec else None,
        }

    def _trap_vector(self) -> int | None:
        """mtvec, as it is now or was when it could be read last."""
        with contextlib.suppress(gdb.error, ValueError):
            self._tvec = int(gdb.newest_frame().read_register("mtvec")) & ADDRESSES
        return self._tvec

    def resumed(self) -> None:
        """The program goes on."""
        self._runs += 1

    @property
    def has_session(self) -> bool:
        """Whether there is a session that can be asked without starting one."""
        return self._client.running

    @property
    def session(self) -> int | None:
        """Which session is running, of those that were started; None: none is."""
        return self._client.session

    def end_of_session(self) -> str:
        """How the session has ended, for the user, who knows then; if there is another one now, the one before."""
        return self._client.end()

    def close(self) -> None:
        self._client.close()


_tracer: Tracer | None = None


def open_tracer(home: str) -> None:
    """Make the tracer there is, with the session from the project in the folder *home*."""
    global _tracer
    _tracer = Tracer(home)


def tracer() -> Tracer:
    """The tracer there is."""
    assert _tracer is not None  # set before any command exists
    return _tracer


def program() -> str | None:
    """The program gdb has loaded."""
    space = gdb.current_progspace()
    return space.filename if space else None


def selected_hart() -> int | None:
    """The hart of the selected thread, where threads are harts."""
    return hart_of(gdb.selected_thread())


def hart_of(thread: gdb.InferiorThread | None) -> int | None:
    """The hart that a thread is.

    OpenOCD (-rtos hwthread) and QEMU number threads from 1 and harts from 0. Threads of an operating system, and the
    one thread of a target that has none, have large numbers.
    """
    number = thread.ptid[1] - 1 if thread is not None and thread.is_valid() else -1
    return number if 0 <= number < HARTS_AT_MOST else None


def print_lines(result: dict[str, Any]) -> None:
    """Print the lines of a session's answer."""
    for line in result.get("lines", ()):
        print_line(line)


def arguments(text: str, usage: str) -> list[str]:
    """The words of a command line, as gdb takes them apart. Raises gdb.GdbError, with *usage* behind it."""
    try:
        return gdb.string_to_argv(text)
    except gdb.error as error:
        raise gdb.GdbError(f"{error} {usage}") from None
