"""Reference simulators that write what they execute to a file: reading it while they run, and no longer."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TextIO


@contextmanager
def log_of(command: list[str], errors: int | IO[str]) -> Iterator[TextIO]:
    """What *command* writes to the file (a pipe) that its arguments name as `{log}`. The end of the context kills it.

    *errors*: where its standard error goes, as for Popen.
    """
    end, log_end = os.pipe()
    with open(end) as log:
        try:
            command = [argument.replace("{log}", f"/dev/fd/{log_end}") for argument in command]
            process = subprocess.Popen(
                command, pass_fds=(log_end,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
            )
        finally:
            os.close(log_end)
        try:
            yield log
        finally:
            process.kill()
            process.wait()
