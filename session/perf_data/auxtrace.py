"""The trace in perf.data: which driver made it, and the pieces of each buffer.

There are two series of Linux drivers for RISC-V trace. They give the same, or no stable, number to their kind of
AUXTRACE, so they are told apart by the size of what they say about it:

- RVTRACE ("Linux RISC-V trace framework and drivers", drivers/hwtracing/rvtrace): one word, the type of the PMU. The
  bytes are those of the RAM sink of one encoder for each CPU; the format is not said.
- CORESIGHT (SpacemiT, drivers/hwtracing/coresight/rvtrace-*.c): a word, and seven words for each CPU: its number, five
  (the number of the words that follow, less the first), the format, whether there are contexts, no source, its bits,
  its ID. The bytes are frames of Arm's trace formatter, with several trace source IDs.

Source of AUX and AUXTRACE records: Linux, include/uapi/linux/perf_event.h, tools/lib/perf/include/perf/event.h.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.session.perf_data.aux_bytes import AuxBytes
from rvtrace_gdb.session.perf_data.file import BadPerfData
from rvtrace_gdb.session.perf_data.layout import AuxFlag
from rvtrace_gdb.session.perf_data.records import PerfRecord, RecordOrigin, RecordReader

_OTHER_KINDS = {
    1: "Intel PT",
    2: "Intel BTS",
    3: "Arm CoreSight ETM",
    4: "Arm SPE",
    5: "s390 CPU-MF",
    6: "HiSilicon PTT",
}
_WORD = 8
_WORDS_PER_CPU = 7
_EVERYBODY = (1 << 64) - 1  # in place of a thread's ID


class DriverSeries(Enum):
    """The series of Linux drivers."""

    RVTRACE = "drivers/hwtracing/rvtrace"
    CORESIGHT = "drivers/hwtracing/coresight/rvtrace"


class CpuEncoder(NamedTuple):
    """What the CoreSight series says of the encoder of a CPU. *etrace*: it is E-Trace, else N-Trace.

    *context*: it sends contexts, the ID of the thread. *src_bits*: 0 where `inhibit_src` is set.
    """

    cpu: int
    etrace: bool
    context: bool
    src_bits: int
    src_id: int


class AuxtraceInfo(NamedTuple):
    """What an AUXTRACE_INFO record says. *cpus*: of the CoreSight series."""

    series: DriverSeries
    pmu_type: int
    cpus: tuple[CpuEncoder, ...]


def auxtrace_info(record: PerfRecord, reader: RecordReader) -> AuxtraceInfo:
    """Return what an AUXTRACE_INFO record says. Raises BadPerfData for the trace of another kind of hardware."""
    kind, private = reader.number(record, 0, "I"), record.body[_WORD:]
    if kind in _OTHER_KINDS:
        raise _bad(reader, record, f"this is a trace of {_OTHER_KINDS[kind]}, not of RISC-V")
    words = struct.unpack(f"{reader.order}{len(private) // _WORD}Q", private[: len(private) // _WORD * _WORD])
    if len(words) == 1:
        return AuxtraceInfo(DriverSeries.RVTRACE, words[0], ())
    if not words or (len(words) - 1) % _WORDS_PER_CPU:
        raise _bad(
            reader,
            record,
            f"AUXTRACE_INFO of type {kind} has {len(words)} words: RISC-V trace has 1, or 1 and 7 for each CPU",
        )
    rows = [words[at : at + _WORDS_PER_CPU] for at in range(1, len(words), _WORDS_PER_CPU)]
    cpus = tuple(_cpu_encoder(row, reader, record) for row in rows)
    return AuxtraceInfo(DriverSeries.CORESIGHT, words[0] >> 32, cpus)


def _cpu_encoder(row: tuple[int, ...], reader: RecordReader, record: PerfRecord) -> CpuEncoder:
    cpu, _, form, context, inhibit_src, src_bits, src_id = row
    if form not in (0, 1) or src_bits > 12:
        why = "formats are 0, E-Trace, and 1, N-Trace, and sources have 12 bits at most"
        raise _bad(reader, record, f"AUXTRACE_INFO gives CPU {cpu} format {form} and {src_bits} bits of source: {why}")
    return CpuEncoder(cpu, form == 0, bool(context), 0 if inhibit_src else src_bits, src_id)


def _bad(reader: RecordReader, record: PerfRecord, why: str) -> BadPerfData:
    return BadPerfData(reader.file.path, record.offset, why)


class AuxStretch(NamedTuple):
    """Bytes of a buffer, as an AUXTRACE record has them. *offset*: in all that was ever written to the buffer."""

    offset: int
    data: AuxBytes

    @property
    def end(self) -> int:
        return self.offset + self.data.size


class AuxRange(NamedTuple):
    """Which bytes of a buffer were written at once, from an AUX record, by whom, and what the kernel says of them."""

    offset: int
    size: int
    flags: AuxFlag
    origin: RecordOrigin


class AuxPiece(NamedTuple):
    """Bytes of a buffer that were written at once. *loss*: why trace is missing before them; "": it goes on there."""

    parts: tuple[AuxBytes, ...]
    loss: str
    origin: RecordOrigin

    @property
    def size(self) -> int:
        """How many bytes they are."""
        return sum(part.size for part in self.parts)

    @property
    def data(self) -> bytes:
        """The bytes, as they are read now. Raises OSError."""
        return b"".join(part.read() for part in self.parts)


@dataclass
class AuxBuffer:
    """A buffer. *cpu* and *tid*: whose it is; one of them is None."""

    cpu: int | None
    tid: int | None
    stretches: list[AuxStretch] = field(default_factory=list)
    ranges: list[AuxRange] = field(default_factory=list)

    def pieces(self) -> list[AuxPiece]:
        """Return the pieces in order, with those without bytes, which say until when nothing was recorded. A buffer
        whose AUX records are missing is one piece for each stretch.
        """
        stretches = sorted(self.stretches, key=lambda one: one.offset)
        whole = (AuxRange(it.offset, it.data.size, AuxFlag(0), RecordOrigin()) for it in stretches)
        ranges = sorted(self.ranges, key=lambda one: one.offset) or list(whole)
        found: list[AuxPiece] = []
        end: int | None = None
        first = 0  # stretches before it end before this range, and so before all that follow
        for one in ranges:
            while first < len(stretches) and stretches[first].end <= one.offset:
                first += 1
            parts = _parts_of(stretches, first, one.offset, one.size)
            size = sum(part.size for part in parts)
            found.append(AuxPiece(parts, _loss(one, end, size), one.origin))
            end = one.offset + size
        return found


def _parts_of(stretches: list[AuxStretch], first: int, offset: int, size: int) -> tuple[AuxBytes, ...]:
    """Return the bytes from *offset* on, up to the first that no stretch from number *first* on has."""
    parts: list[AuxBytes] = []
    for number in range(first, len(stretches)):
        stretch = stretches[number]
        if stretch.offset > offset:
            break  # as all behind it
        inside = stretch.data.part(offset - stretch.offset, offset + size - stretch.offset)
        if inside.size:
            parts.append(inside)
            offset, size = offset + inside.size, size - inside.size
    return tuple(parts)


def _loss(one: AuxRange, end: int | None, size: int) -> str:
    """Return why trace is missing before a range; *end*: of that before it, *size*: of the bytes that are there."""
    if one.flags & AuxFlag.TRUNCATED:
        return "the kernel had no room for it in the AUX buffer (PERF_AUX_FLAG_TRUNCATED)"
    if one.flags & AuxFlag.PARTIAL:
        return "the kernel says that it has gaps (PERF_AUX_FLAG_PARTIAL)"
    if one.flags & AuxFlag.COLLISION:
        return "another event used the trace hardware (PERF_AUX_FLAG_COLLISION)"
    if end is not None and one.offset > end:
        return f"perf did not save {one.offset - end} bytes of the AUX buffer"
    if end is not None and one.offset < end:
        return f"the AUX buffer was written again, {end - one.offset} bytes before its end"
    return "" if size == one.size else f"perf saved {size} of its {one.size} bytes"


class AuxBuffers:
    """The buffers of a file, from its AUXTRACE and AUX records, which may come in any order."""

    def __init__(self) -> None:
        self._buffers: dict[int, AuxBuffer] = {}
        self._ranges: dict[AuxRange, None] = {}  # a file may say one twice
        self._index_of: dict[int, int] = {}
        self._of_all: set[int] = set()

    def add_ids(self, record: PerfRecord, reader: RecordReader) -> None:
        """Take notice of which buffer the event with an ID has, from an ID_INDEX record: (id, idx, cpu, tid) of each.
        """
        for at in range(8, 8 + 32 * reader.number(record, 0, "Q"), 32):
            event, index, tid = (reader.number(record, at + behind, "Q") for behind in (0, 8, 24))
            self._index_of[event] = index
            if tid == _EVERYBODY:
                self._of_all.add(event)

    def is_of_all(self, origin: RecordOrigin) -> bool:
        """Return whether the event of a record is about whatever ran on a CPU, not about a thread and its children."""
        return origin.id in self._of_all

    def add_stretch(self, record: PerfRecord, reader: RecordReader) -> None:
        """Add the bytes behind an AUXTRACE record."""
        offset, index = reader.number(record, 8, "Q"), reader.number(record, 24, "I")
        tid, cpu = reader.number(record, 28, "i"), reader.number(record, 32, "i")
        buffer = self._buffers.setdefault(index, AuxBuffer(None if cpu < 0 else cpu, None if cpu >= 0 else tid))
        buffer.stretches.append(AuxStretch(offset, reader.aux_data()))

    def add_range(self, record: PerfRecord, reader: RecordReader) -> None:
        """Add an AUX record."""
        offset, size, flags = (reader.number(record, at, "Q") for at in (0, 8, 16))
        self._ranges[AuxRange(offset, size, AuxFlag(flags), record.origin)] = None

    def buffers(self) -> Mapping[int, AuxBuffer]:
        """Return the buffers, each with its ranges."""
        for one in self._ranges:
            index = self._index(one.origin)
            if index is not None:
                self._buffers[index].ranges.append(one)
        self._ranges = {}
        return self._buffers

    def first_time(self) -> int | None:
        """Return the earliest time of an AUX record, None without one."""
        times = (one.origin.time for buffer in self.buffers().values() for one in buffer.ranges)
        return min((time for time in times if time is not None), default=None)

    def _index(self, origin: RecordOrigin) -> int | None:
        if origin.id is not None and (index := self._index_of.get(origin.id)) in self._buffers:
            return index
        for index, buffer in self._buffers.items():
            if origin.cpu == buffer.cpu if buffer.cpu is not None else origin.tid == buffer.tid:
                return index
        return next(iter(self._buffers)) if len(self._buffers) == 1 else None
