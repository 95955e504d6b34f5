"""Files a command writes: whole, or not at all."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from support.errors import RvtraceError


class OutputError(RvtraceError):
    """A file that cannot be written."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(f"{path}: cannot be written: {error.strerror or error}")
        self.path = path


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A file to write to, which becomes *path* when the context ends without an exception; `-` is standard output.

    Pipes and devices are written to as they are. Raises OutputError.
    """
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as device:
                yield device
        else:
            yield from _through_temporary(Path(path))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(path, error) from None


def _through_temporary(path: Path) -> Iterator[BinaryIO]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
