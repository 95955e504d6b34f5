"""Standard input, output and error, with exceptions that say which of them an operating-system error comes from.

Errors of standard output have their own exceptions, to distinguish them from errors of other files.
"""

import errno
import io
import os
import sys

from rvtrace_gdb.support.system import refusal
from rvtrace_gdb.support.text import printable


class NotWritten(OSError):
    """Standard output cannot be written."""


class NotRead(BrokenPipeError):
    """The reader of standard output has closed it."""


class _StandardOutput(io.FileIO):
    """Standard output, which raises its own exceptions and remembers the last one, because argparse ignores it.

    *dropped*: whether further output is discarded.
    """

    dropped = False
    failed: OSError | None = None

    def write(self, data, /):  # type: ignore[no-untyped-def]
        if self.dropped:
            return len(data)
        try:
            return super().write(data)
        except BrokenPipeError as error:
            self.failed = NotRead(error.errno, error.strerror)
        except OSError as error:
            why = "it is closed" if error.errno == errno.EBADF else error.strerror
            self.failed = NotWritten(error.errno, why)
        raise self.failed


class _Errors(io.FileIO):
    """Standard error, whose own errors are ignored: they cannot be reported anywhere."""

    def write(self, data, /):  # type: ignore[no-untyped-def]
        try:
            return super().write(data)
        except OSError:
            return len(data)


class _Closed(io.FileIO):
    """Standard input that was closed."""

    def readinto(self, buffer, /):  # type: ignore[no-untyped-def]
        raise OSError(errno.EBADF, "it is closed", "standard input")

    def readall(self) -> bytes:
        raise OSError(errno.EBADF, "it is closed", "standard input")


def prepare() -> None:
    """Prepare the streams, at the beginning of the process before any file is opened.

    Closed streams are opened such that using them fails; otherwise, another file would get their descriptor.
    """
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            device = os.open(os.devnull, mode)
            if device != number:
                os.dup2(device, number)
                os.close(device)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_Closed(0, "r", closefd=False)))
    sys.stdout = _escaping_stream(sys.stdout, _StandardOutput(1, "w", closefd=False), "backslashreplace")
    sys.stderr = _escaping_stream(sys.stderr, _Errors(2, "w", closefd=False), "backslashreplace")


def _escaping_stream(before: object, raw: io.FileIO, errors: str) -> io.TextIOWrapper:
    """Return a stream like Python's, on which characters outside the locale's encoding are escaped."""
    known = before if isinstance(before, io.TextIOWrapper) else None
    encoding = None if known is None else known.encoding
    lines = raw.isatty() or raw.fileno() == 2 or (known is not None and known.write_through)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=lines)


def flush() -> None:
    """Flush standard output. Raises NotWritten, NotRead, also for an earlier write that failed."""
    sys.stdout.flush()
    raw = _output()
    if raw is not None and raw.failed is not None and not raw.dropped:
        raise raw.failed


def drop_output() -> None:
    """Discard buffered output, which Python would otherwise try to write when it exits."""
    raw = _output()
    if raw is not None:
        raw.dropped = True


def _output() -> _StandardOutput | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, _StandardOutput) else None


def report(error: OSError) -> None:
    """Print an error as one line on standard error."""
    if isinstance(error, NotWritten):
        drop_output()
    print(f"rvtrace: {printable(problem(error))}", file=sys.stderr)


def problem(error: OSError) -> str:
    """Return the text of an error, with the file that it is about."""
    if isinstance(error, NotWritten):
        return f"standard output: cannot be written: {error.strerror or error}"
    return refusal(error)
