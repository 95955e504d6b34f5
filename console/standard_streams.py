"""Standard input, output and error, and which of them an error of the system comes from.

What goes wrong with standard output is an exception of its own, so that nothing else is taken for it.
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
    """Nobody reads standard output any more."""


class _Output(io.FileIO):
    """Says of its errors that they are its own, and remembers one: argparse ignores it.

    *dropped*: what is still written goes nowhere.
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
    """Where nobody can be told anything, the work goes on."""

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
    """At the beginning of the process, before a file is opened.

    What was closed is opened so that it fails if it is used: another file would have its number, else.
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
    sys.stdout = _text(sys.stdout, _Output(1, "w", closefd=False), "backslashreplace")
    sys.stderr = _text(sys.stderr, _Errors(2, "w", closefd=False), "backslashreplace")


def _text(before: object, raw: io.FileIO, errors: str) -> io.TextIOWrapper:
    """As Python has made it; what the locale's encoding does not have is no reason to end."""
    known = before if isinstance(before, io.TextIOWrapper) else None
    encoding = None if known is None else known.encoding
    lines = raw.isatty() or raw.fileno() == 2 or (known is not None and known.write_through)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=lines)


def flush() -> None:
    """Write all to standard output. Raises NotWritten, NotRead, also for what could not be written before."""
    sys.stdout.flush()
    raw = _output()
    if raw is not None and raw.failed is not None and not raw.dropped:
        raise raw.failed


def drop_output() -> None:
    """What is still to be written, Python would try to write at its end."""
    raw = _output()
    if raw is not None:
        raw.dropped = True


def _output() -> _Output | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Output) else None


def report(error: OSError) -> None:
    """One line on standard error."""
    if isinstance(error, NotWritten):
        drop_output()
    print(f"rvtrace: {printable(problem(error))}", file=sys.stderr)


def problem(error: OSError) -> str:
    """What has gone wrong, and with what."""
    if isinstance(error, NotWritten):
        return f"standard output: cannot be written: {error.strerror or error}"
    return refusal(error)
