"""One side of the proxy: a connection, taken apart into packets, with its own state of acknowledgment.

Nothing here blocks: what the other end does not take yet is kept until it does.
"""

import contextlib
import socket

from rvtrace_gdb.session.proxy.packets import Item, Kind, Stream, TooLong, frame

_AT_ONCE = 1 << 17  # bytes
_LOOKED_AT = 256
MUCH = 1 << 20  # bytes not taken by the other end: reason enough not to read more for it


class WireGone(Exception):
    """The connection has ended. *why*: None when the other end closed it."""

    def __init__(self, why: str | None = None) -> None:
        super().__init__(why or "closed")
        self.why = why


class Wire:
    """A connected socket that carries packets. *acknowledges*: until QStartNoAckMode, both ends do."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        with contextlib.suppress(OSError):  # not TCP, in a test
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.acknowledges = True
        self._stream = Stream()
        self._unsent = bytearray()
        self._last = b""
        self._settled = 0  # packets that were acknowledged before they came
        self._owed = b""  # acknowledgments: what is more urgent is sent first

    def fileno(self) -> int:
        return self.connection.fileno()

    def close(self) -> None:
        """Also for another process that has it."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    @property
    def unsent(self) -> int:
        """Bytes that the other end has not taken yet."""
        return len(self._unsent)

    def packet_to_come(self) -> bytes:
        """How the newest packet begins that has arrived and is still to be received; nothing where there is none."""
        try:
            _, begin, body = self.connection.recv(_LOOKED_AT, socket.MSG_PEEK).rpartition(b"$")
        except OSError:
            return b""
        return body[:1] if begin else b""

    def receive(self) -> list[Item]:
        """The packets, notifications and interrupts that are there now, acknowledged. Raises WireGone."""
        try:
            data = self.connection.recv(_AT_ONCE)
            if not data:
                raise WireGone
            items = self._stream.feed(data)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError as error:
            raise WireGone(error.strerror or str(error)) from error
        except TooLong:
            raise WireGone("what came is not the remote protocol") from None
        if not self.acknowledges:
            return [item for item in items if item.kind is not Kind.ACK and item.kind is not Kind.NAK]
        return [item for item in items if self._is_new(item)]

    def _is_new(self, item: Item) -> bool:
        """Acknowledges a packet. Whether it is one to look at."""
        if item.kind is Kind.PACKET:
            intact = item.is_intact()
            if self._settled:
                self._settled -= 1
                return True
            self._owed += b"+" if intact else b"-"
            return intact
        if item.kind is Kind.NAK and self._last:
            self.write(self._last)
        return item.kind is Kind.INTERRUPT or (item.kind is Kind.NOTIFICATION and item.is_intact())

    def send(self, raw: bytes) -> None:
        """A framed packet. Raises WireGone."""
        if self.acknowledges:
            self._last = raw
        if self._owed:
            raw, self._owed = self._owed + raw, b""
        self.write(raw)

    def send_body(self, body: bytes) -> None:
        """A packet that is yet to be framed. Raises WireGone."""
        self.send(frame(body))

    def send_all(self, bodies: list[bytes]) -> None:
        """Packets that the other end is to answer one after the other. Their answers are acknowledged beforehand: the
        other end looks at what was sent only when it has answered, and TCP does not damage them. Raises WireGone.
        """
        if not self.acknowledges or len(bodies) == 1:
            self.send(b"".join(map(frame, bodies)))
            return
        self._settled += len(bodies) - 1
        self.send(b"+".join(map(frame, bodies)))

    def settle(self) -> None:
        """Sends the acknowledgments that did not go with a packet, before waiting for more. Raises WireGone."""
        if self._owed:
            owed, self._owed = self._owed, b""
            self.write(owed)

    def write(self, data: bytes) -> None:
        """Bytes as they are. Raises WireGone."""
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self.connection.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            raise WireGone(error.strerror or str(error)) from error
        if sent < len(data):
            self._unsent += data[sent:]

    def flush(self) -> None:
        """What is unsent, now that the other end takes something. Raises WireGone."""
        waiting, self._unsent = bytes(self._unsent), bytearray()
        if waiting:
            self.write(waiting)
