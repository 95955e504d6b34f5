"""Progress of long work on the terminal, for every command."""

import sys
import time
from types import TracebackType
from typing import Self

_PAUSE = 0.1  # seconds between two lines


class ProgressLine:
    """`with ProgressLine() as progress:` - a line on standard error that is gone afterwards; none in a file."""

    def __init__(self, wanted: bool = True) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._next = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._wanted:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        """See `support.progress.Progress`."""
        if self._wanted and time.monotonic() >= self._next:
            self._next = time.monotonic() + _PAUSE
            share = f"{100 * done // total}%" if total else str(done)
            sys.stderr.write(f"\r\033[K{label}: {share}")
            sys.stderr.flush()
