"""The packets of gem5's E-Trace file: protobuf messages, each behind its length.

Source: gem5/gem5, pull request 3264 (src/proto/etrace.proto at 3d85162, version 1 of the file; src/proto/protoio.cc).
The file begins with "gem5", then the header; it may be compressed with gzip. Fields that are absent are 0.
"""

import zlib
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.decode.branches.items import NO_SETTINGS, BranchItem, Settings
from rvtrace_gdb.support.errors import RvtraceError

MAGIC, GZIP = b"gem5", b"\x1f\x8b"
_VERSION = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # protobuf's wire types
_MOST_BYTES = 10  # of a number of 64 bits
_CUT_OFF = "the trace ends in the middle of a message"


class BadGem5(RvtraceError):
    """A file is not E-Trace of gem5, or of another version."""


class Gem5Kind(Enum):
    """The packets, by format and subformat."""

    BRANCH_MAP = 0, 0
    BRANCH_MAP_ADDR = 1, 0
    ADDR_ONLY = 2, 0
    START = 3, 0
    TRAP = 3, 1
    CONTEXT = 3, 2
    SUPPORT = 3, 3


class Gem5Field(Enum):
    """The fields of an ETracePacket by number."""

    TICK = 1
    FORMAT = 2
    SUBFORMAT = 3
    ADDRESS = 4
    BRANCH_MAP = 5
    BRANCH_COUNT = 6
    PRIV = 7
    CAUSE = 8
    TVAL = 9
    INTERRUPT = 10
    ITYPE = 11
    IENABLE = 12
    ENCODER_MODE = 13
    QUAL_STATUS = 14
    IOPTIONS = 15
    DENABLE = 16
    DOPTIONS = 17
    NOTIFY = 18
    UPDISCON = 19
    IRREPORT = 20
    IRDEPTH = 21
    CONTEXT = 22
    JTC_INDEX = 23
    THADDR = 24
    SADDRESS = 25
    BRANCH_PRED_COUNT = 26


_HEXADECIMAL = {Gem5Field.ADDRESS, Gem5Field.TVAL, Gem5Field.BRANCH_MAP, Gem5Field.IOPTIONS}
_UNSHOWN = {Gem5Field.TICK, Gem5Field.FORMAT, Gem5Field.SUBFORMAT}
_FIELDS = {field.value: field for field in Gem5Field}
_FORMATS = {kind.value[0] for kind in Gem5Kind}


class Gem5Packet(NamedTuple):
    """A packet: its kind and the fields that were sent. `saddress` has its sign."""

    kind: Gem5Kind
    fields: dict[Gem5Field, int]

    def number(self, field: Gem5Field) -> int:
        """Return the value of a field, 0 if it was not sent."""
        return self.fields.get(field, 0)

    @property
    def outcomes(self) -> tuple[bool, ...]:
        """Which of the branches were taken, the oldest first."""
        branches = self.number(Gem5Field.BRANCH_MAP)
        return tuple(not branches >> place & 1 for place in range(self.number(Gem5Field.BRANCH_COUNT)))

    def __str__(self) -> str:
        words = [self.kind.name]
        for field, value in self.fields.items():
            if field not in _UNSHOWN:
                words.append(f"{field.name.lower()}={f'0x{value:x}' if field in _HEXADECIMAL else value}")
        return " ".join([*words, f"tick={self.number(Gem5Field.TICK)}"])


class CutMessage(NamedTuple):
    """Bytes of the file. *packet*: what they are; None: its beginning, or bytes that are no packet for the *problem*.
    """

    packet: Gem5Packet | None
    size: int
    text: str = ""
    problem: str = ""


def message_at(data: bytes, offset: int) -> CutMessage:
    """Return the message that begins at *offset*; at 0 with its magic number and the header behind it."""
    begin = len(MAGIC) if not offset and data.startswith(MAGIC) else 0
    length = _varint(data, offset + begin)
    rest = len(data) - offset
    if length is None:
        return CutMessage(None, rest, problem=_CUT_OFF)
    size = length[1] - offset + length[0]
    if size > rest:
        return CutMessage(None, rest, problem=_CUT_OFF)
    numbers = _numbers(data, length[1], offset + size)
    if numbers is None:
        return CutMessage(None, size, problem="not a protobuf message")
    if begin:
        told = f"Header ver={numbers.get(2, 1)} tick_freq={numbers.get(3, 0)} arch_width={numbers.get(4, 0)}"
        return CutMessage(None, size, told)
    return _packet(numbers, size)


