"""Long work while gdb waits for a stop: it is shown on gdb's console, and Ctrl-C in gdb ends it."""

import re
import time
from collections.abc import Callable

from rvtrace_gdb.support.errors import Cancelled

FIRST_SECONDS = 1.0  # before the first line
NEXT_SECONDS = 2.0
FIRST_STEPPING_SECONDS = 3.0
_LOOK_SECONDS = 0.02  # between two looks at what gdb sends
_UNIT = re.compile(r" \([a-z]+\)$")  # see support/progress.py


class Watch:
    """A Progress. *interrupted* looks whether gdb wants it to end; *tell* prints a line on its console."""

    def __init__(self, interrupted: Callable[[], bool], tell: Callable[[str], None]) -> None:
        self._interrupted, self._tell = interrupted, tell
        now = time.monotonic()
        self._look, self._next = now, now + FIRST_SECONDS

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if now < self._look:
            return
        self._look = now + _LOOK_SECONDS
        if self._interrupted():
            raise Cancelled
        if now >= self._next:
            self._next = now + NEXT_SECONDS
            self._tell(_line(label, done, total))


class Stepping:
    """Many steps that gdb makes for one command, as for a watchpoint on a register: they are shown, too."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._next = 0.0

    def end(self) -> None:
        self._next = 0.0

    def stepped(self, position: int | None) -> None:
        """One more step, to *position*."""
        now = time.monotonic()
        if not self._next:
            self._next = now + FIRST_STEPPING_SECONDS
        elif now >= self._next and position is not None:
            self._next = now + NEXT_SECONDS
            self._tell(f"stepping, at number {position + 1} (Ctrl-C ends it)")


def _line(label: str, done: int, total: int | None) -> str:
    """Percent where the whole is known, without the unit behind the label then."""
    if total:
        return f"{_UNIT.sub('', label)}: {min(100 * done // total, 100)} %"
    return f"{label}: {done:,}"
