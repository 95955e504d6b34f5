"""Progress of long work in gdb: `bars` draws it, on the terminal itself.

gdb counts what goes through gdb.write and would stop at its pager in the middle. Where RVTRACE_PROGRESS is "plain" a
program reads along (console/mi.py): it gets the numbers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

import gdb

from rvtrace_gdb.gdbext import bars

TERMINAL = 2  # the file descriptor: standard error


class ProgressLine(bars.BarLine):
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
        while not ended.wait(bars.PAUSE):
            self.tick()

    def _show(self) -> None:
        if self._plain:
            self._columns = 1
            self._write(f"{bars.CLEAR}{self._bar.plain}")
        elif self._able and (self._in_thread or _no_window()):  # a thread must not ask gdb
            super()._show()

    def _gone(self, columns: int) -> str:
        return bars.CLEAR if self._plain else super()._gone(columns)


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
