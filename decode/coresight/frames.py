"""The 16-byte frame of the CoreSight trace formatter: its layout, the IDs, and how frames are taken apart.

Source: Arm CoreSight Architecture Specification (IHI 0029), "Trace formatter", "Formatter data format". Odd bytes 1 to
13 are data. An even byte whose bit 0 is 0 is data, too: its real bit 0 is bit i of byte 15, i being half its number. An
even byte whose bit 0 is 1 is a new ID in bits 7:1; bit i of byte 15 says whether the odd byte behind it already belongs
to the new ID (0) or still to the old one (1). There is none behind byte 14. An ID stays in force in the next frames.

Frames are taken apart column by column: what all frames have at one place is one string of bytes, and operations on
long integers and translations work on all of it at once. What is left to do one by one are changes of the ID.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple

FRAME_BYTES = 16
DATA_BYTES = 15
"""The bytes of a frame that are data or IDs."""

USABLE_IDS = range(0x01, 0x70)
"""The IDs that a trace source may have."""
NULL_ID = 0x00
"""What follows it is padding."""
FLUSH_ID = 0x7B
TRIGGER_ID = 0x7D
"""What follows it says that a trigger reached the formatter there."""

FSYNC = b"\xff\xff\xff\x7f"
"""A synchronization packet of a whole word. It is between frames on pins; software puts four of them into a buffer
where trace is missing, a barrier.
"""
HSYNC = b"\xff\x7f"
"""A synchronization packet of half a word, on pins alone: at any even byte of a frame."""
BARRIER = FSYNC * (FRAME_BYTES // len(FSYNC))


class FrameForm(StrEnum):
    """Where frames come from: a buffer in memory (ETB, ETF, ETR), or the pins of a TPIU, with synchronization packets
    in them.
    """

    MEMORY = "coresight"
    PINS = "tpiu"


class NoId(IntEnum):
    """What stands in place of an ID for bytes that belong to none."""

    UNKNOWN = -1
    """Data before the first ID: in a buffer that wrapped, behind a barrier."""
    SYNC = -2
    """Synchronization packets."""
    BARRIER = -3
    """A barrier: trace is missing here."""
    UNSYNCHRONIZED = -4
    """Bytes before the first FSYNC, or from damage to the next one."""
    DAMAGED = -5
    """Part of a frame that is none."""
    INCOMPLETE = -6
    """The beginning of a frame, at the end of the trace."""


class WholeFrames(NamedTuple):
    """Whole frames. *begins*, *offsets*: from byte *begins[i]* on they are at *offsets[i]* of the trace."""

    data: bytes
    begins: Sequence[int]
    offsets: Sequence[int]

    def offset_of(self, index: int) -> int:
        """Return the byte offset in the trace of byte *index* of the frames."""
        at = bisect_right(self.begins, index) - 1
        return self.offsets[at] + index - self.begins[at]


class IdRun(NamedTuple):
    """Consecutive data of one ID, or of `NoId.UNKNOWN`: bytes *begin* to *end* - 1 of `UnpackedFrames.data`."""

    atb_id: int
    begin: int
    end: int


class UnpackedFrames(NamedTuple):
    """Frames taken apart: the data of *runs* is in *data*. *ids*: how many bytes were IDs. *last*: the ID in force at
    the end.
    """

    frames: WholeFrames
    data: bytes
    runs: list[IdRun]
    ids: int
    last: int

    def offset_of(self, index: int) -> int:
        """Return the byte offset in the trace of byte *index* of the data."""
        frame, column = divmod(index, DATA_BYTES)
        at = frame * FRAME_BYTES + column
        if not column & 1 and self.frames.data[at] & 1:
            at += 1  # still of the old ID, whose place the new ID has
        return self.frames.offset_of(at)


_AUXILIARY = [bytes(byte >> i & 1 for byte in range(256)) for i in range(8)]
_IDS = bytes(byte if byte & 1 else 0 for byte in range(256))
_RUN = re.compile(rb"[^\0]\0*")


def unpack(frames: WholeFrames, current: int) -> UnpackedFrames:
    """Take frames apart. *current*: the ID in force before them, or `NoId.UNKNOWN`."""
    packed = frames.data
    count = len(packed) // FRAME_BYTES
    data = bytearray(DATA_BYTES * count)
    marks = bytearray(DATA_BYTES * count)  # where an ID is: its byte
    auxiliary = packed[FRAME_BYTES - 1 :: FRAME_BYTES]
    ones = int.from_bytes(b"\1" * count, "little")
    has_ids = False
    for column in range(0, DATA_BYTES, 2):
        even = packed[column::FRAME_BYTES]
        low_bits = auxiliary.translate(_AUXILIARY[column // 2])
        value, bits = int.from_bytes(even, "little"), int.from_bytes(low_bits, "little")
        data[column::DATA_BYTES] = (value | bits).to_bytes(count, "little")
        if column < DATA_BYTES - 1:
            data[column + 1 :: DATA_BYTES] = packed[column + 1 :: FRAME_BYTES]
        if not value & ones:
            continue
        has_ids = True
        marks[column::DATA_BYTES] = even.translate(_IDS)
        if column < DATA_BYTES - 1 and (delayed := value & bits):
            _delay(data, marks, column, delayed.to_bytes(count, "little"))
    if not has_ids:
        return UnpackedFrames(frames, bytes(data), [IdRun(current, 0, len(data))], 0, current)
    return _with_runs(frames, bytes(data), bytes(marks), current)


def _delay(data: bytearray, marks: bytearray, column: int, delayed: bytes) -> None:
    """Put the odd byte before the ID of *column*, in the frames where *delayed* is 1."""
    frame = delayed.find(1)
    while frame >= 0:
        at = frame * DATA_BYTES + column
        data[at], marks[at], marks[at + 1] = data[at + 1], 0, marks[at]
        frame = delayed.find(1, frame + 1)


def _with_runs(frames: WholeFrames, data: bytes, marks: bytes, current: int) -> UnpackedFrames:
    runs, ids, end = [], 0, 0
    for found in _RUN.finditer(marks):
        begin, next_end = found.span()
        if not ids and begin:
            runs.append(IdRun(current, 0, begin))
        ids += 1
        current, end = marks[begin] >> 1, next_end
        if begin + 1 < end:
            runs.append(IdRun(current, begin + 1, end))
    return UnpackedFrames(frames, data, runs, ids, current)
