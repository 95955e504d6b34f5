"""The Waveform Control Protocol, version 0: JSON objects, each with a NUL behind it, over TCP.

The viewer is the server of the protocol, whoever connects: Surfer waits for a client (`wcp_server_start`), or connects
to one (`--wcp-initiate PORT`). The client greets first and names the events that it takes; the viewer answers with the
commands that it has. Surfer 0.6 names its command `set_cursor` as `cursor_set` there, so what is named is not relied
on.

That the user has moved the cursor is the event `cursor_set` of the protocol. VaporView sends it; Surfer 0.6 does not,
and a branch of Surfer sends `cursor_moved` in its place. There is no command that asks for the cursor.
"""

import json
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO, Any

from rvtrace_gdb.session.waves.viewer import (
    ViewerError,
    ViewerGone,
    ViewerLink,
    ViewerMessage,
    ViewerProtocol,
    listening,
)
from rvtrace_gdb.support import typed
from rvtrace_gdb.support.text import open_problem, printable

VERSION = "0"
PORT = 54321
"""Where Surfer waits, unless it is configured otherwise."""
_CURSOR_EVENTS = ("cursor_set", "cursor_moved")
_EVENTS = ("waveforms_loaded", *_CURSOR_EVENTS)
_CONNECT_SECONDS = 2.0
_LOOK = 0.1
"""Seconds between two looks at whether a process still runs."""


def _encoded(kind: str, **fields: object) -> bytes:
    return json.dumps({"type": kind, **fields}).encode() + Wcp.end


class Wcp(ViewerProtocol):
    """The messages of the protocol. *file*: what the viewer is to load, if anything."""

    end = b"\0"

    def __init__(self, file: str | None = None) -> None:
        load = b"" if file is None else _encoded("command", command="load", source=file)
        self.greeting = _encoded("greeting", version=VERSION, commands=_EVENTS) + load

    def shown(self, time: int) -> bytes:
        commands = ("set_cursor", "set_viewport_to")
        return b"".join(_encoded("command", command=name, timestamp=time) for name in commands)

    def read(self, data: bytes) -> ViewerMessage:
        try:
            message = typed.table(json.loads(data))
        except (ValueError, RecursionError):
            message = None
        if message is None:
            raise ViewerGone("what answers there is no viewer that speaks WCP")
        kind = message.get("type")
        if kind == "greeting":
            if message.get("version") != VERSION:
                raise ViewerGone(f"it speaks version {str(message.get('version'))[:20]!r} of WCP, not {VERSION}")
            return ViewerMessage(ready=True)
        if kind == "error":
            said = typed.text(message.get("message")) or typed.text(message.get("error"))
            return ViewerMessage(error=said or "without a reason")
        return _event_message(message) if kind == "event" else ViewerMessage()


def _event_message(message: dict[str, object]) -> ViewerMessage:
    if message.get("event") == "waveforms_loaded":
        return ViewerMessage(file=typed.text(message.get("source")))
    time = message.get("timestamp")
    if message.get("event") not in _CURSOR_EVENTS or isinstance(time, bool) or not isinstance(time, int | float):
        return ViewerMessage()
    with suppress(OverflowError, ValueError):
        return ViewerMessage(cursor=int(time))
    return ViewerMessage()


class ServerLink(ViewerLink):
    """A connection to a viewer that waits for clients."""

    def __init__(self, host: str, port: int) -> None:
        """Raises ViewerError."""
        self._place = f"{printable(host)}:{port}"
        try:
            self._connection: socket.socket | None = socket.create_connection((host, port), _CONNECT_SECONDS)
        except (OSError, ValueError, OverflowError) as error:
            raise ViewerError(
                f"no viewer waits at {self._place}: {open_problem(error)} (in Surfer, type a space and"
                " `wcp_server_start`)"
            ) from None

    def connect(self, goes_on: Callable[[], bool]) -> socket.socket:
        connection, self._connection = self._connection, None
        if connection is None:
            raise ViewerGone("it has ended the connection")
        return connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class WaitingLink(ViewerLink):
    """A viewer that connects to us, at a port of this machine; perhaps one that is started for it."""

    def __init__(self, port: int = 0) -> None:
        """Raises ViewerError."""
        self._listener = listening(port)
        self.port: int = self._listener.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._is_connected = False

    def start(self, command: Sequence[str]) -> None:
        """Start the viewer, which stays when the session ends. Raises ViewerError."""
        self._said = TemporaryFile()  # noqa: SIM115 - `close` closes it
        end: Any = subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(
                command, stdin=end, stdout=end, stderr=self._said, start_new_session=True, close_fds=True
            )
        except OSError as error:
            self.close()
            raise ViewerError(f"{command[0]} cannot be started: {open_problem(error)}") from None

    def connect(self, goes_on: Callable[[], bool]) -> socket.socket:
        self._listener.settimeout(_LOOK)
        while goes_on():
            with suppress(TimeoutError):
                connection = self._listener.accept()[0]
                self._listener.close()
                self._is_connected = True
                return connection
            if self._process is not None and self._process.poll() is not None:
                raise ViewerGone(self.end() or "it has ended")
        raise ViewerGone("it was not waited for any more")

    def end(self) -> str:
        """Return the last line that a process said which ended before it was connected."""
        if self._is_connected or self._process is None or self._process.poll() is None or self._said is None:
            return ""
        self._said.seek(0)
        lines = [line.strip() for line in self._said.read().decode(errors="replace").splitlines() if line.strip()]
        return f"it has ended with status {self._process.returncode}{': ' if lines else ''}{' '.join(lines[:1])[:200]}"

    def close(self) -> None:
        self._listener.close()
        if self._said is not None:
            self._said.close()
