"""The bytes of raw traces: read from a file or standard input, and looked at for what cannot be a trace."""

import argparse
import sys
from collections.abc import Callable, Iterator

from rvtrace_gdb.support.errors import RvtraceError

_PIECE = 1 << 16
_NO_TRACES = {
    b"PK\x03\x04": "is a capture (a ZIP file), not raw bytes: it is read without --ntrace, --etrace, --tandem,"
    " --settings, and needs no `rvtrace import`",
    b"\x7fELF": "is an ELF file, not a trace",
}
"""How files begin that are not raw bytes."""


class RawError(RvtraceError):
    """Options for raw bytes that do not fit together, or bytes that cannot be read."""


def pieces(file: str) -> Iterator[bytes]:
    """The bytes of *file*, or of standard input for "-". Raises `RawError`, also for what cannot be a trace."""
    name = title(file)
    first = True
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as source:
            while data := source.read1(_PIECE):
                if first:
                    check_beginning(data, name)
                first = False
                yield data
    except OSError as error:
        raise RawError(f"{name}: cannot be read: {error.strerror}") from None
    if first:
        raise RawError(f"{name}: is empty")


def standard_input() -> bytes:
    """All of it. Raises `RawError`."""
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise RawError(f"standard input: cannot be read: {error.strerror}") from None


def title(file: str) -> str:
    """What a file is called in messages."""
    return "standard input" if file == "-" else file


def check_beginning(data: bytes, name: str) -> None:
    """Raises `RawError` for what cannot be a trace."""
    for beginning, what in _NO_TRACES.items():
        if data.startswith(beginning):
            raise RawError(f"{name}: {what}")


def check_file(file: str) -> None:
    """The same of a file that is not read yet; one that cannot be, is somebody else's to report. Raises `RawError`."""
    if file == "-":
        return
    try:
        with open(file, "rb") as source:
            beginning = source.read(max(map(len, _NO_TRACES)))
    except (OSError, ValueError):
        return
    check_beginning(beginning, title(file))


def number_from(least: int, most: int) -> Callable[[str], int]:
    """An argparse type: a number from *least* to *most*."""

    def number(text: str) -> int:
        try:
            value = int(text, 0)
        except ValueError:
            value = -1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")
        return value

    return number
