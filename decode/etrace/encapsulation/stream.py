"""Streams of packets whose first byte tells their length, cut by one regular expression (`StreamDeframer`).

Packets and idle bytes are found together, so that the cost per packet is that of the C library. What the packets are
is said by an `EncapLayout` and a sorter.
"""

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from rvtrace_gdb.decode.etrace.encapsulation.cutting import PacketCutter
from rvtrace_gdb.decode.etrace.encapsulation.interface import (
    CutOff,
    EncapsulatedItem,
    Idle,
    MergingSearch,
    PacketSearch,
)
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, NoCheckpoint, Resumable, attributes, set_attributes
from rvtrace_gdb.decode.stepping.reports import LostBytes

_SLICE = 1 << 16  # bytes processed at once: limits memory, and the time between two progress reports
_GROUPS = ((1, 2, 3), (4, 5, 6, 7), tuple(range(8, 16)), tuple(range(16, 64)))


class EncapReader(Protocol):
    """Reads the packets of a stream."""

    def sort(self, frames: list[bytes], offset: int) -> Iterator[EncapsulatedItem]:
        """Return the items of consecutive complete packets and runs of idle bytes. The first one is at *offset*."""
        ...


@dataclass(frozen=True)
class EncapLayout:
    """How a stream is split into packets.

    sizes  the size of a packet in bytes, including its header, by its first byte; 0: no packet starts with this byte
    idle   a regular expression for one unit of idle bytes, whose length is that in *sizes* for its first byte
    why    returns what is wrong with a byte with which no packet starts
    """

    sizes: Sequence[int]
    idle: bytes
    why: Callable[[int], str]


