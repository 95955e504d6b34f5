"""A connection to a waveform viewer, in a thread of its own: nobody waits for a viewer, whatever it does.

`Viewer` keeps the time that is to be shown last, and sends it when the viewer is there; and it keeps the time to which
the user has moved the cursor. What the messages are is in a `ViewerProtocol`.
"""

import contextlib
import logging
import select
import socket
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import NamedTuple

from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import open_problem, printable

log = logging.getLogger("rvtrace.session")
SEND_SECONDS = 5.0
"""A viewer that takes nothing for so long is given up."""
_ECHO_SECONDS, _SENT_AT_MOST = 2.0, 64
"""For so long, and so many, the times that were sent are not taken for the user's when the viewer says them."""
_MOST = 1 << 20
"""Bytes of a message, at most."""
_AT_ONCE = 1 << 16


class ViewerError(RvtraceError):
    """The viewer cannot be reached, or does not behave like one."""


class ViewerGone(Exception):
    """The connection is over; the text says why."""


class ViewerMessage(NamedTuple):
    """What a viewer says. *ready*: it understands us; *cursor*: where the cursor has moved; *file*: what it shows;
    *error*: what it refuses.
    """

    ready: bool = False
    cursor: int | None = None
    file: str | None = None
    error: str | None = None


class ViewerProtocol(ABC):
    """The messages of a kind of viewers. *end*: the byte behind each of them; *greeting*: what is sent first."""

    end: bytes
    greeting: bytes = b""

    @abstractmethod
    def shown(self, time: int) -> bytes:
        """Return the messages that move the cursor to a time, and make it visible."""

    @abstractmethod
    def read(self, data: bytes) -> ViewerMessage:
        """Return what a message says. Raises ViewerGone where the other end is no such viewer."""


class ViewerLink(Closeable):
    """The way to a viewer, which may be a process that was started for it."""

    @abstractmethod
    def connect(self, goes_on: Callable[[], bool]) -> socket.socket:
        """Return a connection, as soon as there is one. Raises OSError and ViewerGone, also if *goes_on* is False."""

    def end(self) -> str:
        """Return why the connection may have ended, "" if nothing more is known."""
        return ""


class Viewer(Closeable):
    """A viewer. *name*: for the user. *news*: called, in another thread, when the user has moved the cursor."""

    def __init__(self, name: str, link: ViewerLink, protocol: ViewerProtocol, news: Callable[[], object]) -> None:
        self.name, self._link, self._protocol, self._news = name, link, protocol, news
        self.cursor: int | None = None
        """Where the user has put the cursor since the debugger moved it last; None: nowhere."""
        self.file: str | None = None
        """The file that the viewer says it shows."""
        self.ended: str | None = None
        """Why the connection is over; None while it lasts, or is to come."""
        self.error: str | None = None
        """What the viewer refused last."""
        self.is_reporting = False
        """Whether it has ever said where its cursor is."""
        self.ready = threading.Event()
        """Whether the viewer is there, or the connection is over."""
        self._wanted: int | None = None
        self._last: int | None = None
        self._sent: deque[tuple[float, int]] = deque(maxlen=_SENT_AT_MOST)
        self._closed = False
        self._waker, self._woken = socket.socketpair()
        threading.Thread(target=self._talk_until_closed, name="viewer", daemon=True).start()

    @property
    def is_connected(self) -> bool:
        """Whether the viewer follows now."""
        return self.ready.is_set() and self.ended is None

    def move_cursor(self, time: int) -> None:
        """Move the cursor of the viewer, soon."""
        if time != self._last:
            self._last = self._wanted = time
            self.cursor = None
            self._wake()

    def agree(self) -> None:
        """Note that the debugger has gone to the cursor, which stays where the user has put it."""
        self.cursor = None

    def close(self) -> None:
        """End the connection, and leave the viewer as it is."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # the thread has ended
            self._waker.send(b"w")

    def _talk_until_closed(self) -> None:
        try:
            with self._link.connect(lambda: not self._closed) as connection:
                connection.settimeout(SEND_SECONDS)
                connection.sendall(self._protocol.greeting)
                self._talk(connection)
        except (ViewerGone, OSError, ValueError) as error:
            said = str(error) if isinstance(error, ViewerGone) else open_problem(error)
            self.ended = self._link.end() or said
        except Exception as error:
            log.exception("viewer")
            self.ended = f"internal error ({type(error).__name__})"
        finally:
            self._waker.close()
            self._woken.close()
            self._link.close()
            self.ready.set()
            self._news()

    def _talk(self, connection: socket.socket) -> None:
        buffer = b""
        while not self._closed:
            if self.ready.is_set() and self._wanted is not None:
                time, self._wanted = self._wanted, None
                self._sent.append((monotonic(), time))
                connection.sendall(self._protocol.shown(time))
            readable = select.select([connection, self._woken], [], [])[0]
            if self._woken in readable:
                self._woken.recv(_AT_ONCE)
            if connection in readable:
                received = connection.recv(_AT_ONCE)
                if not received:
                    raise ViewerGone("it has ended the connection")
                buffer += received
                *messages, buffer = buffer.split(self._protocol.end)
                if len(buffer) > _MOST:
                    raise ViewerGone("what it sends has no end")
                self._take(filter(None, messages))

    def _take(self, messages: Iterator[bytes]) -> None:
        for data in messages:
            message = self._protocol.read(data)
            if message.ready:
                self.ready.set()
            if message.file is not None:
                self.file = message.file
            if message.error is not None:
                self.error = printable(message.error)
            if message.cursor is not None:
                self._take_cursor(message.cursor)

    def _take_cursor(self, time: int) -> None:
        """Note that the cursor has moved, unless we have moved it."""
        self.is_reporting = True
        now = monotonic()
        while self._sent and self._sent[0][0] < now - _ECHO_SECONDS:
            self._sent.popleft()
        sent = [time for _, time in self._sent]
        if time in sent:
            for _ in range(sent.index(time) + 1):
                self._sent.popleft()
        elif time != self._last:
            self._last = self.cursor = time
            self._news()


def listening(port: int) -> socket.socket:
    """Return a socket that waits at a port of this machine, 0: any. Raises ViewerError."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise ViewerError(f"cannot wait for a viewer at port {port}: {open_problem(error)}") from None
