"""The line on the terminal while a stream is followed, and what is said beside the output."""

import os
import sys
import time
from collections.abc import Iterable

from rvtrace_gdb.session.following import Counts
from rvtrace_gdb.support.text import columns

_PAUSE = 0.2  # seconds between two drawings
_CLEAR = "\r\033[K"


class Status:
    """Draws on standard error, if that is a terminal that is ours at the moment. *wanted*: else only `say` speaks."""

    def __init__(self, name: str, wanted: bool) -> None:
        self._name = name
        self._able = wanted and _is_terminal()
        self._shown = False
        self._next = self._since = time.monotonic()
        self._before = 0
        self._rate = 0.0

    def show(self, counts: Counts, behind: int, *, ending: bool) -> None:
        """*behind*: bytes that wait to be decoded. *ending*: nothing comes any more."""
        now = time.monotonic()
        if not self._able or now < self._next or os.tcgetpgrp(2) != os.getpgrp():
            return
        if now - self._since >= 1:
            self._rate = (counts.bytes - self._before) / (now - self._since)
            self._before, self._since = counts.bytes, now
        self._next = now + _PAUSE
        width = _width()
        sys.stderr.write(_CLEAR + self._text(counts, behind, ending)[: width - 1])
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the line away: something else is printed."""
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._shown, self._next = False, 0.0

    def say(self, lines: Iterable[str]) -> None:
        """Beside the output."""
        for line in lines:
            self.clear()
            print(columns(line), file=sys.stderr, flush=True)

    def _text(self, counts: Counts, behind: int, ending: bool) -> str:
        parts = [f"{size(counts.bytes)}", f"{size(int(self._rate))}/s", of(counts.instructions, "instruction")]
        if counts.losses:
            parts.append(of(counts.losses, "loss"))
        if behind > 1 << 16:
            parts.append(f"{size(behind)} to decode")
        return f"{'decoding the rest of ' if ending else ''}{self._name}: {', '.join(parts)}"


def summary(counts: Counts) -> str:
    """How much was decoded, and lost."""
    done = f"{of(counts.bytes, 'byte')}: {of(counts.instructions, 'instruction')}"
    if counts.losses:
        return f"{done}, {of(counts.losses, 'loss')}"
    return f"{done}, nothing lost" if counts.instructions else done  # of bytes that are no trace nothing is known


def of(number: int, what: str) -> str:
    """E.g. "1 loss", "2 losses"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}{'es' if what.endswith('s') else 's'}"


def size(count: int) -> str:
    """Bytes in words."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:
        return False


def _width() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80
