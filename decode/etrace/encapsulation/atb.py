"""What an Arm Trace Bus carried, one record for each transfer:

    byte 0  ATID: the source, 1 to 0x6F; 0 is filling, others are reserved
    byte 1  ATBYTES: how many bytes of ATDATA are valid, minus 1
    then    ATDATA, little-endian

The bytes of one source are a stream as in `encap`, without srcID. Packets need not start with a transfer.

Sources: Efficient Trace for RISC-V, "Instruction Trace Encoder Output Packets" (transport example); Arm IHI 0032B.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from rvtrace_gdb.decode.etrace.encapsulation.encap import ALIGNMENT, IDLE, Fields
from rvtrace_gdb.decode.etrace.encapsulation.interface import CannotCarry, CutOff, Deframer, Idle, Item, Kind, Packets
from rvtrace_gdb.decode.etrace.encapsulation.stream import StreamDeframer
from rvtrace_gdb.decode.streams import Lost

NAME = "atb"
MAX_ID = 0x6F
"""The last ATID of a source."""

_HEAD = 2
_SLICE = 1 << 16  # bytes looked at once
_KEPT = 256  # records of a source kept apart while it is not known where a packet starts; far more than one packet has


class AtbDeframer:
    """Reads records of *width* bytes of ATDATA; the first starts at *start*, modulo their size. See `Deframer`."""

    def __init__(self, fields: Fields, width: int, start: int, *, wrapped: bool) -> None:
        self.total = 0
        self._fields = fields
        self._size = _HEAD + width
        self._tail = b""
        self._skip = start % self._size if wrapped else 0
        self._wrapped = wrapped
        self._lanes: dict[int, _Lane] = {}

    def feed(self, data: bytes) -> Iterator[Item]:
        """See `Deframer`."""
        for start in range(0, len(data), _SLICE):
            yield from self._feed(data[start : start + _SLICE])

    def _feed(self, data: bytes) -> Iterator[Item]:
        offset = self.total - len(self._tail)
        self.total += len(data)
        data, at = self._tail + data, 0
        if self._skip:
            if len(data) < self._skip:
                self._tail = data
                return
            at, self._skip = self._skip, 0
            yield Lost(offset, at, "")
        stop = len(data) - (len(data) - at) % self._size
        self._tail = data[stop:]
        for place in range(at, stop, self._size):
            yield from self._record(data[place : place + self._size], offset + place)
        for lane in self._lanes.values():
            yield from lane.read()

    def finish(self) -> Iterator[Item]:
        """See `Deframer`."""
        for lane in self._lanes.values():
            yield from lane.finish()
        tail, self._tail = self._tail, b""
        if tail:
            yield CutOff(self.total - len(tail), len(tail), "the last record is cut off")

    def _record(self, record: bytes, offset: int) -> Iterator[Item]:
        source, valid = record[0], record[1] + 1
        if not source:
            yield Idle(offset, len(record))
        elif source > MAX_ID:
            yield Packets(source, Kind.OTHER, [record[_HEAD:]], [offset], len(record), None, [len(record)])
        elif valid > len(record) - _HEAD:
            yield from self._break(Lost(offset, len(record), f"ATBYTES says {valid} of {len(record) - _HEAD} bytes"))
        else:
            if source not in self._lanes:
                self._lanes[source] = _Lane(source, self._fields, len(record), wrapped=self._wrapped)
            self._lanes[source].add(record[_HEAD : _HEAD + valid], offset)

    def _break(self, lost: Lost) -> Iterator[Item]:
        """A record any source may have sent is lost: none goes on where it was."""
        self._wrapped = True
        for lane in self._lanes.values():
            yield from lane.finish()
        self._lanes.clear()
        yield lost


class _Lane:
    """The bytes of one source, and the records they came in."""

    def __init__(self, source: int, fields: Fields, size: int, *, wrapped: bool) -> None:
        self._source = source
        self._size = size
        self._stream: Deframer = StreamDeframer(fields.layout(), fields.sorter(), wrapped=wrapped)
        self._new = bytearray()
        self._starts: list[int] = []  # where in the source's bytes each record's first is
        self._offsets: list[int] = []  # of these records
        self._added = 0  # bytes
        self._told = 0  # of these, as part of an item
        self._folded = 0  # records no longer kept that come right behind the first one kept

    def add(self, data: bytes, offset: int) -> None:
        """The valid bytes of a record."""
        self._starts.append(self._added)
        self._offsets.append(offset)
        self._added += len(data)
        self._new += data

    def read(self) -> Iterator[Item]:
        """What is complete with the bytes added."""
        data = bytes(self._new)
        self._new.clear()
        return self._translate(list(self._stream.feed(data)))

    def finish(self) -> Iterator[Item]:
        """What is left."""
        yield from self.read()
        yield from self._translate(list(self._stream.finish()))

    def _translate(self, items: list[Item]) -> Iterator[Item]:
        """Items of the source's bytes, to those of the trace. A record counts for what its first byte belongs to."""
        stop = self._told + sum(item.length for item in items)
        parts = sorted((start, i) for i, item in enumerate(items) for start in _starts(item))
        sizes: list[list[int]] = [[] for _ in items]
        for (start, i), end in zip(parts, [*(start for start, _ in parts[1:]), stop], strict=False):
            sizes[i].append(self._size * self._records(start, end))
        yield from [self._moved(item, own) for item, own in zip(items, sizes, strict=True)]
        self._forget(stop)

    def _records(self, start: int, end: int) -> int:
        """How many records start with one of the bytes from *start* to *end* - 1."""
        first, behind = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return behind - first + (self._folded if first == 0 < behind else 0)

    def _forget(self, stop: int) -> None:
        """All up to byte *stop* is told. What is not is bytes of one packet, or in search of one; few are needed."""
        done = max(bisect_right(self._starts, stop) - 1, 0)
        if done:
            self._folded = 0
        self._told = stop
        del self._starts[:done], self._offsets[:done]
        if len(self._starts) > 2 * _KEPT:
            self._folded += len(self._starts) - 1 - _KEPT
            del self._starts[1:-_KEPT], self._offsets[1:-_KEPT]

    def _moved(self, item: Item, sizes: list[int]) -> Item:
        if isinstance(item, Packets):
            offsets = [self._where(start) for start in item.offsets]
            return item._replace(source=self._source, offsets=offsets, length=sum(sizes), sizes=sizes)
        return item._replace(offset=self._where(item.offset), length=sum(sizes))

    def _where(self, start: int) -> int:
        return self._offsets[bisect_right(self._starts, start) - 1]


