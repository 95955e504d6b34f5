"""Programs of rvtrace as processes of their own that begin with the modules loaded, which is most of a start.

A server loads `rvtrace_gdb` once and forks for each command. The forked process has the arguments, the folder, the
environment and the descriptors of a new one, its own standard streams and its own end. What it has not is a start of
Python: whether a command loads what it needs is seen by tests that start one.

`rvtrace` and `Started` start a command. Programs that start one by themselves, gdb and a Rig, are given `python_stub()`
instead of the interpreter.
"""

import atexit
import gc
import importlib
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from pkgutil import walk_packages
from typing import IO, Any, NoReturn

HOME = Path(__file__).resolve().parents[2]
PYTHON = sys.executable
CLOSED = -1
"""A descriptor that the process does not have."""


@cache
def _folder() -> Path:
    """The folder of this process's server, with its socket and the stub; both end with this process."""
    folder = tempfile.TemporaryDirectory(prefix="rvtrace-")
    path = Path(folder.name)
    stub = path / "python3"
    names = f"SERVER, PYTHON = {str(path / 'server')!r}, {PYTHON!r}"
    text = (Path(__file__).parent / "python_stub.py").read_text().replace('SERVER, PYTHON = "", ""', names)
    stub.write_text(f"#!{PYTHON} -IS\n{text}")
    stub.chmod(0o755)
    server = subprocess.Popen(
        [PYTHON, "-m", "tests.helpers.started_python", str(path)], cwd=HOME, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    assert server.stdout.readline(), "the server of started_python did not start"
    for end in (folder.cleanup, server.kill, partial(_ended, server), server.stdin.close):  # the last one first
        atexit.register(end)
    return path


def _ended(server: "subprocess.Popen[bytes]") -> None:
    """Wait for a server whose standard input has ended, but not for ever."""
    with suppress(subprocess.TimeoutExpired):
        server.wait(60)


def python_stub() -> str:
    """Return the path of a program that behaves as Python, and starts some of rvtrace's programs from the server."""
    return str(_folder() / "python3")


class Started:
    """`rvtrace WORDS` on these descriptors; `wait` says how it ends. *environ*: all of its environment."""

    def __init__(
        self, words: Sequence[str], descriptors: tuple[int, int, int], cwd: Path = HOME,
        environ: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        is_open = [descriptor != CLOSED for descriptor in descriptors]
        request = {"module": "rvtrace_gdb", "words": list(words), "cwd": str(cwd), "open": is_open}
        passed = [descriptor for descriptor in descriptors if descriptor != CLOSED]
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._server.connect(str(_folder() / "server"))
        data = marshal.dumps({**request, "environ": dict(environ or os.environ)})
        socket.send_fds(self._server, [data], passed)

    @cached_property
    def pid(self) -> int:
        """Its process number."""
        return int(self._server.recv(100))

    def wait(self) -> int:
        """Its exit status; -n after signal n, as in `subprocess`."""
        with self._server:
            _ = self.pid  # which is said first
            return int(self._server.recv(100))


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


def _serve(folder: Path) -> None:
    """Start a process for each connection, up to the end of standard input.

    The modules are loaded when the first one is wanted: most tests want none.
    """
    signal.signal(signal.SIGCHLD, _reap)  # those that wait for a command: their time counts as that of the tests
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(folder / "server"))
        listener.listen(100)
        os.write(1, b"listening\n")
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            _load()
            if not os.fork():
                listener.close()
                _attend(connection)
            connection.close()


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


@cache
def _load() -> None:
    """Load what most programs need, once for all of them. A Rig that is started in one of them starts quickly, too."""
    from rvtrace_gdb.console.bench import rig
    from rvtrace_gdb.console.commands import CommandParser
    from rvtrace_gdb.console.main import COMMANDS

    rig.PYTHON = sys.argv[1] + "/python3"
    for row in COMMANDS:
        row.add_arguments(CommandParser())
    for room in ("controlregs", "decode", "session"):
        package = importlib.import_module(f"rvtrace_gdb.{room}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    gc.freeze()


def _attend(connection: socket.socket) -> NoReturn:
    """Start the command that is asked for, and say how it ends. Who asked is gone, so is the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    command = os.fork()
    if not command:
        connection.close()
        _run(marshal.loads(data), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.send(str(command).encode())
    process = os.pidfd_open(command)
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.register(connection, select.POLLHUP)
    if not any(ready == process for ready, _ in poll.poll()):
        os.kill(command, signal.SIGKILL)
    _, status = os.waitpid(command, 0)
    with suppress(OSError):
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Be the process of the command. `ps -o comm` shows its name."""
    Path("/proc/self/comm").write_text((request["words"] or [request["module"][-7:]])[0])
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
    module = "rvtrace_gdb.console.main" if request["module"] == "rvtrace_gdb" else f"{request['module']}.__main__"
    try:
        status = importlib.import_module(module).main()
    except SystemExit as end:
        status = end.code
    _end(0 if status is None else status)


def _end(status: object) -> NoReturn:
    """End as Python does, but leave the memory of all modules to the system: to take it apart takes longer than most
    commands. What cannot be ended that way, because output cannot be written, is left to Python.
    """
    if not isinstance(status, int) or threading.active_count() > 1:
        raise SystemExit(status)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        raise SystemExit(status) from None
    atexit._run_exitfuncs()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
