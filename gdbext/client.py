"""The session process as gdb sees it: which Python runs it, and one request at a time over its standard streams.

Requests and answers are JSON objects, one per line. In the middle of a request the session may need something from gdb:
it sends {"id", "need"}, which is answered by {"answer", "result"} or {"answer", "error"}. A request can be interrupted
by KeyboardInterrupt, which gdb raises on Ctrl-C: the session is requested to stop, and keeps what it has captured. The
progress that the session reports is passed to a callable.

gdb's own Python is not the one that rvtrace was installed for: an activated virtual environment is not seen inside gdb,
and `sys.executable` there is a guess. The session's Python is therefore found from the folder of the sourced file, or
from environment variables. This module runs with and without gdb.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional


def interpreter_of(environment: str) -> str:
    """Return the path of the Python in a virtual environment directory (it may not exist)."""
    parts = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python3")
    return os.path.join(environment, *parts)


def candidates(home: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return (interpreter, origin) in the order of preference; *home* is the directory of the sourced rvtrace.py."""
    if environ.get("RVTRACE_PYTHON"):
        yield environ["RVTRACE_PYTHON"], "$RVTRACE_PYTHON"
    if environ.get("RVTRACE_VENV"):
        yield interpreter_of(environ["RVTRACE_VENV"]), "$RVTRACE_VENV"
    if os.path.basename(home) in ("site-packages", "dist-packages"):
        # <env>/lib/python3.x/site-packages on POSIX, <env>/Lib/site-packages on Windows
        up = 2 if os.name == "nt" else 3
        environment = os.path.normpath(os.path.join(home, *[".."] * up))
        yield interpreter_of(environment), "the environment rvtrace is installed in"
    yield interpreter_of(os.path.join(home, ".venv")), "the .venv beside rvtrace.py"
    if environ.get("VIRTUAL_ENV"):
        yield interpreter_of(environ["VIRTUAL_ENV"]), "$VIRTUAL_ENV"


def find_interpreter(home: str, environ: Mapping[str, str]) -> str:
    """Return the path of the Python to run the session with.

    Raises LookupError whose text is the line for the user. The path in a variable must exist: falling back silently to
    another environment would hide the mistake.
    """
    for path, why in candidates(home, environ):
        if os.path.exists(path):
            return path
        if why.startswith("$RVTRACE"):
            raise LookupError(f"{why} leads to {path}, which does not exist: correct it, or unset it")
    raise LookupError(
        f"no Python environment for rvtrace beside {os.path.join(home, 'rvtrace.py')}: run `make setup` in {home},"
        " or set RVTRACE_VENV to the virtual environment rvtrace is installed in"
    )


