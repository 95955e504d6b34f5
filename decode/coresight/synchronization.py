"""Where frames begin: whole frames are cut from bytes that arrive in pieces, and synchronization packets taken out.

In memory frames begin at each 16th byte, and a barrier has the place of one. On pins a frame may begin anywhere: behind
an FSYNC. As no source has ID 0x7F, no even byte of a frame is 0xFF, so a packet is found wherever it is, and so is it
when bytes were lost on the way.
"""

import re
from bisect import bisect_right
from collections.abc import Generator, Iterator
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.coresight.frames import (
    BARRIER,
    FRAME_BYTES,
    FSYNC,
    HSYNC,
    FrameForm,
    NoId,
    WholeFrames,
)


class Skipped(NamedTuple):
    """Bytes of the trace that are not of a frame. *size*: how many, from *offset* on."""

    cause: NoId
    offset: int
    size: int


class MemoryFrames:
    """Cuts frames of a buffer in memory."""

    def __init__(self) -> None:
        self._offset = 0  # of what has not been cut
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[WholeFrames | Skipped]:
        """Return what is complete with *data*."""
        data = self._rest + data
        end = len(data) - len(data) % FRAME_BYTES
        begin, self._rest = 0, data[end:]
        found = data.find(FSYNC, 0, end)
        while found >= 0:
            frame = found - found % FRAME_BYTES
            if found + len(FSYNC) > frame + FRAME_BYTES:  # bytes of two frames, which may come apart
                found = data.find(FSYNC, found + 1, end)
                continue
            yield from self._frames(data[begin:frame])
            begin = frame + FRAME_BYTES
            yield self._skipped(NoId.BARRIER if data[frame:begin] == BARRIER else NoId.DAMAGED, FRAME_BYTES)
            found = data.find(FSYNC, begin, end)
        yield from self._frames(data[begin:end])

    def finish(self) -> Iterator[WholeFrames | Skipped]:
        """Return what is at the end."""
        if self._rest:
            size, self._rest = len(self._rest), b""
            yield self._skipped(NoId.INCOMPLETE, size)

    def _frames(self, data: bytes) -> Iterator[WholeFrames]:
        if data:
            yield WholeFrames(data, (0,), (self._offset,))
            self._offset += len(data)

    def _skipped(self, cause: NoId, size: int) -> Skipped:
        self._offset += size
        return Skipped(cause, self._offset - size, size)


_PLAIN = re.compile(rb"(?:[^\xff].)*+", re.DOTALL)  # from an even byte of a frame on
_PACKETS = re.compile(rb"(?:\xff\x7f|\xff\xff\xff\x7f)++")


class PinFrames:
    """Cuts frames of a stream from pins. Synchronization packets come before the frames around them."""

    def __init__(self) -> None:
        self._offset = 0  # of what has not been read
        self._rest = b""  # it begins at an even byte of a frame
        self._synchronized = False
        self._before = b""  # the byte before that, unless a packet ends there
        self._data = bytearray()  # of frames: less than one between two calls
        self._begins: list[int] = []
        self._offsets: list[int] = []

    def feed(self, data: bytes) -> Iterator[WholeFrames | Skipped]:
        """Return what is complete with *data*."""
        yield from self._feed(self._rest + data, last=False)

    def finish(self) -> Iterator[WholeFrames | Skipped]:
        """Return what is at the end."""
        yield from self._feed(self._rest, last=True)
        yield from self._drop(NoId.INCOMPLETE)
        if self._rest:
            yield self._skipped(NoId.INCOMPLETE, len(self._rest))
            self._rest = b""

    def _feed(self, data: bytes, *, last: bool) -> Iterator[WholeFrames | Skipped]:
        at, before = 0, (-1, False)
        while at < len(data) and before != (at, self._synchronized):
            before = (at, self._synchronized)
            if not self._synchronized:
                at = yield from self._search(data, at, last=last)
                continue
            at = self._plain(data, at)
            if self._is_decided(data, at, last=last):
                at = yield from self._take_packets(data, at)
        self._rest = data[at:]
        yield from self._complete()

    def _search(self, data: bytes, at: int, *, last: bool) -> Generator[Skipped, None, int]:
        """Skip to the next FSYNC, and return where it is, or may be."""
        found = data.find(FSYNC, at)
        self._synchronized = found >= 0
        end = found if found >= 0 else len(data) if last else max(at, len(data) - len(FSYNC) + 1)
        if end > at:
            yield self._skipped(NoId.UNSYNCHRONIZED, end - at)
        return end

    def _plain(self, data: bytes, at: int) -> int:
        """Take the bytes of frames up to the next packet, and return where it is."""
        found = _PLAIN.match(data, at)
        assert found is not None
        end = found.end()
        if end > at:
            self._begins.append(len(self._data))
            self._offsets.append(self._offset)
            self._data += data[at:end]
            self._before = data[end - 1 : end]
            self._offset += end - at
        return end

    @staticmethod
    def _is_decided(data: bytes, at: int, *, last: bool) -> bool:
        """Whether enough bytes have come to say what is at *at*."""
        there = data[at : at + len(FSYNC)]
        needed = len(FSYNC) if there[:2] == FSYNC[:2] else len(HSYNC)
        return len(there) >= needed or (last and len(there) >= len(HSYNC))

    def _take_packets(self, data: bytes, at: int) -> Generator[WholeFrames | Skipped, None, int]:
        """Take out the packets at *at*, and return where they end."""
        found = _PACKETS.match(data, at)
        size = 0 if found is None else found.end() - at
        if found is None or (FSYNC in found[0] and len(self._data) % FRAME_BYTES):
            yield from self._complete()
            yield from self._drop(NoId.DAMAGED)
            if self._before + data[at : at + len(FSYNC) - 1] == FSYNC:  # it began with the byte before: one was lost
                size = len(FSYNC) - 1
            self._synchronized = size > 0
        if size:
            yield self._skipped(NoId.SYNC, size)
        self._before = b""
        return at + size

    def _complete(self) -> Iterator[WholeFrames]:
        """Return the whole frames so far."""
        end = len(self._data) - len(self._data) % FRAME_BYTES
        if not end:
            return
        yield (frames := WholeFrames(bytes(self._data[:end]), tuple(self._begins), tuple(self._offsets)))
        del self._data[:end]
        kept = bisect_right(self._begins, end) - 1
        self._begins = [max(begin - end, 0) for begin in self._begins[kept:]] if self._data else []
        self._offsets = [frames.offset_of(end), *self._offsets[kept + 1 :]] if self._data else []

    def _drop(self, cause: NoId) -> Iterator[Skipped]:
        """Drop the frame that has begun."""
        for offset, (begin, end) in zip(self._offsets, pairwise([*self._begins, len(self._data)]), strict=True):
            yield Skipped(cause, offset, end - begin)
        self._data.clear()
        self._begins, self._offsets = [], []

    def _skipped(self, cause: NoId, size: int) -> Skipped:
        self._offset += size
        return Skipped(cause, self._offset - size, size)


FrameCutter = MemoryFrames | PinFrames


def frame_cutter(form: FrameForm) -> FrameCutter:
    """Return what cuts frames of *form*."""
    return PinFrames() if form is FrameForm.PINS else MemoryFrames()
