"""Files that are written: whole, or not at all."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from support.errors import RvtraceError


class OutputError(RvtraceError):
    """A file that cannot be written. *path*: its name; *problem*: why."""

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        self.problem = f"cannot be written: {error.strerror or error}"
        super().__init__(f"{path}: {self.problem}")


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A file to write to, which becomes *path* when the context ends without an exception; `-` is standard output.

    Pipes and devices are written to as they are, and never replaced; of a symbolic link, what it leads to is. Raises
    OutputError.
    """
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not path or "\0" in path:
        raise OutputError(path, OSError(errno.EINVAL, "that is no name of a file"))
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as device:
                yield device
        else:
            yield from _through_temporary(Path(os.path.realpath(path)))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(path, error) from None


def _through_temporary(path: Path) -> Iterator[BinaryIO]:
    temporary = path.with_name(f".{path.name[:32]}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
