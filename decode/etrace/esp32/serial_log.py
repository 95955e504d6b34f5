"""The core dump in the log of a serial line: base64, at most 48 bytes a line, between two marks, or alone in a file.

Serial lines lose characters, and whoever keeps a log puts times before its lines, colours around them, or wraps them.
So the result has pieces, and what is missing of them is known: a line that is not whole has its place, and how many
bytes it had follows from the length in the dump's header. Where whole lines are missing, the reader of the trace tries.

Source: ESP-IDF, component espcoredump (core_dump_uart.c).
"""

import base64
import binascii
import re
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ELF32_LITTLE = b"\x7fELF\x01\x01"
HEADER = struct.Struct("<2I")  # data_len, version; what follows depends on the version
HEADER_SIZES = (12, 20, 24)

_BEGIN, _END = b"= CORE DUMP START =", b"= CORE DUMP END ="
_COLOUR = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_DIGITS = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
_LONGEST_LINE = 80  # characters: 64, and room
_LONGEST_HEAD = 1 << 12  # bytes looked at for base64 alone
_SHA256_SIZE = 32  # of the checksum, which comes last and is encoded by itself
_PLACES = 300  # at which missing lines are tried

UNKNOWN = b"\xff"
"""What is in place of each missing byte: nothing in a trace begins with it."""

SerialPiece = bytes | None
"""The bytes of a line; None: it is not whole."""


class SerialDump(NamedTuple):
    """A core dump in pieces. *ended*: the log has its end, so that what is missing is not what comes last."""

    pieces: Sequence[SerialPiece]
    ended: bool

    @property
    def present(self) -> int:
        """The number of bytes that are there."""
        return sum(len(piece) for piece in self.pieces if piece is not None)

    @property
    def length(self) -> int:
        """The number of bytes that the dump says it has; 0 if its header is missing."""
        image = self.image()
        if not any(image.startswith(ELF32_LITTLE, size) for size in HEADER_SIZES):
            return 0
        length: int = HEADER.unpack_from(image)[0]
        return length

    @property
    def is_damaged(self) -> bool:
        """Whether something is missing in the middle."""
        return self.ended and self.present < self.length

    def image(self) -> bytes:
        """Return what is there, as if nothing were missing."""
        return b"".join(piece for piece in self.pieces if piece is not None)

    def images(self) -> Iterator[tuple[bytes, list[range]]]:
        """Yield whole dumps, one for each possible place of what is missing, with bytes of no meaning there; and where
        those are.
        """
        missing, broken = self.length - self.present, sum(piece is None for piece in self.pieces)
        if broken:
            if not missing % broken:
                yield self._filled(missing // broken)
            return
        image, at = self.image(), 0
        step = max(1, len(self.pieces) // _PLACES)
        last = self.length - _SHA256_SIZE - missing
        for number, piece in enumerate(self.pieces):
            if number > 1 and not number % step and at <= last:
                yield image[:at] + UNKNOWN * missing + image[at:], [range(at, at + missing)]
            at += len(piece or b"")
        if missing == _SHA256_SIZE:  # less or more is not the checksum, but next to it
            yield image + UNKNOWN * missing, [range(at, at + missing)]

    def _filled(self, size: int) -> tuple[bytes, list[range]]:
        """Return the dump with so many bytes for each line that is not whole, and where those are."""
        image, holes = bytearray(), list[range]()
        for piece in self.pieces:
            if piece is None:
                holes.append(range(len(image), len(image) + size))
            image += UNKNOWN * size if piece is None else piece
        return bytes(image), holes


def dump_in(content: bytes) -> SerialDump | None:
    """Return the newest core dump in a log, or in a file of base64 alone; None if there is none."""
    begin = content.rfind(_BEGIN)
    if begin < 0:
        return SerialDump(_joined(content.split()), True) if _is_base64(content) else None
    start = max(content.rfind(b"\n", 0, begin), content.rfind(b"\r", 0, begin)) + 1
    before = _COLOUR.sub(b"", content[start:begin]).rstrip(b"=").rstrip(b" ")
    log, end, _ = content[begin:].partition(_END)
    lines = [_COLOUR.sub(b"", line).strip() for line in log.splitlines()[1:]]
    shape = _prefix_pattern(before)
    texts = [line[match.end() :].strip() for line in lines if (match := shape.match(line))]
    return SerialDump(_joined([text for text in texts if _DIGITS.fullmatch(text)]), bool(end))


def _prefix_pattern(text: bytes) -> re.Pattern[bytes]:
    """Return the pattern of what stands before each line, as *text* does before one: times, a name, nothing."""
    parts = re.findall(rb"\d+|[A-Za-z]+|[^0-9A-Za-z]", text)
    words = (rb"\d+" if part.isdigit() else rb"[A-Za-z]+" if part.isalpha() else re.escape(part) for part in parts)
    return re.compile(b"".join(words))


def _is_base64(content: bytes) -> bool:
    """Return whether a file is a core dump in base64 and nothing else."""
    lines = content[:_LONGEST_HEAD].split()
    if not all(map(_DIGITS.fullmatch, lines)):
        return False
    try:
        start = b"".join(base64.b64decode(line[: len(line) & ~3]) for line in lines[:2])
    except binascii.Error:
        return False
    return any(start.startswith(ELF32_LITTLE, size) for size in HEADER_SIZES)


def _joined(texts: Sequence[bytes]) -> list[SerialPiece]:
    """Return the bytes of lines of base64, each encoded by itself. Lines that were wrapped are joined again."""
    whole = max((len(text) for text in texts if not len(text) % 4), default=_LONGEST_LINE)
    pieces: list[SerialPiece] = []
    left = list(reversed(texts))
    while left:
        text = left.pop()
        if len(text) % 4 and left and len(text) + len(left[-1]) <= max(whole, _LONGEST_LINE):
            both = text + left[-1]
            if not len(both) % 4:
                left.pop()
                text = both
        try:
            pieces.append(base64.b64decode(text, validate=True) if not len(text) % 4 else None)
        except binascii.Error:
            pieces.append(None)
    return pieces
