"""Connections that carry packets of gdb's remote serial protocol, with their own state of acknowledgment.

`Stream` splits bytes into packets: framing, escapes, repeats. Nothing here interprets a packet. Source: GDB manual,
"Overview" of the remote protocol (packets, acknowledgment, escapes, run lengths), "Notification Packets", "Interrupts".

`Wire` is one side of the proxy. It never blocks: it keeps what the other end does not accept yet. `Stub` is the side of
the stub: the packets of gdb that it has not answered yet, and packets of the proxy's own.
"""

import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple
from zlib import adler32

from rvtrace_gdb.session.replay.proxy_state import ProxyState
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.system import is_refusal
from rvtrace_gdb.support.text import open_problem, printable

LONGEST = (
    1 << 25
)  # bytes of one packet: OpenOCD and QEMU offer 16 KB at most, so a sender of more is neither gdb nor a stub
_ACK, _NAK, _INTERRUPT, _PACKET, _NOTIFICATION = b"+-\x03$%"
_SPECIAL = b"#$}*"
_ESCAPES = {byte: bytes([ord("}"), byte ^ 0x20]) for byte in _SPECIAL}
_REPEAT = ord("*")
_REPEAT_BIAS = 29
_SUMMED = 256  # bytes


class Kind(Enum):
    """The kinds of items in a stream."""

    PACKET = auto()
    NOTIFICATION = auto()
    ACK = auto()
    NAK = auto()
    INTERRUPT = auto()


class Item(NamedTuple):
    """An item of a stream. *raw*: the bytes as received; *body*: those between "$" and "#", still escaped."""

    kind: Kind
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
    _ACK: Item(Kind.ACK, b"+"),
    _NAK: Item(Kind.NAK, b"-"),
    _INTERRUPT: Item(Kind.INTERRUPT, b"\x03"),
}


class Stream:
    """Splits what one side sends into items, wherever the pieces end. Meaningless bytes between packets are dropped."""

    def __init__(self) -> None:
        self._rest = b""
        self._searched = 0  # bytes of the rest in which the end of its first packet was already searched

    def feed(self, data: bytes) -> list[Item]:
        """Return all items that are complete now. Raises TooLong."""
        buffer = self._rest + data if self._rest else data
        items: list[Item] = []
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


def _item(raw: bytes) -> Item:
    """Return the item of a packet. A "$" inside begins another packet: a body contains none."""
    again = raw.rfind(b"$", 1)
    if again > 0:
        raw = raw[again:]
    kind = Kind.PACKET if raw[0] == _PACKET else Kind.NOTIFICATION
    return Item(kind, raw, raw[1:-3])


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
    """A connected socket that carries packets. *acknowledges*: both ends acknowledge packets, until QStartNoAckMode."""

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
        try:
            _, begin, body = self.connection.recv(_LOOKED_AT, socket.MSG_PEEK).rpartition(b"$")
        except OSError:
            return b""
        return body[:1] if begin else b""

    def receive(self) -> list[Item]:
        """Return the packets, notifications and interrupts that have arrived, and acknowledge them. Raises WireGone."""
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
        """Acknowledge a packet, and return whether it is valid and no repetition."""
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
        """Send a framed packet. Raises WireGone."""
        if self.acknowledges:
            self._last = raw
        if self._owed:
            raw, self._owed = self._owed + raw, b""
        self.write(raw)

    def send_body(self, body: bytes) -> None:
        """Frame and send a packet. Raises WireGone."""
        self.send(frame(body))

    def send_all(self, bodies: list[bytes]) -> None:
        """Send packets that the other end answers one after the other. Raises WireGone.

        Their answers are acknowledged in advance: the other end looks at acknowledgments only after it has answered,
        and TCP does not damage packets.
        """
        if not self.acknowledges or len(bodies) == 1:
            self.send(b"".join(map(frame, bodies)))
            return
        self._settled += len(bodies) - 1
        self.send(b"+".join(map(frame, bodies)))

    def settle(self) -> None:
        """Send the acknowledgments that went with no packet, before waiting for more. Raises WireGone."""
        if self._owed:
            owed, self._owed = self._owed, b""
            self.write(owed)

    def write(self, data: bytes) -> None:
        """Send bytes unchanged. Raises WireGone."""
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
        """Send unsent bytes, now that the other end accepts some. Raises WireGone."""
        waiting, self._unsent = bytes(self._unsent), bytearray()
        if waiting:
            self.write(waiting)


class StubAbsent(RvtraceError):
    """No stub answers at *host*, *port*."""

    def __init__(self, host: str, port: int, why: str) -> None:
        super().__init__(
            f"no OpenOCD and no other gdb stub at {printable(host)}:{port}: {why} (start it first; another place:"
            " `trace connect HOST:PORT`)"
        )
        self.host, self.port = host, port


