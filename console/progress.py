"""Progress of long work on the terminal, for every command: `gdbext.bars` draws it."""

import contextlib
import signal
import sys
import threading
from types import TracebackType
from typing import Self

from rvtrace_gdb.gdbext import bars

_TURN = 0.1  # seconds


class ProgressLine:
    """`with ProgressLine() as progress:` - a bar on standard error, soon, that is gone afterwards; none in a file.

    It goes on while nothing is reported. *label*: what is shown until something is; without it, nothing.
    """

    def __init__(self, wanted: bool = True, label: str = "") -> None:
        self._line = bars.BarLine(_standard_error()) if wanted and not sys.stderr.closed else None
        if self._line is not None and not self._line.able:
            self._line = None
        self._label = label
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._line is not None:
            self._begin(self._line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None
        if self._line is not None:
            self._line.end()

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        """See `support.progress.Progress`. The label may end with a unit, see `gdbext.bars`."""
        if self._line is None:
            return
        with self._lock:
            if self._thread is None:
                self._begin(self._line)
            self._line.note(label, done, total)

    def clear(self) -> None:
        """Take the bar away, so that something else can be printed. It comes back with what is reported next."""
        if self._line is not None:
            with self._lock:
                self._line.clear()

    def _begin(self, line: bars.BarLine) -> None:
        line.begin(self._label)
        self._ended.clear()
        self._thread = threading.Thread(target=self._draw, args=[line], name="progress", daemon=True)
        self._thread.start()

    def _draw(self, line: bars.BarLine) -> None:
        if hasattr(signal, "pthread_sigmask"):  # they are for the thread that works
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while not self._ended.wait(_TURN):
            with self._lock:
                line.tick()


def _standard_error() -> int:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return sys.stderr.fileno()
    return -1