def _packet(numbers: dict[int, int], size: int) -> CutMessage:
    fields = {_FIELDS[number]: value for number, value in numbers.items() if number in _FIELDS}
    value = fields.get(Gem5Field.SADDRESS)
    if value is not None:
        fields[Gem5Field.SADDRESS] = value >> 1 ^ -(value & 1)  # zigzag
    form, subform = fields.get(Gem5Field.FORMAT, 0), fields.get(Gem5Field.SUBFORMAT, 0)
    if form not in _FORMATS or subform > 3:
        return CutMessage(None, size, problem=f"format {form}, subformat {subform} is not defined")
    if fields.get(Gem5Field.BRANCH_COUNT, 0) > 31:
        return CutMessage(None, size, problem=f"{fields[Gem5Field.BRANCH_COUNT]} branches are more than a map has")
    return CutMessage(Gem5Packet(Gem5Kind((form, subform if form == 3 else 0)), fields), size)


def _numbers(data: bytes, offset: int, end: int) -> dict[int, int] | None:
    """Return the values of a message by field number, those that are numbers; None if it is none."""
    values: dict[int, int] = {}
    while offset < end:
        key = _varint(data, offset)
        if key is None or key[1] > end or not key[0] >> 3:
            return None
        number, wire = key[0] >> 3, key[0] & 7
        offset = key[1]
        if wire in (_VARINT, _BYTES):
            value = _varint(data, offset)
            if value is None or value[1] > end:
                return None
            offset = value[1] + (value[0] if wire == _BYTES else 0)
            if wire == _VARINT:
                values[number] = value[0]
        elif wire in (_FIXED64, _FIXED32):
            offset += 8 if wire == _FIXED64 else 4
        else:
            return None
    return values if offset == end else None


def _varint(data: bytes, offset: int) -> tuple[int, int] | None:
    """Return the number at *offset* and where it ends."""
    value = 0
    for place in range(_MOST_BYTES):
        if offset + place >= len(data):
            return None
        byte = data[offset + place]
        value |= (byte & 0x7F) << 7 * place
        if not byte & 0x80:
            return value & (1 << 64) - 1, offset + place + 1
    return None


def items_of(data: bytes, settings: Settings = NO_SETTINGS) -> Iterator[BranchItem]:
    """Yield the header, the packets, and bytes that are neither; of a compressed file those of its content."""
    if data.startswith(GZIP):
        try:
            data = _decompressed(data)
        except BadGem5 as error:
            yield BranchItem(0, data, str(error), str(error))
            return
    offset = 0
    while offset < len(data):
        found = message_at(data, offset)
        raw = data[offset : offset + found.size]
        text = found.text if found.packet is None else str(found.packet)
        yield BranchItem(offset, raw, f"{raw.hex(' ')} # {found.problem}" if found.problem else text, found.problem)
        offset += found.size


def uncompressed(data: bytes) -> bytes:
    """Return the content of a file, which may be compressed with gzip; of one that was cut off, what there is of it.
    Raises BadGem5.
    """
    if data.startswith(GZIP):
        data = _decompressed(data)
    if not data.startswith(MAGIC):
        begins = data[: len(MAGIC)].hex(" ") or "nothing"
        raise BadGem5(f"the file begins with {begins}, and gem5's begin with 67 65 6d 35, which is 'gem5'")
    length = _varint(data, len(MAGIC))
    header = length and _numbers(data, length[1], length[1] + length[0])
    if header is None:
        raise BadGem5("the header behind 'gem5' is not a protobuf message")
    version = (header or {}).get(2, _VERSION)
    if version != _VERSION:
        raise BadGem5(
            f"the file has version {version} of gem5's E-Trace, whose field numbers are not known here: version"
            f" {_VERSION} can be read"
        )
    return data


def _decompressed(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data)
    except zlib.error as error:
        raise BadGem5(f"the file cannot be decompressed: {error}") from None