@lru_cache(maxsize=1 << 9)  # whoever looks for the options of a trace tries some hundred layouts several times
def _patterns(sizes: tuple[int, ...], idle: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the regular expressions of a packet or a run of idle bytes, and of that or any bytes to the end.

    *sizes* and *idle* are those of a `EncapLayout`.
    """
    headers: dict[int, list[int]] = {}
    unit = re.compile(idle, re.DOTALL)
    for header, size in enumerate(sizes):
        if size and not unit.match(bytes([header]) + bytes(size)):
            headers.setdefault(size, []).append(header)
    packet = b"|".join([*_packets(headers), b"(?:" + idle + b")+"])
    return re.compile(packet, re.DOTALL), re.compile(packet + b"|.+", re.DOTALL)


def any_of(values: Sequence[int]) -> bytes:
    """Return the regular expression of one of these bytes."""
    return b"[" + b"".join(b"\\x%02x" % value for value in values) + b"]"


def _packets(headers: dict[int, list[int]]) -> Iterator[bytes]:
    """Return the alternatives by size. They are grouped, so that a wrong group is skipped at once."""
    for group in _GROUPS:
        sizes = [size for size in group if size in headers]
        if sizes:
            every = sorted(header for size in sizes for header in headers[size])
            ways = (any_of(headers[size]) + b".{%d}" % (size - 1) for size in sizes)
            yield b"(?=" + any_of(every) + b")(?:" + b"|".join(ways) + b")"


@dataclass(frozen=True)
class Seams:
    """The offsets across which no packet continues, such as the end of the memory.

    after   returns the first such offset after an offset, None if there is none
    search  makes the search for the next packet; None: a packet starts at the seam
    why     the reason of the loss of a packet that would continue
    """

    after: Callable[[int], int | None]
    search: Callable[[], PacketSearch] | None
    why: str


@dataclass
class _PacketLoss:
    """A loss from *start* on, up to the packet that *search* finds. *why* is empty at the start of the trace."""

    start: int
    why: str
    search: PacketSearch


class StreamDeframer(Resumable):
    """Splits a byte stream into packets, which *reader* reads. See `Deframer`.

    *search* makes a search for a packet that starts at or after an offset. *cutter*: splits and reads in place of
    *reader*, and reports idle bytes together.
    """

    def __init__(
        self,
        layout: EncapLayout,
        reader: EncapReader,
        *,
        wrapped: bool,
        search: Callable[[int], PacketSearch] | None = None,
        seams: Seams | None = None,
        cutter: PacketCutter | None = None,
    ) -> None:
        self.total = 0
        self._layout = layout
        self._reader = reader
        self._cutter = cutter
        self._make_search = search or (lambda start: MergingSearch(layout.sizes, start))
        self._seams = seams
        self._complete, self._any = _patterns(tuple(layout.sizes), layout.idle)
        self._tail = b""  # the start of a packet whose end has not come yet
        self._loss = _PacketLoss(0, "", self._make_search(0)) if wrapped else None

    def checkpoint(self) -> Checkpoint:
        """Return where the stream is. Raises NoCheckpoint inside a loss."""
        if self._loss is not None:
            raise NoCheckpoint("loss")
        return attributes(self, "total", "_tail")

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Go on where another deframer was."""
        set_attributes(self, checkpoint, "total", "_tail")
        self._loss = None

    def begin_at(self, offset: int) -> None:
        """Begin at a byte that may be inside a packet."""
        self.total, self._loss = offset, _PacketLoss(offset, "", self._make_search(offset))

    def feed(self, data: bytes) -> Iterator[EncapsulatedItem]:
        """See `Deframer`."""
        start = 0
        while start < len(data):
            seam = self._seams.after(self.total) if self._seams else None
            stop = start + (_SLICE if seam is None else min(_SLICE, seam - self.total))
            yield from self._feed(data[start:stop])
            start = stop
            if self._seams and self.total == seam:
                yield from self._cross(self._seams)

    def finish(self) -> Iterator[EncapsulatedItem]:
        """See `Deframer`."""
        if self._loss:
            self._loss.why = self._loss.why or self._loss.search.nothing
            yield from self._end_loss(self._loss, self.total)
        tail, self._tail = self._tail, b""
        if tail:
            yield CutOff(self.total - len(tail), len(tail), "the last packet is cut off")

    def _feed(self, data: bytes) -> Iterator[EncapsulatedItem]:
        self.total += len(data)
        data, self._tail = self._tail + data, b""
        offset, at = self.total - len(data), 0
        while at < len(data):
            if self._loss:
                found = self._loss.search.find(data, at, offset)
                if found is None:
                    return
                at = found
                yield from self._end_loss(self._loss, offset + at)
                continue
            at = yield from self._read(data, at, offset)
            rest = data[at:]
            if rest and self._layout.sizes[rest[0]] <= len(rest):  # there is all of it, and it is not a packet
                start = offset + at
                self._loss = _PacketLoss(start, self._layout.why(rest[0]), self._make_search(start + 1))
            else:
                self._tail, at = rest, len(data)

    def _read(self, data: bytes, at: int, offset: int) -> Generator[EncapsulatedItem, None, int]:
        """Yield the packets from byte *at* of *data* on, and return the byte after the last that is complete."""
        if self._cutter is not None:
            end, items = self._cutter.cut(data, at, offset)
            yield from items
            return end
        frames = self._any.findall(data, at)
        rest = b"" if self._complete.fullmatch(frames[-1]) else frames.pop()
        if frames:
            yield from self._reader.sort(frames, offset + at)
        return len(data) - len(rest)

    def _cross(self, seams: Seams) -> Iterator[EncapsulatedItem]:
        """Handle a seam at the end of the bytes fed so far."""
        if seams.search is None:
            if self._loss:
                yield from self._end_loss(self._loss, self.total)
        elif self._loss:
            self._loss.search = seams.search()
        else:
            self._loss = _PacketLoss(self.total - len(self._tail), seams.why, seams.search())
            self._tail = b""
        tail, self._tail = self._tail, b""
        if tail:
            yield LostBytes(self.total - len(tail), len(tail), seams.why)

    def _end_loss(self, loss: _PacketLoss, stop: int) -> Iterator[EncapsulatedItem]:
        self._loss = None
        filling = loss.search.filling
        if stop - filling > loss.start:
            yield LostBytes(loss.start, stop - filling - loss.start, loss.why)
        if filling:
            yield Idle(stop - filling, filling)
