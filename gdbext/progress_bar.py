"""Progress as one line of a terminal that is rewritten, the same in gdb, the console, and all commands.

    reading trace |████████▌           |  43%  28.0/64.0 KiB  9.6 KiB/s  0:03 left

A label may end with a unit in brackets, "disassembling (instructions)"; without one, the unit is bytes. (ms) is shown
as seconds, (parts) as a percentage only. For work that cannot be counted, done is 0 and total is None. This module runs
with and without gdb.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping
from typing import Callable

SOON = 0.5
"""Seconds of work before anything is drawn."""
PAUSE = 0.1  # seconds between two drawings
WIDE, NARROW = 24, 6  # columns of a bar
CLEAR = "\r\033[K"
_UNIT = re.compile(r"(.*) \(([a-z]+)\)")
_WITHOUT_RATE = ("ms", "parts")  # units whose rate is not shown
_PARTS = " ▏▎▍▌▋▊▉"
_LONGEST = 360000.0  # seconds: longer estimates are not shown
_STEADY = 0.3  # the weight of the newest rate in the average
_REFLOWING = ("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "ALACRITTY_WINDOW_ID")
"""Environment variables of terminals that reflow lines when they become narrower."""


class Bar:
    """The progress of long work as text. *clock* returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._title, self._unit = "", ""
        self._label: str | None = None
        self._done = 0
        self._total: int | None = None
        self._since = self._counted = clock()
        self._first = self._before = 0
        self._pace: float | None = None

    def report(self, label: str, done: int, total: int | None = None) -> None:
        """Note that *done* of *total* is done; *label* names the work and the unit, see the module."""
        now = self._clock()
        if label != self._label or done < self._done:
            found = _UNIT.fullmatch(label)
            self._label = label
            self._title, self._unit = (found[1], found[2]) if found else (label, "")
            self._since, self._counted = now, now
            self._first = self._before = done
            self._pace = None
        elif now - self._counted >= 1.0:
            pace = (done - self._before) / (now - self._counted)
            self._pace = pace if self._pace is None else self._pace + _STEADY * (pace - self._pace)
            self._counted, self._before = now, done
        self._done, self._total = done, total

    @property
    def reported(self) -> bool:
        return self._label is not None

    @property
    def plain(self) -> str:
        """The progress as a program reads it: `label: done/total`."""
        return f"{self._label}: {self._done}" + ("" if self._total is None else f"/{self._total}")

    def text(self, columns: int, ascii_only: bool = False) -> str:
        """Return the bar in at most *columns* columns. What does not fit is left out, the least important first."""
        share = min(self._done / self._total, 1.0) if self._total else None
        percent = "" if share is None else f"{int(100 * share):3d}%"
        pace, left = self._rate(), self._left()
        parts = [percent, self._amount(), pace, left]
        for shown in (parts, [percent, parts[1], left], [percent, left], [percent]):
            suffix = "  ".join(part for part in shown if part)
            room = columns - len(self._title) - len(suffix) - 4
            if share is not None and room >= NARROW:
                bar = drawn(share, min(room, WIDE), ascii_only)
                return f"{self._title} |{bar}| {suffix}"
            if share is None and room >= -2:
                return f"{self._title}  {suffix}" if suffix else self._title
        title = _cut_text(self._title, columns - len(percent) - 1, ascii_only)
        return (f"{title} {percent}" if percent else title)[: max(columns, 0)]

    def _rate(self) -> str:
        """Return the rate per second as text."""
        pace = self._speed()
        return f"{_number_text(pace, self._unit)}/s" if pace and self._unit not in _WITHOUT_RATE else ""

    def _speed(self) -> float | None:
        taken = self._clock() - self._since
        if self._pace is not None:
            return self._pace
        return (self._done - self._first) / taken if taken >= SOON else None

    def _left(self) -> str:
        """Return the time left, or the time so far if the end is not known."""
        taken, speed = self._clock() - self._since, self._speed()
        if not self._total:
            return _time(taken)
        if self._done >= self._total:
            return "0:00 left"
        if not speed or speed < 0:
            return _time(taken)
        left = (self._total - self._done) / speed
        return f"{_time(left + 0.999)} left" if left < _LONGEST else ""

    def _amount(self) -> str:
        if self._unit == "parts":
            return ""
        if not self._total:
            return _number_text(self._done, self._unit, named=True) if self._done else ""
        factor, name = _scale(self._total, self._unit)
        digits = 0 if factor == 1 else 1
        word = " ".join(part for part in (name, _word(self._unit)) if part)
        return f"{self._done / factor:.{digits}f}/{self._total / factor:.{digits}f} {word}".rstrip()


