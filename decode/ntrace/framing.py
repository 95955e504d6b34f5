"""Bytes to frames: where messages start and end, whatever the bytes and however they are cut into pieces.

Source: N-Trace 1.0.0-rc7, 3.1 (MSEO sequences). MSEO is the low two bits of each byte: 00 goes on, 01 ends a field, 11
ends the message, 10 is reserved; 0xFF between messages is idle. Encoders fill with other bytes of MSEO 11, too: no
message is one byte long, so nothing else can be meant. A frame is everything up to and including a byte with MSEO 11.
One regular expression finds them, so the cost per byte is that of the C library.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.events import Note, NoteCause
from rvtrace_gdb.decode.streams import Lost

MAX_FRAME = 4096
"""Bytes; a longer frame is no message. The standard's longest is 38, vendor messages may be longer (table 8)."""

_SLICE = 1 << 16  # bytes looked at once: bounds memory, and how long a caller waits for a sign of life
_MSEO = bytes(byte & 0b11 for byte in range(256))


def _any_of(*mseo: int) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % byte for byte in range(256) if byte & 0b11 in mseo) + b"]"


_GOES_ON, _INNER, _END, _NOT_END = _any_of(0b00), _any_of(0b00, 0b01), _any_of(0b11), _any_of(0b00, 0b01, 0b10)
_MESSAGE = re.compile(_GOES_ON + _INNER + b"{0,%d}" % (MAX_FRAME - 2) + _END)
_FRAME = re.compile(_MESSAGE.pattern + rb"|\xff+|" + _END + b"|" + _NOT_END + b"+" + _END)

_UNDAMAGED = re.compile(b"(?:" + _MESSAGE.pattern + b"|" + _END + b")*+")


class Batch(NamedTuple):
    """Consecutive frames. *offset*: of the first byte. The frames leave no byte out."""

    offset: int
    frames: list[bytes]


def is_idle(frame: bytes) -> bool:
    """Whether a frame is filling between messages."""
    return frame[0] & 0b11 == 0b11


def remark(frame: bytes) -> Note | None:
    """What there is to say of filling that is not the standard's, None of that which is."""
    return None if frame[0] == 0xFF else Note(NoteCause.ODD_IDLE, (frame[0],))


def fault(frame: bytes) -> str | None:
    """Why a frame that is not idle cannot be a message; None when it can."""
    if _MESSAGE.fullmatch(frame):
        return None
    if len(frame) > MAX_FRAME:
        return f"no end of message within {MAX_FRAME} bytes"
    if 0b10 in frame.translate(_MSEO):
        return "reserved MSEO value 10"
    return "bytes that do not start a message"


def faults(frames: Sequence[bytes]) -> list[int]:
    """Which frames are neither a message nor filling."""
    if _UNDAMAGED.fullmatch(b"".join(frames)):
        return []
    return [i for i, frame in enumerate(frames) if not is_idle(frame) and fault(frame)]


class Framer:
    """Cuts a byte stream into frames. The same bytes give the same frames, whatever pieces they come in.

    *wrapped*: the stream starts anywhere (a ring buffer that wrapped), so what comes before the first message end is
    dropped.
    """

    def __init__(self, *, wrapped: bool = False) -> None:
        self.total = 0
        """Bytes fed so far."""
        self._seeking = wrapped
        self._tail = bytearray()  # the start of a frame whose end has not come yet
        self._dropped = 0  # bytes of that frame no longer kept

    def feed(self, data: bytes) -> Iterator[Batch | Lost]:
        """The frames that are complete with *data*."""
        for start in range(0, len(data), _SLICE):
            yield from self._feed(data[start : start + _SLICE])

    def finish(self) -> Iterator[Lost]:
        """What is left over at the end: a message cut off."""
        length = len(self._tail) + self._dropped
        if length:
            why = f"no end of message within {MAX_FRAME} bytes" if length > MAX_FRAME else "the last message is cut off"
            yield Lost(self.total - length, length, why)
        self._tail.clear()
        self._dropped = 0

    def _feed(self, data: bytes) -> Iterator[Batch | Lost]:
        mseo = data.translate(_MSEO)
        offset = self.total - len(self._tail) - self._dropped
        self.total += len(data)
        if self._seeking or self._dropped:
            end = mseo.find(0b11) + 1
            if not end:
                self._keep(data)
                return
            length = len(self._tail) + self._dropped + end
            seeking, self._seeking, self._dropped = self._seeking, False, 0
            self._tail.clear()
            yield Lost(offset, length, "" if seeking else f"no end of message within {MAX_FRAME} bytes")
            offset, data, mseo = offset + length, data[end:], mseo[end:]
        end = mseo.rfind(0b11) + 1
        if end:
            whole = bytes(self._tail) + data[:end]
            self._tail.clear()
            yield Batch(offset, _FRAME.findall(whole))
        self._keep(data[end:])

    def _keep(self, rest: bytes) -> None:
        """Remembers the start of an unfinished frame, unless it is too long to become a message."""
        self._tail += rest
        if len(self._tail) > MAX_FRAME:
            self._dropped += len(self._tail)
            self._tail.clear()
