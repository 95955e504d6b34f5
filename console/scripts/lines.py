"""What a scripted capture shows while it runs: a line for each step, and progress of what takes long."""

import sys
import threading

from rvtrace_gdb.console import standard
from rvtrace_gdb.console.progress import ProgressLine
from rvtrace_gdb.console.scripts.language import Place
from rvtrace_gdb.console.scripts.report import ERROR, FAILED, PASSED
from rvtrace_gdb.console.scripts.verbs import Outcome
from rvtrace_gdb.support.errors import RvtraceError

UNNAMED = "working"
"""What gdb says of work that has told nothing yet (gdbext/tracer.py): the step says more."""
_WORDS = {PASSED: "ok", FAILED: "FAIL", ERROR: "ERROR"}
_LONG = 1.0  # seconds: what takes longer is told with its time


class Lines:
    """*shown*: False for nothing but what the program and gdb complain of. Any thread may tell it what is said."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._progress: ProgressLine | None = None
        self._lock = threading.RLock()
        self._open = False  # the program has begun a line of its own, and not ended it

    def begins(self, place: Place) -> None:
        if self._shown:
            self._progress = ProgressLine(label=place.text).__enter__()

    def ended(self, place: Place, status: str, outcome: Outcome, seconds: float) -> None:
        if self._progress is not None:
            self._progress.__exit__(None, None, None)
            self._progress = None
        if not self._shown:
            return
        with self._lock:
            self._write(_told(place, status, outcome, seconds) + "\n")

    def progress(self, label: str, done: int, total: int | None = None) -> None:
        """See `support.progress.Progress`."""
        if self._progress is not None and label != UNNAMED:
            self._progress(label, done, total)

    def said(self, kind: str, text: str) -> None:
        """What comes while a step is under way: of that, what nobody else shows. Raises RvtraceError."""
        if not (kind == "log" or (kind == "target" and self._shown)):
            return
        progress = self._progress
        if progress is not None:
            progress.clear()
        with self._lock:
            if kind == "log":
                self._write("")
                print(text.rstrip("\n"), file=sys.stderr)
            elif text:
                self._write(text, own=True)

    def _write(self, text: str, *, own: bool = False) -> None:
        """*own*: what the program prints, which need not begin a line. Raises RvtraceError."""
        begin = "\n" if self._open and not own else ""
        self._open = (self._open and not begin and not text) or (own and not text.endswith("\n"))
        try:
            print(f"{begin}{text}", end="", flush=True)
        except OSError as error:
            self._shown = False  # it goes on, and ends, without
            standard.drop_output()
            raise RvtraceError(standard.problem(error)) from None


def _told(place: Place, status: str, outcome: Outcome, seconds: float) -> str:
    """The line of a step, or lines."""
    word = place.text.partition(" ")[0]
    if word == "echo" and status == PASSED:
        return outcome.text
    took = f" ({seconds:.1f} s)" if seconds >= _LONG else ""
    number = str(place.line or "")
    first, *more = outcome.text.splitlines() or [""]
    block = word in ("gdb", "trace") and outcome.text
    said = "" if block or not first else f": {first}"
    lines = outcome.text.splitlines() if block else more
    return "\n".join([f"{_WORDS[status]:<5} {number:>4}  {place.text}{said}{took}", *(" " * 12 + it for it in lines)])
