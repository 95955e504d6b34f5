"""Signals of long commands: Ctrl-C breaks off what is under way, SIGTERM and SIGHUP end in order."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

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