def clean_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a child process: gdb may have set PYTHONHOME or PYTHONPATH for its own Python."""
    return {key: value for key, value in environ.items() if not key.startswith("PYTHON")}


def explain_failure(interpreter: str, stderr: str, home: str) -> str:
    """Return the line for the user about a session process that ended before it answered."""
    last = stderr.strip().splitlines()[-1] if stderr.strip() else "it ended without an error message"
    if "No module named" in last:
        return (
            f"{interpreter} does not have rvtrace ({last}): run `make setup` in {home},"
            f" or `{interpreter} -m pip install -e {home}`"
        )
    return f"the rvtrace session ({interpreter} -m rvtrace_gdb.session) could not start: {last}"


@contextlib.contextmanager
def defer_interrupt() -> Iterator[None]:
    """Defer Ctrl-C to the end of this context.

    Interrupted between a packet and its reply, gdb 13 takes the reply for that of the next packet, and crashes.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_session(interpreter: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the session process, in a POSIX session of its own, so that Ctrl-C in gdb's terminal does not end it.

    SIGINT is blocked in it until it ignores it: Python would end with a traceback.
    """
    with defer_interrupt():
        return subprocess.Popen(
            [interpreter, "-I", "-m", "rvtrace_gdb.session"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_environ(environ),
            start_new_session=True,
        )


ProgressCallback = Callable[[str, int, Optional[int]], None]
Answerer = Callable[[dict[str, Any]], dict[str, Any]]
"""Maps a need of the session to {"result": ...} or {"error": {"message", "kind"}}."""

TRACE_GOES_ON = " (a running trace continues in the target: `trace start` takes it over)"
_NOT_DONE: dict[str, Any] = {"error": {"message": "gdb failed to do what the session needs", "kind": "Failed"}}


class SessionError(Exception):
    """An error that the session answered, or its end. `str()`: the line for the user; *kind*: the session's class."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Client:
    """The session process; it is started by the first request, and again by the next request after it has ended."""

    def __init__(
        self,
        home: str,
        progress: ProgressCallback | None = None,
        answerer: Answerer | None = None,
        idle: Callable[[], object] | None = None,
    ) -> None:
        """*idle* is called every 0.1 s while the session sends nothing."""
        self._home = home
        self._progress = progress
        self._idle = idle
        self._answerer = answerer
        self._process: subprocess.Popen[bytes] | None = None
        self._is_end_reported = False
        self._end = ""  # the line about the last process that has ended
        self._started = 0
        self._buffer = b""
        self._last_id = 0
        self.late: Any = None
        """The result of the request that was interrupted last, if it had one nevertheless."""

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def session(self) -> int | None:
        """The number of the running session, counted from 1; None if none is running."""
        return self._started if self.running else None

    def request(self, method: str, **params: Any) -> Any:
        """Return the result of *method*. Raises SessionError, or KeyboardInterrupt after the session was stopped."""
        if not self.running:
            if self._process is not None and not self._is_end_reported:  # the user must know that its trace is lost
                raise self._gone()
            self._start_session()
        return self._exchange(method, params)

    def close(self) -> None:
        """End the session process: it ends by itself when its standard input does."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                with contextlib.suppress(OSError):  # unwritten data, which the process cannot take any more
                    stream.close()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start_session(self) -> None:
        self.close()
        try:
            interpreter = find_interpreter(self._home, os.environ)
            self._process = start_session(interpreter, os.environ)
        except LookupError as error:
            raise SessionError(str(error), "NoEnvironment") from None
        except OSError as error:
            text = f"the rvtrace session ({interpreter}) cannot be started: {error.strerror}"
            raise SessionError(text, "NoSession") from None
        self._buffer, self._is_end_reported = b"", False
        self._started += 1
        try:
            self._exchange("hello", {})
        except SessionError:
            stderr = self._stderr()
            self.close()
            raise SessionError(explain_failure(interpreter, stderr, self._home), "NoSession") from None

    def _stderr(self) -> str:
        process = self._process
        if process is None or process.stderr is None or process.poll() is None:
            return ""
        return process.stderr.read().decode(errors="replace")

    def _exchange(self, method: str, params: dict[str, Any]) -> Any:
        self._last_id += 1
        number = self._last_id
        self._send({"id": number, "method": method, "params": params})
        try:
            return self._wait_for_result(number)
        except KeyboardInterrupt:
            self.late = None
            self.late = self._cancel(number)
            raise

    def _cancel(self, number: int) -> Any:
        """Request the session to stop, and read its reply, so that the next request does not see it.

        Return the result if it has one nevertheless: only a part of the work was left out.
        """
        try:
            self._send({"cancel": number})
            return self._wait_for_result(number, timeout=5.0)
        except SessionError:
            return None

    def _send(self, message: dict[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise SessionError("the rvtrace session is not running", "SessionGone")
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except (BrokenPipeError, OSError):
            raise self._gone() from None

    def _wait_for_result(self, number: int, timeout: float | None = None) -> Any:
        while True:
            message = json.loads(self._read_line(timeout))
            if "need" in message:  # also of an interrupted request: it restores what it changed
                self._answer_need(message)
            elif message.get("id") != number:
                continue
            elif "progress" in message:
                self._report_progress(message["progress"])
            elif "error" in message:
                raise SessionError(message["error"]["message"], message["error"].get("kind", ""))
            else:
                return message.get("result")

    def _answer_need(self, message: dict[str, Any]) -> None:
        """Do what the session needs. It gets an answer even if this is interrupted, because it waits for one."""
        found = _NOT_DONE
        with defer_interrupt():
            try:
                if self._answerer is not None:
                    found = self._answerer(message["need"])
            except KeyboardInterrupt:
                found = {"error": {"message": "interrupted", "kind": "KeyboardInterrupt"}}
                raise
            finally:
                self._send({"answer": message["id"], "question": message.get("question"), **found})

    def _report_progress(self, progress: dict[str, Any]) -> None:
        if self._progress is not None:
            self._progress(progress["label"], progress["done"], progress.get("total"))

    def _read_line(self, timeout: float | None) -> bytes:
        process = self._process
        if process is None or process.stdout is None:
            raise SessionError("the rvtrace session is not running", "SessionGone")
        descriptor = process.stdout.fileno()
        while b"\n" not in self._buffer:
            # A short wait per turn: gdb delivers Ctrl-C between Python instructions, not inside select().
            ready, _, _ = select.select([descriptor], [], [], 0.1 if timeout is None else timeout)
            if ready:
                data = os.read(descriptor, 1 << 16)
                if not data:
                    raise self._gone()
                self._buffer += data
            elif timeout is not None:
                raise SessionError("the rvtrace session does not answer", "SessionTimeout")
            elif self._idle is not None:
                self._idle()
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _gone(self) -> SessionError:
        """Return the error for a session that has ended; the next request starts another session."""
        return SessionError(f"{self.end()}; the next trace command starts a new one{TRACE_GOES_ON}", "SessionGone")

    def end(self) -> str:
        """Return a line that says how the last session has ended; it counts as reported to the user then.

        The session has ended or is about to. If another one is running, the line is about the one before.
        """
        if self._end and self.running:
            return self._end
        status = None if self._process is None else self._process.wait()
        self._is_end_reported = True
        self._end = f"the rvtrace session has ended unexpectedly{_exit_text(status)}"
        return self._end


def _exit_text(status: int | None) -> str:
    """Return how a process ended. When memory is short, Linux kills the largest by signal 9, Python aborts (6)."""
    if not status:
        return ""
    if status > 0:
        return f" with status {status}"
    killed = f", killed by signal {-status}"
    if -status not in (signal.SIGKILL, signal.SIGABRT):
        return killed
    return f"{killed}, as happens when there is not enough memory (a shorter trace takes less)"
