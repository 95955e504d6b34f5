"""One line on the terminal that is rewritten while long work goes on.

Written to the terminal itself: gdb counts what goes through gdb.write and would stop at its pager in the middle.
"""

from __future__ import annotations

import os
import time

import gdb

TERMINAL = 2  # the file descriptor: standard error
SOON = 0.3  # seconds: what is faster is not worth a line


class ProgressLine:
    """Call it with (label, done, total); `clear` takes the line away. Silent where nobody watches."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._shown = False

    def __call__(self, label: str, done: int, total: int | None) -> None:
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since < SOON or not _watched():
            return
        share = f"{100 * done // total}%" if total else f"{done}"
        os.write(TERMINAL, f"\r\033[K{label}: {share}".encode())
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            os.write(TERMINAL, b"\r\033[K")
        self._since, self._shown = None, False


def _watched() -> bool:
    """Whether there is a terminal, and not one that the text user interface draws on."""
    return os.isatty(TERMINAL) and "not active" in gdb.execute("info win", to_string=True)
