"""Bytes to packets where a packet's first byte says how long it is.

One regular expression finds packets and filling, so that the cost per packet is that of the C library.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rvtrace_gdb.decode.etrace.encapsulation.interface import CutOff, Idle, Item
from rvtrace_gdb.decode.etrace.encapsulation.searching import Merging, Search
from rvtrace_gdb.decode.streams import Lost

_SLICE = 1 << 16  # bytes looked at once: bounds memory, and how long a caller waits for a sign of life
_GROUPS = ((1, 2, 3), (4, 5, 6, 7), tuple(range(8, 16)), tuple(range(16, 64)))


class Reader(Protocol):
    """Reads packets that were found."""

    def sort(self, frames: list[bytes], offset: int) -> Iterator[Item]:
        """What complete packets and runs of filling, one behind the other from *offset* on, are."""
        ...


@dataclass(frozen=True)
class Layout:
    """How packets are cut.

    sizes  of a packet in bytes, header included, by its first byte; 0: no packet starts with it
    idle   a regular expression: one unit of filling, as long as *sizes* says of its first byte
    why    what is wrong with a byte no packet starts with
    """

    sizes: Sequence[int]
    idle: bytes
    why: Callable[[int], str]

    def packet(self) -> bytes:
        """A regular expression: a packet or a run of filling."""
        sizes: dict[int, list[int]] = {}
        unit = re.compile(self.idle, re.DOTALL)
        for header, size in enumerate(self.sizes):
            if size and not unit.match(bytes([header]) + bytes(size)):
                sizes.setdefault(size, []).append(header)
        return b"|".join([*_packets(sizes), b"(?:" + self.idle + b")+"])


def any_of(values: Sequence[int]) -> bytes:
    """A regular expression: one of these bytes."""
    return b"[" + b"".join(b"\\x%02x" % value for value in values) + b"]"


def _packets(headers: dict[int, list[int]]) -> Iterator[bytes]:
    """Alternatives, by size. In groups, of which the wrong ones are passed over at once."""
    for group in _GROUPS:
        sizes = [size for size in group if size in headers]
        if sizes:
            every = sorted(header for size in sizes for header in headers[size])
            ways = (any_of(headers[size]) + b".{%d}" % (size - 1) for size in sizes)
            yield b"(?=" + any_of(every) + b")(?:" + b"|".join(ways) + b")"


@dataclass(frozen=True)
class Seams:
    """Places across which no packet goes on.

    after   the first such offset behind an offset; None: there is none
    search  for what comes behind one; None: a packet starts there
    why     what to say of a packet that would go on
    """

    after: Callable[[int], int | None]
    search: Callable[[], Search] | None
    why: str


@dataclass
class _Loss:
    """Bytes from *start* on are no packets, up to what *search* finds. *why*: empty at the start of the trace."""

    start: int
    why: str
    search: Search


class StreamDeframer:
    """Cuts a byte stream into packets, for *reader* to read. See `Deframer`.

    *search* makes a search for a packet that starts at an offset or behind it.
    """

    def __init__(
        self,
        layout: Layout,
        reader: Reader,
        *,
        wrapped: bool,
        search: Callable[[int], Search] | None = None,
        seams: Seams | None = None,
    ) -> None:
        self.total = 0
        self._layout = layout
        self._reader = reader
        self._make_search = search or (lambda start: Merging(layout.sizes, start))
        self._seams = seams
        self._whole = re.compile(layout.packet(), re.DOTALL)
        self._any = re.compile(layout.packet() + b"|.+", re.DOTALL)
        self._tail = b""  # the start of a packet whose end has not come yet
        self._loss = _Loss(0, "", self._make_search(0)) if wrapped else None

    def feed(self, data: bytes) -> Iterator[Item]:
        """See `Deframer`."""
        start = 0
        while start < len(data):
            seam = self._seams.after(self.total) if self._seams else None
            stop = start + (_SLICE if seam is None else min(_SLICE, seam - self.total))
            yield from self._feed(data[start:stop])
            start = stop
            if self._seams and self.total == seam:
                yield from self._cross(self._seams)

    def finish(self) -> Iterator[Item]:
        """See `Deframer`."""
        if self._loss:
            self._loss.why = self._loss.why or self._loss.search.nothing
            yield from self._end_loss(self._loss, self.total)
        tail, self._tail = self._tail, b""
        if tail:
            yield CutOff(self.total - len(tail), len(tail), "the last packet is cut off")

    def _feed(self, data: bytes) -> Iterator[Item]:
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
            frames = self._any.findall(data, at)
            rest = b"" if self._whole.fullmatch(frames[-1]) else frames.pop()
            if frames:
                yield from self._reader.sort(frames, offset + at)
            at = len(data) - len(rest)
            if rest and self._layout.sizes[rest[0]] <= len(rest):  # there is all of it, and it is no packet
                self._lose(offset + at, self._layout.why(rest[0]))
            else:
                self._tail, at = rest, len(data)

    def _cross(self, seams: Seams) -> Iterator[Item]:
        """The trace fed so far ends at a seam."""
        if seams.search is None:
            if self._loss:
                yield from self._end_loss(self._loss, self.total)
        elif self._loss:
            self._loss.search = seams.search()
        else:
            self._loss = _Loss(self.total - len(self._tail), seams.why, seams.search())
            self._tail = b""
        tail, self._tail = self._tail, b""
        if tail:
            yield Lost(self.total - len(tail), len(tail), seams.why)

    def _lose(self, start: int, why: str) -> None:
        self._loss = _Loss(start, why, self._make_search(start + 1))

    def _end_loss(self, loss: _Loss, stop: int) -> Iterator[Item]:
        self._loss = None
        filling = loss.search.filling
        if stop - filling > loss.start:
            yield Lost(loss.start, stop - filling - loss.start, loss.why)
        if filling:
            yield Idle(stop - filling, filling)
