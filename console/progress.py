"""Long commands on the terminal: their progress, and the signals that interrupt them.

`gdbext.progress_bar` draws the progress of every command. Ctrl-C interrupts the current work; SIGTERM and SIGHUP end
the command with an orderly cleanup.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Self

from rvtrace_gdb.gdbext import progress_bar
from rvtrace_gdb.support.errors import Progress, silent

_TURN = 0.1  # seconds


WATCH: ContextVar[Progress] = ContextVar("watch", default=silent)
"""Gets the progress of commands, too: it may raise Cancelled."""


class ProgressLine:
    """A progress bar on standard error, if that is a terminal: `with ProgressLine() as progress:`.

    It appears after half a second, is updated even while nothing is reported, and is erased at the end. *label*: shown
    until progress is reported; without it, nothing is shown until then.
    """

    def __init__(self, enabled: bool = True, label: str = "") -> None:
        self._line = progress_bar.BarLine(_standard_error()) if enabled and not sys.stderr.closed else None
        if self._line is not None and not self._line.able:
            self._line = None
        self._label = label
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._line is not None:
            self._start_thread(self._line)
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
        """Report progress, as `support.errors.Progress`. The label may end with a unit, see `gdbext.progress_bar`."""
        WATCH.get()(label, done, total)
        if self._line is None:
            return
        with self._lock:
            if self._thread is None:
                self._start_thread(self._line)
            self._line.note(label, done, total)

    def clear(self) -> None:
        """Erase the bar, so that something else can be printed. The next report shows it again."""
        if self._line is not None:
            with self._lock:
                self._line.clear()

    def _start_thread(self, line: progress_bar.BarLine) -> None:
        line.begin(self._label)
        self._ended.clear()
        self._thread = threading.Thread(target=self._draw, args=[line], name="progress", daemon=True)
        self._thread.start()

    def _draw(self, line: progress_bar.BarLine) -> None:
        if hasattr(signal, "pthread_sigmask"):  # signals are for the main thread
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while not self._ended.wait(_TURN):
            with self._lock:
                line.tick()


def _standard_error() -> int:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return sys.stderr.fileno()
    return -1


ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def on_signals(numbers: tuple[signal.Signals, ...], do: Callable[[int], None]) -> Iterator[None]:
    """Within this context *do* handles these signals; on a thread other than the main one, nothing changes."""

    def handler(number: int, frame: FrameType | None) -> None:
        do(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def ending() -> contextlib.AbstractContextManager[None]:
    """Within this context SIGTERM and SIGHUP raise SystemExit, so that processes are ended and files are removed.

    The exit status is the one that shells give to a process that a signal has ended.
    """

    def leave(number: int) -> None:
        for other in ENDING:
            signal.signal(other, signal.SIG_IGN)
        sys.exit(128 + number)

    return on_signals(ENDING, leave)
