"""Sockets that carry packets of gdb's remote serial protocol, with their own state of acknowledgment.

`GdbPacketStream` splits bytes into packets: framing, escapes, repeats. Nothing here interprets a packet. `Wire` is one
side of the proxy. It never blocks: it keeps what the other end does not accept yet.

Source: GDB manual, "Overview" of the remote protocol (packets, acknowledgment, escapes, run lengths), "Notification
Packets", "Interrupts".
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple
from zlib import adler32

from rvtrace_gdb.support.text import printable

LONGEST = 1 << 25
"""Bytes of one packet. OpenOCD and QEMU offer 16 KB at most, so a sender of more is neither gdb nor a stub."""
_ACK, _NAK, _INTERRUPT, _PACKET, _NOTIFICATION = b"+-\x03$%"
_SPECIAL = b"#$}*"
_ESCAPES = {byte: bytes([ord("}"), byte ^ 0x20]) for byte in _SPECIAL}
_REPEAT = ord("*")
_REPEAT_BIAS = 29
_SUMMED = 256  # bytes


class GdbPacketKind(Enum):
    """The kinds of items in a stream."""

    PACKET = auto()
    NOTIFICATION = auto()
    ACK = auto()
    NAK = auto()
    INTERRUPT = auto()


class GdbPacket(NamedTuple):
    """An item of a stream. *raw*: the bytes as received; *body*: those between "$" and "#", still escaped."""

    kind: GdbPacketKind
    raw: bytes
    body: bytes = b""

    def is_intact(self) -> bool:
        """Whether the checksum is right. It is not checked where packets are not acknowledged."""
        try:
            return int(self.raw[-2:], 16) == checksum(self.body)
        except ValueError:
            return False


class TooLong(Exception):
    """The data received does not follow the protocol."""


_SINGLE = {
    _ACK: GdbPacket(GdbPacketKind.ACK, b"+"),
    _NAK: GdbPacket(GdbPacketKind.NAK, b"-"),
    _INTERRUPT: GdbPacket(GdbPacketKind.INTERRUPT, b"\x03"),
}


class GdbPacketStream:
    """Splits what one side sends into items, wherever the pieces end. Meaningless bytes between packets are dropped."""

    def __init__(self) -> None:
        self._rest = b""
        self._searched = 0  # bytes of the rest in which the end of its first packet was already searched

    def feed(self, data: bytes) -> list[GdbPacket]:
        """Return all items that are complete now. Raises TooLong."""
        buffer = self._rest + data if self._rest else data
        items: list[GdbPacket] = []
        at, size = 0, len(buffer)
        while at < size:
            mark = buffer[at]
            if mark not in (_PACKET, _NOTIFICATION):
                if mark in _SINGLE:
                    items.append(_SINGLE[mark])
                at += 1
                continue
            end = buffer.find(b"#", at + max(self._searched, 1))
            if end < 0 or end + 3 > size:
                self._searched = (size if end < 0 else end) - at
                break
            self._searched = 0
            items.append(_item(buffer[at : end + 3]))
            at = end + 3
        self._rest = buffer[at:]
        if len(self._rest) > LONGEST:
            raise TooLong
        return items


def _item(raw: bytes) -> GdbPacket:
    """Return the item of a packet. A "$" inside begins another packet: a body contains none."""
    again = raw.rfind(b"$", 1)
    if again > 0:
        raw = raw[again:]
    kind = GdbPacketKind.PACKET if raw[0] == _PACKET else GdbPacketKind.NOTIFICATION
    return GdbPacket(kind, raw, raw[1:-3])


def frame(body: bytes) -> bytes:
    """Return the packet of a *body* whose data are already escaped."""
    return b"$%b#%02x" % (body, checksum(body))


def checksum(body: bytes) -> int:
    """Return the sum of the bytes modulo 256.

    The lower half of Adler-32 is a sum of bytes, and fast; 256 bytes do not exceed its range.
    """
    if len(body) <= _SUMMED:
        return sum(body) & 0xFF
    pieces = range(0, len(body), _SUMMED)
    return sum([(adler32(body[at : at + _SUMMED]) & 0xFFFF) - 1 for at in pieces]) & 0xFF


def escape(data: bytes) -> bytes:
    """Escape bytes for a body."""
    if not any(byte in data for byte in _SPECIAL):
        return data
    return b"".join(_ESCAPES.get(byte) or bytes([byte]) for byte in data)


def unescape(body: bytes) -> bytes:
    """Resolve the escapes and repeats of a body. Raises ValueError if it ends inside one."""
    if b"}" not in body and b"*" not in body:
        return body
    out = bytearray()
    at = 0
    while at < len(body):
        byte = body[at]
        if byte not in b"}*":
            out.append(byte)
            at += 1
            continue
        if at + 1 == len(body) or (byte == _REPEAT and (not out or body[at + 1] < _REPEAT_BIAS)):
            raise ValueError("a packet ends inside an escape or a repeat")
        if byte == _REPEAT:
            out += bytes([out[-1]]) * (body[at + 1] - _REPEAT_BIAS)
        else:
            out.append(body[at + 1] ^ 0x20)
        at += 2
    return bytes(out)


def escaped_within(data: bytes, room: int) -> tuple[bytes, int]:
    """Return the escaped beginning of *data* that fits into *room* bytes, and its length before escaping."""
    piece = data[: max(room, 1)]
    while len(escaped := escape(piece)) > max(room, 2):
        piece = piece[: -((len(escaped) - room + 1) // 2)]
    return escaped, len(piece)


_AT_ONCE = 1 << 17  # bytes
_LOOKED_AT = 256
MUCH = 1 << 20  # bytes that the other end has not accepted: enough to stop reading more for it


class WireGone(Exception):
    """The connection has ended. *why*: None when the other end closed it."""

    def __init__(self, why: str | None = None) -> None:
        super().__init__(why or "closed")
        self.why = why


class Wire:
    """A connected socket that carries packets. Every method that sends or receives raises *gone* when the connection
    has ended.

    *acknowledges*: both ends acknowledge packets, until QStartNoAckMode. *is_impatient*: the other end, which waits for
    answers as gdb does, sends a packet again that is not acknowledged in time, and a NAK where an answer is late.
    """

    def __init__(
        self,
        connection: socket.socket,
        gone: Callable[[str | None], Exception] = WireGone,
        *,
        is_impatient: bool = False,
    ) -> None:
        connection.setblocking(False)
        with contextlib.suppress(OSError):  # not TCP, in a test
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.acknowledges = True
        self._gone, self._is_impatient = gone, is_impatient
        self._stream = GdbPacketStream()
        self._unsent = bytearray()
        self._last = b""  # the packet sent, as long as nothing came after it
        self._newest = b""  # the packet received last
        self._settled = 0  # packets that were acknowledged before they came
        self._owed = b""  # acknowledgments to send: more urgent data go first

    def fileno(self) -> int:
        return self.connection.fileno()

    def close(self) -> None:
        """Shut down the connection, also for another process that has it."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    @property
    def unsent(self) -> int:
        """The number of bytes that the other end has not accepted yet."""
        return len(self._unsent)

    def packet_to_come(self) -> bytes:
        """Return the beginning of the newest packet that has arrived and is not received yet, b"" if there is none."""
        _, begin, body = self.to_come().rpartition(b"$")
        return body[:1] if begin else b""

    def to_come(self) -> bytes:
        """Return the first of the bytes that have arrived and are not received yet."""
        try:
            return self.connection.recv(_LOOKED_AT, socket.MSG_PEEK)
        except OSError:
            return b""

    def receive(self, size: int = _AT_ONCE) -> list[GdbPacket]:
        """Return the packets, notifications and interrupts that have arrived, and acknowledge them."""
        try:
            data = self.connection.recv(size)
            if not data:
                raise self._gone(None)
            items = self._stream.feed(data)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError as error:
            raise self._gone(error.strerror or str(error)) from error
        except TooLong:
            raise self._gone("what came is not the remote protocol") from None
        if not self.acknowledges:
            return [item for item in items if item.kind is not GdbPacketKind.ACK and item.kind is not GdbPacketKind.NAK]
        return [item for item in items if self._is_new(item)]

    def _is_new(self, item: GdbPacket) -> bool:
        """Acknowledge a packet, and return whether it is valid and no repetition."""
        if item.kind is GdbPacketKind.PACKET:
            intact = item.is_intact()
            if self._settled:
                self._settled -= 1
                return True
            if self._is_impatient:
                if intact and self._owed and item.raw == self._newest:
                    return False  # sent again, as it was not acknowledged in time
                self._last, self._newest = b"", item.raw  # there is no answer yet that a NAK could mean
            self._owed += b"+" if intact else b"-"
            return intact
        if item.kind is GdbPacketKind.NAK and self._last:
            self.write(self._last)
        return item.kind is GdbPacketKind.INTERRUPT or (item.kind is GdbPacketKind.NOTIFICATION and item.is_intact())

    def send(self, raw: bytes) -> None:
        """Send a framed packet."""
        if self.acknowledges:
            self._last = raw
        if self._owed:
            raw, self._owed = self._owed + raw, b""
        self.write(raw)

    def send_all(self, bodies: list[bytes]) -> None:
        """Send packets that the other end answers one after the other.

        Their answers are acknowledged in advance: the other end looks at acknowledgments only after it has answered,
        and TCP does not damage packets.
        """
        if not self.acknowledges or len(bodies) == 1:
            self.send(b"".join(map(frame, bodies)))
            return
        self._settled += len(bodies) - 1
        self.send(b"+".join(map(frame, bodies)))

    def settle(self) -> None:
        """Send the acknowledgments that went with no packet, before waiting for more."""
        if self._owed:
            owed, self._owed = self._owed, b""
            self.write(owed)

    def write(self, data: bytes) -> None:
        """Send bytes unchanged."""
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self.connection.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            raise self._gone(error.strerror or str(error)) from error
        if sent < len(data):
            self._unsent += data[sent:]

    def flush(self) -> None:
        """Send unsent bytes, now that the other end accepts some."""
        waiting, self._unsent = bytes(self._unsent), bytearray()
        if waiting:
            self.write(waiting)


class StubAddress(NamedTuple):
    """Where a stub is. *port* 0: *host* is the path of a unix socket."""

    host: str
    port: int

    @property
    def text(self) -> str:
        """The address in words."""
        return f"{printable(self.host)}:{self.port}" if self.port else printable(self.host)


NO_ADDRESS = StubAddress("", 0)
"""Where a stub is that there never was."""


class Shutdown:
    """The request that the proxy end, for its thread. *wake* becomes readable then, for use with `select`."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._pair: tuple[socket.socket, socket.socket] | None = None

    @property
    def wake(self) -> socket.socket:
        if self._pair is None:
            self._pair = socket.socketpair()
        return self._pair[0]

    @property
    def requested(self) -> bool:
        return self._requested.is_set()

    def wait(self, seconds: float) -> None:
        """Wait, at most until the request comes."""
        self._requested.wait(seconds)

    def request(self) -> None:
        self._requested.set()
        if self._pair is not None:
            self._pair[1].close()
