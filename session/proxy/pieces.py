"""Memory packets that are larger than the stub takes: cut into pieces that are sent at once, the answers put together.

Each packet that passes through the proxy takes longer than one that does not, because two more processes have to wake
up. Where the stub takes small packets only (QEMU 7.2: 4 KB), gdb is offered larger ones instead, so that there are
fewer; the pieces are sent to the stub one behind the other, without waiting for answers in between.

Source: GDB manual, "Packets" (m, M, X: "m addr,length", "X addr,length:XX...", short answers to m are allowed).
"""

import re

from rvtrace_gdb.session.proxy.packets import escaped_within, unescape

OFFERED = 0x10000  # bytes
_SMALL = range(0x800, 0x4000)  # OpenOCD offers 0x4000; a stub with less than 0x800 is behind a slow line of its own
MEMORY = (b"m", b"M", b"X", b"v")  # how packets begin that may be cut
_HEAD = 48  # bytes of a packet besides its data, at most
_SIZE = re.compile(rb"PacketSize=([0-9a-fA-F]+)$")
_PACKET = re.compile(rb"([mMX])([0-9a-fA-F]+),([0-9a-fA-F]+)(?::(.*))?$", re.S)
_FLASH = re.compile(rb"vFlashWrite:([0-9a-fA-F]+):(.*)$", re.S)


class Pieces:
    """*size*: of the stub's packets, in bytes; None: gdb keeps to it."""

    def __init__(self) -> None:
        self.size: int | None = None

    def offer(self, features: list[bytes]) -> list[bytes]:
        """The stub's answer to qSupported with a size that gdb likes better."""
        self.size = None
        offered = []
        for feature in features:
            match = _SIZE.match(feature)
            if match and int(match[1], 16) in _SMALL:
                self.size = int(match[1], 16)
                feature = b"PacketSize=%x" % OFFERED
            offered.append(feature)
        return offered

    def of(self, body: bytes) -> list[bytes] | None:
        """The packets that do what *body* does; None: it is not too large, or no packet for memory."""
        if self.size is None:
            return None
        first = body[:1]
        if first == b"m":
            return self._reads(body)
        if len(body) < self.size:
            return None
        if first == b"M" or first == b"X":
            return self._writes(body)
        return self._flash(body)

    def _reads(self, body: bytes) -> list[bytes] | None:
        match, most = _PACKET.match(body), (self.size or 0) // 2
        if match is None or int(match[3], 16) <= most:
            return None
        address, size = int(match[2], 16), int(match[3], 16)
        return [b"m%x,%x" % (address + at, min(most, size - at)) for at in range(0, size, most)]

    def _writes(self, body: bytes) -> list[bytes] | None:
        match = _PACKET.match(body)
        if match is None or match[4] is None:
            return None
        address, room = int(match[2], 16), (self.size or 0) - _HEAD
        if match[1] == b"M":
            room &= ~1
            parts = [match[4][at : at + room] for at in range(0, len(match[4]), room)]
            return [b"M%x,%x:%b" % (address + at * room // 2, len(it) // 2, it) for at, it in enumerate(parts)]
        return [b"X%x,%x:%b" % (address + at, size, it) for at, size, it in _cut(match[4], room)]

    def _flash(self, body: bytes) -> list[bytes] | None:
        match = _FLASH.match(body)
        if match is None:
            return None
        cut = _cut(match[2], (self.size or 0) - _HEAD)
        return [b"vFlashWrite:%x:%b" % (int(match[1], 16) + at, it) for at, _, it in cut]


def together(body: bytes, answers: list[bytes]) -> bytes:
    """The answer to the whole: of reads what comes before the first that failed, of writes whether all went well."""
    if body[:1] != b"m":
        return next((answer for answer in answers if answer != b"OK"), b"OK")
    read: list[bytes] = []
    for answer in answers:
        if answer[:1] == b"E" or not answer:
            break
        read.append(answer)
    return b"".join(read) or answers[0]


def _cut(escaped: bytes, room: int) -> list[tuple[int, int, bytes]]:
    """Offset, size and escaped content of each piece. A packet that ends inside an escape is passed as it is."""
    try:
        data = unescape(escaped) if b"*" not in escaped else _without_repeats(escaped)
    except ValueError:
        return [(0, len(escaped), escaped)]
    pieces = []
    at = 0
    while at < len(data):
        piece, size = escaped_within(data[at : at + room], room)
        pieces.append((at, size, piece))
        at += size
    return pieces


def _without_repeats(escaped: bytes) -> bytes:
    """gdb sends no repeats: "*" is itself in its packets (only "$", "#" and "}" must be escaped)."""
    return unescape(escaped.replace(b"*", b"}\n"))