class BarLine:
    """A progress bar on a terminal: call it with (label, done, total), and `tick` while nothing is reported.

    *terminal*: a file descriptor; nothing is drawn unless it is a terminal that can rewrite a line, and this process is
    in its foreground.
    """

    def __init__(
        self, terminal: int = 2, environ: Mapping[str, str] = os.environ, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._terminal, self._clock = terminal, clock
        self._able = environ.get("TERM", "dumb") != "dumb" and _is_terminal(terminal)
        self._ascii = not speaks_utf8(environ)
        self._reflows = any(environ.get(name) for name in _REFLOWING)
        self._bar = Bar(clock)
        self._since: float | None = None
        self._next = 0.0
        self._columns = 0  # of the line on the screen
        self._cleared = False  # until something is reported
        self.soon = SOON
        """Seconds of work before anything is drawn."""

    @property
    def able(self) -> bool:
        """Whether there is a terminal to draw on."""
        return self._able

    def begin(self, label: str = "", since: float | None = None) -> None:
        """Start new work; *label* is shown until progress is reported. *since*: when the work began, by the clock."""
        self._since, self._next, self._cleared = self._clock() if since is None else since, 0.0, False
        self._bar = Bar(self._clock)
        if label:
            self._bar.report(label, 0)

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        self.note(label, done, total)
        self.tick()

    def note(self, label: str, done: int, total: int | None = None) -> None:
        """Note progress, which the next `tick` draws."""
        if self._since is None:
            self._since = self._clock()
        self._cleared = False
        self._bar.report(label, done, total)

    def tick(self) -> None:
        """Draw the bar if it is due."""
        now = self._clock()
        if self._cleared or self._since is None or not self._bar.reported:
            return
        if now >= max(self._next, self._since + self.soon):
            self._next = now + PAUSE
            self._show()

    def _show(self) -> None:
        if not self._able or not _in_foreground(self._terminal):
            return
        columns = _columns(self._terminal)
        text = self._bar.text(columns - 1, self._ascii)
        gone, self._columns = self._gone(columns), len(text)
        self._write_terminal(gone + text)

    def clear(self) -> None:
        """Erase the line; the next report draws it again."""
        self._cleared = True
        if self._columns:
            self._write_terminal(self._gone(_columns(self._terminal)))
            self._columns = 0

    def end(self) -> None:
        """Erase the line: the work is done."""
        self.clear()
        self._since = None

    def _gone(self, columns: int) -> str:
        """Return the control sequence that erases the line, even if the terminal has reflowed it into several."""
        rows = (self._columns - 1) // columns if self._reflows and self._columns > columns else 0
        return f"\r\033[{rows}A\033[J" if rows else CLEAR

    def _write_terminal(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        try:
            while data:
                data = data[os.write(self._terminal, data) :]
        except OSError:  # the terminal is closed
            self._able = False


def drawn(share: float, columns: int, ascii_only: bool = False) -> str:
    """Return a bar filled by *share* (0 to 1), *columns* wide, without its ends."""
    if ascii_only:
        return ("#" * int(share * columns)).ljust(columns)
    whole, part = divmod(int(8 * share * columns), 8)
    return ("█" * whole + (_PARTS[part] if part else "")).ljust(columns)


def speaks_utf8(environ: Mapping[str, str]) -> bool:
    """Whether the user's terminal uses UTF-8, according to the locale.

    Python itself sets LC_CTYPE to C.UTF-8 if there is no locale (PEP 538), which says nothing about the terminal.
    """
    language = environ.get("LANG", "")
    kind = environ.get("LC_CTYPE", "")
    chosen = environ.get("LC_ALL") or (kind if kind != "C.UTF-8" else "") or language
    return "utf8" in chosen.lower().replace("-", "")


def _number_text(value: float, unit: str, named: bool = False) -> str:
    factor, name = _scale(value, unit)
    words = [f"{value / factor:.{0 if factor == 1 else 1}f}", name, _word(unit) if named else ""]
    return " ".join(word for word in words if word)


def _scale(value: float, unit: str) -> tuple[int, str]:
    """Return the divisor that makes a number short, and the name of the resulting unit."""
    if unit == "ms":
        return 1000, "s"
    step, names = (1000, ("", "k", "M", "G")) if unit else (1024, ("bytes", "KiB", "MiB", "GiB"))
    power = 0
    while power < len(names) - 1 and value >= step ** (power + 1):
        power += 1
    return step**power, names[power]


def _word(unit: str) -> str:
    return "" if unit == "ms" else unit


def _time(seconds: float) -> str:
    """Return a time as 9:05 or 1:00:00."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _cut_text(text: str, columns: int, ascii_only: bool) -> str:
    if len(text) <= columns:
        return text
    return text[: max(columns - 1, 0)] + ("~" if ascii_only else "…") if columns > 0 else ""


def _is_terminal(terminal: int) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return os.isatty(terminal)
    return False


def _columns(terminal: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(terminal).columns or 80
    return 80


def _in_foreground(terminal: int) -> bool:
    """Whether this process is in the terminal's foreground: a shell may have put it in the background."""
    with contextlib.suppress(OSError, AttributeError):
        return os.tcgetpgrp(terminal) == os.getpgrp()
    return True  # not the controlling terminal of this process
