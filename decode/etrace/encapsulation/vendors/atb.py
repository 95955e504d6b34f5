"""Arm Trace Bus: one record for each transfer.

The bytes of one source are a stream as in `encap`, without srcID; packets need not start with a transfer.

    byte 0  ATID: the source, 1 to 0x6F; 0 is idle, others are reserved
    byte 1  ATBYTES: how many bytes of ATDATA are valid, minus 1
    then    ATDATA, little-endian

Sources: Efficient Trace for RISC-V, "Instruction Trace Encoder Output Packets" (transport example) and Arm IHI 0032B.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import count

from rvtrace_gdb.decode.etrace.encapsulation.encap import ALIGNMENT, IDLE, EncapFields
from rvtrace_gdb.decode.etrace.encapsulation.interface import (
    CannotCarry,
    ContentKind,
    Deframer,
    EncapsulatedItem,
    Idle,
    SourcePackets,
)
from rvtrace_gdb.decode.etrace.encapsulation.stream import StreamDeframer
from rvtrace_gdb.decode.etrace.encapsulation.vendors.records import RecordDeframer
from rvtrace_gdb.decode.stepping.reports import LostBytes

ATB = "atb"
MAX_ID = 0x6F
"""The last ATID of a source."""

_HEAD = 2
_KEPT = 256  # records of a source kept while the start of a packet is not known; far more than a packet has


class AtbDeframer(RecordDeframer):
    """Reads records with *width* bytes of ATDATA."""

    def __init__(self, fields: EncapFields, width: int, start: int, *, wrapped: bool) -> None:
        super().__init__(_HEAD + width, start if wrapped else 0)
        self._fields = fields
        self._wrapped = wrapped
        self._streams: dict[int, _SourceStream] = {}

    def finish(self) -> Iterator[EncapsulatedItem]:
        """See `Deframer`."""
        for stream in self._streams.values():
            yield from stream.finish()
        yield from super().finish()

    def _items(self, records: list[bytes], offset: int) -> Iterator[EncapsulatedItem]:
        for place, record in zip(count(offset, self._size), records):
            yield from self._record(record, place)
        for stream in self._streams.values():
            yield from stream.read()

    def _record(self, record: bytes, offset: int) -> Iterator[EncapsulatedItem]:
        source, valid = record[0], record[1] + 1
        if not source:
            yield Idle(offset, len(record))
        elif source > MAX_ID:
            yield SourcePackets(
                source=source,
                kind=ContentKind.OTHER,
                payloads=[record[_HEAD:]],
                offsets=[offset],
                length=len(record),
                times=None,
                sizes=[len(record)],
            )
        elif valid > len(record) - _HEAD:
            yield from self._lose_record(
                LostBytes(offset, len(record), f"ATBYTES says {valid} of {len(record) - _HEAD} bytes")
            )
        else:
            if source not in self._streams:
                self._streams[source] = _SourceStream(source, self._fields, len(record), wrapped=self._wrapped)
            self._streams[source].add(record[_HEAD : _HEAD + valid], offset)

    def _lose_record(self, lost: LostBytes) -> Iterator[EncapsulatedItem]:
        """Handle the loss of a record that any source may have sent: all streams start anew."""
        self._wrapped = True
        for stream in self._streams.values():
            yield from stream.finish()
        self._streams.clear()
        yield lost


class _SourceStream:
    """The bytes of one source, and the records that contained them."""

    def __init__(self, source: int, fields: EncapFields, size: int, *, wrapped: bool) -> None:
        self._source = source
        self._size = size
        self._stream: Deframer = StreamDeframer(fields.layout(), fields.sorter(), wrapped=wrapped)
        self._new = bytearray()
        self._starts: list[int] = []  # position of each record's first byte among the source's bytes
        self._offsets: list[int] = []  # trace offsets of these records
        self._added = 0  # number of bytes added
        self._reported = 0  # of these, number of bytes in items
        self._folded = 0  # number of discarded records right after the first one kept

    def add(self, data: bytes, offset: int) -> None:
        """Add the valid bytes of a record."""
        self._starts.append(self._added)
        self._offsets.append(offset)
        self._added += len(data)
        self._new += data

    def read(self) -> Iterator[EncapsulatedItem]:
        """Return the items that are complete with the bytes added."""
        data = bytes(self._new)
        self._new.clear()
        return self._translate(list(self._stream.feed(data)))

    def finish(self) -> Iterator[EncapsulatedItem]:
        """Return the remaining items."""
        yield from self.read()
        yield from self._translate(list(self._stream.finish()))

    def _translate(self, items: list[EncapsulatedItem]) -> Iterator[EncapsulatedItem]:
        """Translate items of the source's bytes to items of the trace.

        A record belongs to the item of its first byte.
        """
        stop = self._reported + sum(item.length for item in items)
        parts = sorted((start, i) for i, item in enumerate(items) for start in _starts(item))
        sizes: list[list[int]] = [[] for _ in items]
        for (start, i), end in zip(parts, [*(start for start, _ in parts[1:]), stop], strict=False):
            sizes[i].append(self._size * self._records(start, end))
        yield from [self._translated(item, own) for item, own in zip(items, sizes, strict=True)]
        self._discard_records(stop)

    def _records(self, start: int, end: int) -> int:
        """Return the number of records that start with one of the bytes from *start* to *end* - 1."""
        first, after = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return after - first + (self._folded if first == 0 < after else 0)

    def _discard_records(self, stop: int) -> None:
        """Discard records up to byte *stop*, which are in items. Of the others, few are needed during a search."""
        done = max(bisect_right(self._starts, stop) - 1, 0)
        if done:
            self._folded = 0
        self._reported = stop
        del self._starts[:done], self._offsets[:done]
        if len(self._starts) > 2 * _KEPT:
            self._folded += len(self._starts) - 1 - _KEPT
            del self._starts[1:-_KEPT], self._offsets[1:-_KEPT]

    def _translated(self, item: EncapsulatedItem, sizes: list[int]) -> EncapsulatedItem:
        if isinstance(item, SourcePackets):
            offsets = [self._where(start) for start in item.offsets]
            return item._replace(source=self._source, offsets=offsets, length=sum(sizes), sizes=sizes)
        return item._replace(offset=self._where(item.offset), length=sum(sizes))

    def _where(self, start: int) -> int:
        return self._offsets[bisect_right(self._starts, start) - 1]


def _starts(item: EncapsulatedItem) -> Sequence[int]:
    return item.offsets if isinstance(item, SourcePackets) else (item.offset,)


class AtbFramer:
    """Writes records. Each packet starts with a transfer."""

    def __init__(self, fields: EncapFields, width: int) -> None:
        self._fields = fields
        self._width = width
        self._sources: set[int] = set()

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """See `PacketFramer`."""
        if not 1 <= source <= MAX_ID:
            raise CannotCarry(ATB, f"source {source}: an ATID is 1 to {MAX_ID}")
        packet = self._fields.packet(ATB, payload, kind, 0, time, 0)
        self._sources.add(source)
        return self._transfers(packet, source)

    def synchronization(self) -> bytes:
        """Return the synchronization sequence of every source that has sent a packet."""
        sequence = bytes([IDLE]) * self._fields.nulls + bytes([ALIGNMENT])
        return b"".join(self._transfers(sequence, source) for source in sorted(self._sources))

    def idle(self, length: int) -> bytes:
        """See `PacketFramer`."""
        return bytes(length + -length % (_HEAD + self._width))

    def _transfers(self, data: bytes, source: int) -> bytes:
        beats = [data[i : i + self._width] for i in range(0, len(data), self._width)]
        return b"".join(bytes([source, len(beat) - 1]) + beat.ljust(self._width, b"\0") for beat in beats)
