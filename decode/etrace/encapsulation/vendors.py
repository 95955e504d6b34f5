"""Vendors' transports: Arm Trace Bus, memory of an ESP32, records of PULP's rv_tracer, QEMU's RAM sink.

A trace from an Arm Trace Bus has one record for each transfer. The bytes of one source are a stream as in `encap`,
without srcID; packets need not start with a transfer.

    byte 0  ATID: the source, 1 to 0x6F; 0 is idle, others are reserved
    byte 1  ATBYTES: how many bytes of ATDATA are valid, minus 1
    then    ATDATA, little-endian

The memory that an ESP32's trace encoder writes has the same format for PT10 and ET20. At intervals there is an anchor,
at least 14 zero bytes; reading can start only after an anchor. If the memory wrapped, the packet at its end does not
continue at its start.

    byte 0     length[4:0] of the packet, including these three bytes; [7:5] are 0
    bytes 1-2  index: counts packets, wraps
    then       payload

The records of PULP's rv_tracer have 40 bytes each, most significant first. Byte-reversed:

    byte 0      header as in e-trace-encap: length[4:0], flow[6:5], extend[7]
    bytes 1-8   timestamp, present for any value of extend
    bytes 9-39  payload, then zeros

The RAM sink of QEMU's trace encoder holds e-trace-encap of one source without timestamps, each packet padded to words.
A packet that does not fit before the end of the memory goes to its start; the rest is filled with zeros.

Sources: Efficient Trace for RISC-V, "Instruction Trace Encoder Output Packets" (transport example) and Arm IHI 0032B;
Espressif's technical reference manuals, "RISC-V Trace Encoder (TRACE)", and ESP-IDF, component esp_riscv_trace;
rv_tracer's captures of simulated hardware and their decoder (pulp-platform), whose own e-trace-encap output is `encap`
with timestamps of 8 bytes; QEMU, "hw/riscv, target/riscv: initial e-trace support" (trace-encoder.c,
trencoder_send_message_smem).
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from types import ModuleType

from rvtrace_gdb.decode.etrace.encapsulation.cutting import HeaderKind, PacketCutter, PacketStreamFormat
from rvtrace_gdb.decode.etrace.encapsulation.encap import (
    ALIGNMENT,
    EXTEND,
    IDLE,
    MAX_LENGTH,
    EncapFields,
    EncapLayout,
    Seams,
    StreamDeframer,
)
from rvtrace_gdb.decode.etrace.encapsulation.interface import (
    CannotCarry,
    ContentKind,
    CutOff,
    Deframer,
    EncapsulatedItem,
    Idle,
    MergingSearch,
    SourcePackets,
    UniformSorter,
    ZerosSearch,
)
from rvtrace_gdb.decode.stepping.reports import LostBytes

ATB = "atb"
MAX_ID = 0x6F
"""The last ATID of a source."""

_HEAD = 2
_SLICE = 1 << 16  # bytes processed at once
_KEPT = 256  # records of a source kept while the start of a packet is not known; far more than a packet has


class RecordDeframer(ABC):
    """Reads records of *size* bytes. The first one starts at *start*, modulo their size. See `Deframer`."""

    def __init__(self, size: int, start: int) -> None:
        self.total = 0
        self._size = size
        self._tail = b""
        self._skip = start % size

    def feed(self, data: bytes) -> Iterator[EncapsulatedItem]:
        """See `Deframer`."""
        for start in range(0, len(data), _SLICE):
            yield from self._feed(data[start : start + _SLICE])

    def _feed(self, data: bytes) -> Iterator[EncapsulatedItem]:
        offset = self.total - len(self._tail)
        self.total += len(data)
        data, at = self._tail + data, 0
        if self._skip:
            if len(data) < self._skip:
                self._tail = data
                return
            at, self._skip = self._skip, 0
            yield LostBytes(offset, at, "")
        stop = len(data) - (len(data) - at) % self._size
        self._tail = data[stop:]
        yield from self._items([data[i : i + self._size] for i in range(at, stop, self._size)], offset + at)

    def finish(self) -> Iterator[EncapsulatedItem]:
        """See `Deframer`."""
        tail, self._tail = self._tail, b""
        if tail:
            yield CutOff(self.total - len(tail), len(tail), "the last record is cut off")

    @abstractmethod
    def _items(self, records: list[bytes], offset: int) -> Iterator[EncapsulatedItem]:
        """Return the items of consecutive records, the first of which starts at *offset*."""


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


ESP32 = "esp32"
ANCHOR = 14
"""The number of zero bytes of an anchor."""
PREFIX = 3
"""The number of bytes before the payload."""
MAX_SIZE = 31
"""The number of bytes of the longest packet."""

_INDICES = 1 << 16


def esp32_deframer(*, wrapped: bool, end: int) -> StreamDeframer:
    """Return a deframer. *end*: the trace offset of the end of a memory that wrapped; 0: it is not in the trace."""
    sizes = [1] + [size if PREFIX < size <= MAX_SIZE else 0 for size in range(1, 256)]
    seams = Seams(
        lambda offset: end if offset < end else None, _anchor_search, "no packet continues across the end of the memory"
    )
    return StreamDeframer(
        EncapLayout(sizes, rb"\x00", lambda header: f"0x{header:02x} is not the length of a packet"),
        _Esp32Sorter(),
        wrapped=wrapped,
        search=lambda start: _anchor_search(),
        seams=seams if end else None,
    )


def _anchor_search() -> ZerosSearch:
    return ZerosSearch(ANCHOR)


class _Esp32Sorter:
    """Separates packets from zeros, and detects missing packets by their indices."""

    def __init__(self) -> None:
        self._next: int | None = None

    def sort(self, frames: list[bytes], offset: int) -> Iterator[EncapsulatedItem]:
        """See `encap.EncapReader`."""
        places = list(accumulate(map(len, frames), initial=offset))
        kept = [i for i, frame in enumerate(frames) if frame[0]]
        indices = [frames[i][1] | frames[i][2] << 8 for i in kept]
        start = 0
        for i in self._jumps(indices):
            yield from _esp32_packets(frames, places, kept[start:i])
            before = (indices[i - 1] if i else (self._next or 0) - 1) & _INDICES - 1
            yield LostBytes(places[kept[i]], 0, _missing_text(before, indices[i]))
            start = i
        yield from _esp32_packets(frames, places, kept[start:])
        if indices:
            self._next = (indices[-1] + 1) % _INDICES
        yield from (Idle(places[i], len(frame)) for i, frame in enumerate(frames) if not frame[0])

    def _jumps(self, indices: list[int]) -> list[int]:
        """Return which packets do not have the index after that of the packet before."""
        if not indices:
            return []
        first = indices[0] if self._next is None else self._next
        expected = [first, *((index + 1) % _INDICES for index in indices)]
        return [i for i, index in enumerate(indices) if index != expected[i]]


def _esp32_packets(frames: list[bytes], places: list[int], kept: list[int]) -> Iterator[SourcePackets]:
    if kept:
        payloads = [frames[i][PREFIX:] for i in kept]
        sizes = [PREFIX + len(payload) for payload in payloads]
        yield SourcePackets(
            source=0,
            kind=ContentKind.INSTRUCTION,
            payloads=payloads,
            offsets=[places[i] for i in kept],
            length=sum(sizes),
            times=None,
            sizes=sizes,
        )


def _missing_text(before: int, index: int) -> str:
    missing = (index - before - 1) % _INDICES
    if missing >= _INDICES // 2:
        return f"packet {index} comes after packet {before}: some are missing, or older ones are left over"
    return f"{missing} packet{'s are' if missing > 1 else ' is'} missing between index {before} and {index}"


class Esp32Framer:
    """Writes packets as the encoder does."""

    def __init__(self) -> None:
        self._index = 0

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """See `PacketFramer`."""
        if not 1 <= len(payload) <= MAX_SIZE - PREFIX:
            raise CannotCarry(ESP32, f"a payload of {len(payload)} bytes: it has 1 to {MAX_SIZE - PREFIX}")
        if kind is not ContentKind.INSTRUCTION or source or time is not None:
            raise CannotCarry(ESP32, "anything but the instruction trace of one source, without timestamps")
        index, self._index = self._index, (self._index + 1) % _INDICES
        return bytes([PREFIX + len(payload)]) + index.to_bytes(2, "little") + payload

    def synchronization(self) -> bytes:
        """Return an anchor."""
        return bytes(ANCHOR)

    def idle(self, length: int) -> bytes:
        """See `PacketFramer`."""
        return bytes(length)


PULP = "pulp"
RECORD = 40
"""The number of bytes of a record."""


_TIME = 8
_HEADER = RECORD - 1


class PulpDeframer(RecordDeframer):
    """Reads records of rv_tracer."""

    def __init__(self, start: int) -> None:
        super().__init__(RECORD, start)

    def _items(self, records: list[bytes], offset: int) -> Iterator[EncapsulatedItem]:
        start = 0
        for i, record in enumerate(records):
            length = record[_HEADER] & MAX_LENGTH
            if length and not any(record[: MAX_LENGTH - length]):
                continue
            yield from _pulp_packets(records[start:i], offset + start * RECORD)
            start, where = i + 1, offset + i * RECORD
            if any(record):
                yield LostBytes(where, RECORD, "a record with more payload than it says")
            else:
                yield Idle(where, RECORD)
        yield from _pulp_packets(records[start:], offset + start * RECORD)


def _pulp_packets(records: list[bytes], offset: int) -> Iterator[SourcePackets]:
    if not records:
        return
    reversed_ = [record[::-1] for record in records]
    payloads = [record[1 + _TIME : 1 + _TIME + (record[0] & MAX_LENGTH)] for record in reversed_]
    times = [int.from_bytes(record[1 : 1 + _TIME], "little") if record[0] & EXTEND else None for record in reversed_]
    offsets = range(offset, offset + len(records) * RECORD, RECORD)
    sizes = [RECORD] * len(records)
    yield SourcePackets(
        source=0,
        kind=ContentKind.INSTRUCTION,
        payloads=payloads,
        offsets=offsets,
        length=sum(sizes),
        times=times,
        sizes=sizes,
    )


class PulpFramer:
    """Writes records."""

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """See `PacketFramer`."""
        if not 1 <= len(payload) <= MAX_LENGTH:
            raise CannotCarry(PULP, f"a payload of {len(payload)} bytes: it has 1 to {MAX_LENGTH}")
        if kind is not ContentKind.INSTRUCTION or source:
            raise CannotCarry(PULP, "anything but the instruction trace of one source")
        header = len(payload) | (0 if time is None else EXTEND)
        stamp = ((time or 0) & (1 << 8 * _TIME) - 1).to_bytes(_TIME, "little")
        return (bytes([header]) + stamp + payload).ljust(RECORD, b"\0")[::-1]

    def synchronization(self) -> bytes:
        """Return nothing, because all records have the same size."""
        return b""

    def idle(self, length: int) -> bytes:
        """See `PacketFramer`."""
        return bytes(length + -length % RECORD)


QEMU = "qemu"
WORD = 4
"""Packets are padded to a multiple of this number of bytes."""


def qemu_deframer(*, wrapped: bool, end: int, module: ModuleType | None = None) -> StreamDeframer:
    """Return a deframer. *end*: the trace offset of the end of a memory that wrapped; 0: it is not in the trace.
    *module* has the kernel that cuts.
    """
    sizes = [_padded(1 + header) if header <= MAX_LENGTH else 0 for header in range(256)]
    seams = Seams(
        lambda offset: end if offset < end else None, None, "no packet continues across the end of the memory"
    )
    return StreamDeframer(
        EncapLayout(sizes, rb"\x00{%d}" % WORD, lambda header: f"no packet of QEMU starts with 0x{header:02x}"),
        UniformSorter(_qemu_payloads, [ContentKind.INSTRUCTION] * 256, frozenset({0})),
        wrapped=wrapped,
        search=lambda start: MergingSearch(sizes, start, unit=WORD, phase=end),
        seams=seams if end else None,
        cutter=None if module is None else PacketCutter(module, _qemu_format()),
    )


def _qemu_format() -> PacketStreamFormat:
    """Return the layout of the stream for the kernel."""
    headers = [HeaderKind(WORD, None, timed=False, begin=1, end=1)]
    for header in range(1, 256):
        size = _padded(1 + header) if header <= MAX_LENGTH else 0
        end = min(1 + header, size)
        headers.append(HeaderKind(size, ContentKind.INSTRUCTION, timed=False, begin=min(1, size), end=end))
    return PacketStreamFormat(tuple(headers))


def _padded(size: int) -> int:
    return size + -size % WORD


def _qemu_payloads(frames: list[bytes]) -> list[bytes]:
    return [frame[1 : 1 + frame[0]] for frame in frames]


class QemuFramer:
    """Writes packets as in the RAM sink."""

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """See `PacketFramer`."""
        if not 1 <= len(payload) <= MAX_LENGTH:
            raise CannotCarry(QEMU, f"a payload of {len(payload)} bytes: it has 1 to {MAX_LENGTH}")
        if kind is not ContentKind.INSTRUCTION or source or time is not None:
            raise CannotCarry(QEMU, "anything but the instruction trace of one source, without timestamps")
        return (bytes([len(payload)]) + payload).ljust(_padded(1 + len(payload)), b"\0")

    def synchronization(self) -> bytes:
        """Return more zeros than a packet has."""
        return bytes(_padded(MAX_LENGTH + 1))

    def idle(self, length: int) -> bytes:
        """See `PacketFramer`."""
        return bytes(_padded(length))
