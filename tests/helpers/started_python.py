"""Programs of rvtrace as processes of their own that begin with the modules loaded, which is most of a start.

A server loads `rvtrace_gdb` once and forks for each command. The forked process has the arguments, the folder, the
environment and the descriptors of a new one, its own standard streams and its own end. What it has not is a start of
Python: whether a command loads what it needs is seen by tests that start one.
"""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.main import COMMANDS, main

HOME = Path(__file__).resolve().parents[2]
CLOSED = -1
"""A descriptor that the process does not have."""


@cache
def _server() -> socket.socket:
    """The connection to this process's server, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.started_python", str(theirs.fileno())],
            cwd=HOME, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True,
        )  # fmt: skip
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


class Started:
    """`rvtrace WORDS` on these descriptors; `wait` says how it ends. *environ*: all of its environment."""

    def __init__(
        self, words: Sequence[str], descriptors: tuple[int, int, int], cwd: Path = HOME,
        environ: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        is_open = [descriptor != CLOSED for descriptor in descriptors]
        self._answer, end = socket.socketpair()
        request = {"words": list(words), "cwd": str(cwd), "environ": environ or dict(os.environ), "open": is_open}
        with end:
            passed = [descriptor for descriptor in descriptors if descriptor != CLOSED]
            socket.send_fds(_server(), [json.dumps(request).encode()], [end.fileno(), *passed])

    def wait(self) -> int:
        """Its exit status; -n after signal n, as in `subprocess`."""
        with self._answer:
            return int(self._answer.makefile().readline())


def rvtrace(
    *words: object, stdin: int | None = None, stdout: int | None = None, stderr: int | None = None, cwd: Path = HOME,
    environ: dict[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":  # fmt: skip
    """Run `rvtrace WORDS` to its end. Standard input is empty, and what is written is returned, unless other
    descriptors are given, or CLOSED.
    """
    arguments = [str(word) for word in words]
    with open(os.devnull, "rb") as nothing, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        given = [
            default.fileno() if descriptor is None else descriptor
            for descriptor, default in ((stdin, nothing), (stdout, out), (stderr, errors))
        ]
        status = Started(arguments, (given[0], given[1], given[2]), cwd, environ).wait()
        return subprocess.CompletedProcess(arguments, status, _text(out), _text(errors))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _serve(requests: socket.socket) -> None:
    """Start a process for each request, up to the end of the connection."""
    for row in COMMANDS:
        row.add_arguments(CommandParser())
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for a command
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not data:
            return
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _run(json.loads(data), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _run(request: dict[str, Any], answer: int, *descriptors: int) -> NoReturn:
    """Run the command in a process of its own, and answer with its exit status."""
    command = os.fork()
    if command:
        _, status = os.waitpid(command, 0)
        os.write(answer, str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    left = list(descriptors)
    for number, is_open in enumerate(request["open"]):
        if is_open:
            os.dup2(left.pop(0), number)
        else:
            os.close(number)
    os.closerange(3, 64)
    streams = ((0, "r", None), (1, "w", None), (2, "w", "backslashreplace"))
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, errors=errors, closefd=False) if is_open else None  # noqa: SIM115 - as long as the process
        for (number, mode, errors), is_open in zip(streams, request["open"], strict=True)
    )
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = ["rvtrace", *request["words"]]
    raise SystemExit(main())


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