def _starts(item: Item) -> Sequence[int]:
    return item.offsets if isinstance(item, Packets) else (item.offset,)


class AtbFramer:
    """Writes records; each packet starts with a transfer."""

    def __init__(self, fields: Fields, width: int) -> None:
        self._fields = fields
        self._width = width
        self._sources: set[int] = set()

    def packet(self, payload: bytes, kind: Kind = Kind.INSTRUCTION, source: int = 0, time: int | None = None) -> bytes:
        """See `Framer`."""
        if not 1 <= source <= MAX_ID:
            raise CannotCarry(NAME, f"source {source}: an ATID is 1 to {MAX_ID}")
        packet = self._fields.packet(NAME, payload, kind, 0, time, 0)
        self._sources.add(source)
        return self._transfers(packet, source)

    def synchronization(self) -> bytes:
        """The synchronization sequence of every source that has sent a packet."""
        sequence = bytes([IDLE]) * self._fields.nulls + bytes([ALIGNMENT])
        return b"".join(self._transfers(sequence, source) for source in sorted(self._sources))

    def idle(self, length: int) -> bytes:
        """See `Framer`."""
        return bytes(length + -length % (_HEAD + self._width))

    def _transfers(self, data: bytes, source: int) -> bytes:
        beats = [data[i : i + self._width] for i in range(0, len(data), self._width)]
        return b"".join(bytes([source, len(beat) - 1]) + beat.ljust(self._width, b"\0") for beat in beats)
