"""Packets of gdb's remote serial protocol as bytes: framing, escapes, repeats, and taking a stream apart.

Nothing here knows what a packet says. Source: GDB manual, "Overview" of the remote protocol (packets, acknowledgment,
escapes, run lengths), "Notification Packets", "Interrupts".
"""

from enum import Enum, auto
from typing import NamedTuple
from zlib import adler32

LONGEST = 1 << 25  # bytes of one packet: OpenOCD and QEMU offer 16 KB at most, so whoever sends more is no gdb or stub
_ACK, _NAK, _INTERRUPT, _PACKET, _NOTIFICATION = b"+-\x03$%"
_SPECIAL = b"#$}*"
_ESCAPES = {byte: bytes([ord("}"), byte ^ 0x20]) for byte in _SPECIAL}
_REPEAT = ord("*")
_REPEAT_BIAS = 29
_SUMMED = 256  # bytes


class Kind(Enum):
    PACKET = auto()
    NOTIFICATION = auto()
    ACK = auto()
    NAK = auto()
    INTERRUPT = auto()


class Item(NamedTuple):
    """What a stream consists of. *raw*: as it came; *body*: between the mark and "#", still escaped."""

    kind: Kind
    raw: bytes
    body: bytes = b""

    def is_intact(self) -> bool:
        """Whether the checksum is right. Where packets are not acknowledged, nobody looks at it."""
        try:
            return int(self.raw[-2:], 16) == checksum(self.body)
        except ValueError:
            return False


class TooLong(Exception):
    """What comes is not the protocol."""


_SINGLE = {
    _ACK: Item(Kind.ACK, b"+"),
    _NAK: Item(Kind.NAK, b"-"),
    _INTERRUPT: Item(Kind.INTERRUPT, b"\x03"),
}


class Stream:
    """Takes what one side sends apart, however it is cut. What is between packets and means nothing is dropped."""

    def __init__(self) -> None:
        self._rest = b""
        self._searched = 0  # of the rest, for the end of the packet it begins with

    def feed(self, data: bytes) -> list[Item]:
        """All that is complete now. Raises TooLong."""
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
    """A "$" inside means that another packet was begun: there is none in a body."""
    again = raw.rfind(b"$", 1)
    if again > 0:
        raw = raw[again:]
    kind = Kind.PACKET if raw[0] == _PACKET else Kind.NOTIFICATION
    return Item(kind, raw, raw[1:-3])


def frame(body: bytes) -> bytes:
    """A packet of a *body* that is escaped where it has to be."""
    return b"$%b#%02x" % (body, checksum(body))


def checksum(body: bytes) -> int:
    """The sum of the bytes modulo 256. The lower half of Adler-32 is a sum of bytes, and fast; 256 do not exceed it."""
    if len(body) <= _SUMMED:
        return sum(body) & 0xFF
    pieces = range(0, len(body), _SUMMED)
    return sum([(adler32(body[at : at + _SUMMED]) & 0xFFFF) - 1 for at in pieces]) & 0xFF


def escape(data: bytes) -> bytes:
    """Any bytes as part of a body."""
    if not any(byte in data for byte in _SPECIAL):
        return data
    return b"".join(_ESCAPES.get(byte) or bytes([byte]) for byte in data)


def unescape(body: bytes) -> bytes:
    """The bytes that a body stands for: escapes and repeats are resolved. Raises ValueError where it breaks off."""
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
    """As much of the beginning of *data* as fits into *room* bytes, escaped, and how many bytes that stands for."""
    piece = data[: max(room, 1)]
    while len(escaped := escape(piece)) > max(room, 2):
        piece = piece[: -((len(escaped) - room + 1) // 2)]
    return escaped, len(piece)
