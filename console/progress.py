"""Long commands on the terminal: their progress, and the signals that break them off.

`gdbext.progress_bar` draws the progress, for every command. Ctrl-C breaks off what is under way; SIGTERM and SIGHUP end
the command in order.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Self

from rvtrace_gdb.gdbext import progress_bar

_TURN = 0.1  # seconds


class ProgressLine:
    """`with ProgressLine() as progress:` - a bar on standard error, soon, that is gone afterwards; none in a file.

    It goes on while nothing is reported. *label*: what is shown until something is; without it, nothing.
    """

    def __init__(self, wanted: bool = True, label: str = "") -> None:
        self._line = progress_bar.BarLine(_standard_error()) if wanted and not sys.stderr.closed else None
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
        """See `support.errors.Progress`. The label may end with a unit, see `gdbext.progress_bar`."""
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

    def _begin(self, line: progress_bar.BarLine) -> None:
        line.begin(self._label)
        self._ended.clear()
        self._thread = threading.Thread(target=self._draw, args=[line], name="progress", daemon=True)
        self._thread.start()

    def _draw(self, line: progress_bar.BarLine) -> None:
        if hasattr(signal, "pthread_sigmask"):  # they are for the thread that works
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
    """Meanwhile *do* is called for these; on another thread than the main one nothing changes."""

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
    """SIGTERM and SIGHUP leave by an exception, so that all that was started is ended, and files are removed.

    The exit status is that of shells for who ends by the signal.
    """

    def leave(number: int) -> None:
        for other in ENDING:
            signal.signal(other, signal.SIG_IGN)
        sys.exit(128 + number)

    return on_signals(ENDING, leave)