class StubGone(RvtraceError):
    """The stub ended the connection, or does not answer any more."""

    def __init__(self, host: str, port: int, why: str = "closed the connection") -> None:
        place = f"{printable(host)}:{port}"
        super().__init__(f"OpenOCD ({place}) {why}; what was traced is kept: `trace history`, `trace save`")
        self.host, self.port = host, port


ANSWER_SECONDS = 20.0  # gdb itself waits 2 seconds, three times; a slow adapter takes its time
CONNECT_SECONDS = 5.0


class Stub:
    """A connection to the stub. Every method raises StubGone when it ends.

    asked    the packets of gdb that have no answer yet, oldest first
    running  the last of these resumed the target
    heard    it has sent something: before that it has accepted the connection, but may not serve it
    """

    def __init__(self, shared: ProxyState, connection: socket.socket, where: tuple[str, int]) -> None:
        self._shared, self._where = shared, where
        self.wire = Wire(connection)
        self.asked: deque[bytes] = deque()
        self.running = self.heard = False
        self._arrived: deque[Item] = deque()
        self.write(b"+")  # as gdb begins: OpenOCD 0.12 serves nobody until a new connection has sent something

    @classmethod
    def connect(cls, shared: ProxyState, where: tuple[str, int]) -> "Stub":
        """Connect to the stub. Raises StubAbsent, StubGone."""
        try:
            connection = socket.create_connection(where, CONNECT_SECONDS)
        except (OSError, OverflowError, ValueError) as error:
            if isinstance(error, OSError) and is_refusal(error):
                raise  # the stub is not what is missing
            raise StubAbsent(*where, open_problem(error)) from error
        return cls(shared, connection, where)

    def is_alive(self) -> bool:
        """Return whether the connection is still open, before it is used."""
        try:
            self.receive()
        except StubGone:
            return False
        return True

    def close(self) -> None:
        self.wire.close()

    def gone(self, why: str | None) -> StubGone:
        return StubGone(*self._where) if why is None else StubGone(*self._where, f"is lost: {why}")

    def write(self, data: bytes) -> None:
        """Send bytes unchanged: an interrupt."""
        try:
            self.wire.write(data)
        except WireGone as error:
            raise self.gone(error.why) from error

    def ask(self, body: bytes, raw: bytes | None = None) -> None:
        """Send a packet whose answer comes later. *raw*: the same packet in its frame."""
        self.tell(frame(body) if raw is None else raw)
        self.asked.append(body)

    def tell(self, raw: bytes) -> None:
        """Send a framed packet that has no answer."""
        try:
            self.wire.send(raw)
        except WireGone as error:
            raise self.gone(error.why) from error

    def flush(self) -> None:
        try:
            self.wire.flush()
        except WireGone as error:
            raise self.gone(error.why) from error

    def settle(self) -> None:
        """Send the acknowledgments that are due."""
        try:
            self.wire.settle()
        except WireGone as error:
            raise self.gone(error.why) from error

    def receive(self) -> None:
        """Receive what has arrived, for `next`."""
        try:
            items = self.wire.receive()
        except WireGone as error:
            raise self.gone(error.why) from error
        self.heard = self.heard or bool(items)
        self._arrived += items

    def next(self) -> Item | None:
        """Return the oldest item that was received and not returned yet."""
        return self._arrived.popleft() if self._arrived else None

    def transact(self, body: bytes, other: Callable[[Item], None]) -> bytes:
        """Return the answer to a packet of the proxy's own, unescaped. *other* takes items before it that are no
        answer.
        """
        try:
            return unescape(self.transact_all([body], other)[0])
        except ValueError:
            return b"E01"

    def transact_all(self, bodies: list[bytes], other: Callable[[Item], None]) -> list[bytes]:
        """Return the answers to several packets, which are sent without waiting in between; they are still escaped."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while self.asked:
            other(self._wait(deadline, bodies[0]))
        try:
            self.wire.send_all(bodies)
        except WireGone as error:
            raise self.gone(error.why) from error
        answers: list[bytes] = []
        while len(answers) < len(bodies):
            item = self._wait(deadline, bodies[len(answers)])
            if item.kind is Kind.PACKET and (item.body[:1] != b"O" or item.body == b"OK"):
                answers.append(item.body)
                deadline = time.monotonic() + ANSWER_SECONDS
            else:
                other(item)
        return answers

    def _wait(self, deadline: float, body: bytes) -> Item:
        while (item := self.next()) is None:
            self.settle()
            left = deadline - time.monotonic()
            if left <= 0 or self._shared.closing.is_set():
                raise self.gone(f"no answer to {body[:40].decode(errors='replace')!r}")
            writers = [self.wire] if self.wire.unsent else []
            readers: list[Wire | socket.socket] = [self.wire, self._shared.wake]
            readable, writable, _ = select.select(readers, writers, [], left)
            if writable:
                self.flush()
            if self.wire in readable:
                self.receive()
        return item
