"""The records of perf.data, in the order of the file, with who and when of each.

What is compressed (`perf record -z`) is one stream of zstd over all its records, whose content is records again, which
need not begin where one of its pieces does. The bytes of AUX buffers are not read with their record: whoever wants
them asks for them before the next record.

Source: Linux, include/uapi/linux/perf_event.h, "struct perf_event_header" and "enum perf_event_type";
tools/perf/util/evsel.c (the order of the fields of samples and of `sample_id`).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.session.perf_data.aux_bytes import AuxBytes, AuxStore, FileStore, OpenStore, SpoolStore
from rvtrace_gdb.session.perf_data.file import BadPerfData, EventAttr, PerfFile, event_attr
from rvtrace_gdb.session.perf_data.layout import (
    BRANCH_HW_INDEX,
    FIRST_OF_PERF,
    AttrFlag,
    ReadFormat,
    RecordType,
    SampleType,
)
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

_HEADER = 8
_SLICE = 1 << 10  # compressed bytes at a time: they are 32 MiB at most, however often they repeat
_SAMPLE_ID = (
    SampleType.TID,
    SampleType.TIME,
    SampleType.ID,
    SampleType.STREAM_ID,
    SampleType.CPU,
    SampleType.IDENTIFIER,
)
_IN_SAMPLE = (
    SampleType.IDENTIFIER, SampleType.IP, SampleType.TID, SampleType.TIME, SampleType.ADDR, SampleType.ID,
    SampleType.STREAM_ID, SampleType.CPU, SampleType.PERIOD,
)  # fmt: skip
_PAIRS = (SampleType.TID, SampleType.CPU)  # two numbers of 32 bits
_BRANCH = 24  # bytes of one


class NoZstd(RvtraceError):
    """The records are compressed, and the library that decompresses them is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: is compressed (perf record -z): pip install 'rvtrace-gdb[perf]'")


class BranchEntry(NamedTuple):
    """An entry of a branch stack. *flags*: as `perf_branch_entry` has them."""

    source: int
    target: int
    flags: int

    @property
    def mispredicted(self) -> bool:
        """Whether the hart had not expected the branch to go there."""
        return bool(self.flags & 1)

    @property
    def cycles(self) -> int:
        """Cycles since the branch before it; 0: not known."""
        return self.flags >> 4 & 0xFFFF


@dataclass(frozen=True)
class RecordOrigin:
    """Who and when of a record, as far as the event was asked for it. *time* in nanoseconds."""

    pid: int | None = None
    tid: int | None = None
    time: int | None = None
    cpu: int | None = None
    id: int | None = None


@dataclass(frozen=True)
class PerfRecord:
    """A record. *offset*: of its first byte in the file, in decompressed data that of the compressed record.

    *body*: what is behind the header of 8 bytes. *attr*: the event's.
    """

    offset: int
    type: int
    misc: int
    body: bytes
    origin: RecordOrigin = RecordOrigin()
    attr: EventAttr | None = None


@dataclass(frozen=True)
class BranchSample:
    """A sample with a branch stack, newest branch first. *ip*: where it was taken."""

    origin: RecordOrigin
    ip: int
    branches: tuple[BranchEntry, ...]


class RecordReader:
    """The records of *file*. Raises BadPerfData where the file contradicts itself; `cut` tells of one that ends early.

    Between one record and the next, `aux_data` returns the bytes of the AUXTRACE record that was last.
    """

    def __init__(self, file: PerfFile, progress: Progress = silent) -> None:
        self.file, self._progress = file, progress
        self.order = file.header.order
        self.attrs = list(file.header.attrs)
        self.features = dict(file.header.features)
        self.cut: str | None = None
        """What the file lacks at its end; None: it is whole."""
        self._by_id = {id: attr for attr in self.attrs for id in attr.ids}
        self._aux = 0
        self._store = _store_of(file)
        self._decompressor: object = None
        self._rest = b""

    def __iter__(self) -> Iterator[PerfRecord]:
        data = self.file.header.data
        end = None if self.file.header.pipe or not data.size else data.offset + data.size
        self.file.seek(data.offset)
        while (end is None or self.file.offset < end) and (record := self._next_record()) is not None:
            self._progress("reading perf.data (bytes)", self.file.offset, end)
            yield from self._with_content(record)
            self._skip_aux()
        if end is not None and self.file.offset < end and self.cut is None:
            self.cut = f"it ends at byte {self.file.offset}, {end - self.file.offset} bytes before the end of its data"
        if self.cut is None and not self.file.header.pipe and not data.size:
            self.cut = "perf did not finish it: its header does not say where the data end"

    def aux_data(self) -> AuxBytes:
        """Return the bytes behind an AUXTRACE record. Those that the file lacks are missing."""
        size, self._aux = self._aux, 0
        if isinstance(self._store, SpoolStore):
            found = self._store.take(self.file, size)
        else:
            found = AuxBytes(self._store, self.file.offset, min(size, self.file.left()))
            self.file.seek(self.file.offset + size)
        if found.size < size:
            self.cut = f"it ends {size - found.size} bytes before the end of a piece of trace"
        return found

    def _skip_aux(self) -> None:
        if self._aux:
            self.file.seek(self.file.offset + self._aux)
            self._aux = 0

    def _next_record(self) -> PerfRecord | None:
        at = self.file.offset
        header = self.file.read(_HEADER)
        if len(header) < _HEADER:
            if header:
                self.cut = f"it ends inside the header of the record at byte {at}"
            return None
        kind, misc, size = struct.unpack(self.order + "IHH", header)
        if size < _HEADER:
            raise BadPerfData(
                self.file.path, at, f"a record of type {kind} has {size} bytes, and its header alone {_HEADER}"
            )
        body = self.file.read(size - _HEADER)
        if len(body) < size - _HEADER:
            self.cut = f"it ends inside the record of type {kind} at byte {at}"
            return None
        return PerfRecord(at, kind, misc, body)

    def _with_content(self, record: PerfRecord) -> Iterator[PerfRecord]:
        """Yield the record, or those that it contains; take notice of attributes, features and AUX data."""
        if record.type == RecordType.COMPRESSED:
            yield from self._decompressed(record, record.body)
        elif record.type == RecordType.COMPRESSED2:
            yield from self._decompressed(record, record.body[8 : 8 + self.number(record, 0, "Q")])
        else:
            yield self._take_notice(record)

    def _take_notice(self, record: PerfRecord) -> PerfRecord:
        if record.type == RecordType.HEADER_ATTR:
            self._add_attr(record)
        elif record.type == RecordType.HEADER_FEATURE and len(record.body) >= 8:
            self.features[self.number(record, 0, "Q")] = record.body[8:]
        elif record.type == RecordType.AUXTRACE:
            self._aux = self.number(record, 0, "Q")
        return self._with_origin(record) if record.type < FIRST_OF_PERF else record

    def number(self, record: PerfRecord, at: int, form: str) -> int:
        """Return a number of a record's body, at *at* bytes. Raises BadPerfData when the record ends before."""
        if at + struct.calcsize(form) > len(record.body):
            raise BadPerfData(
                self.file.path,
                record.offset,
                f"a record of type {record.type} ends before its field at byte {at + _HEADER}",
            )
        found: int = struct.unpack_from(self.order + form, record.body, at)[0]
        return found

    def _add_attr(self, record: PerfRecord) -> None:
        size = self.number(record, 4, "I")
        if not 64 <= size <= len(record.body):
            raise BadPerfData(
                self.file.path, record.offset, f"an attribute of {size} bytes, in a record of {len(record.body)}"
            )
        ids = record.body[size : len(record.body) - (len(record.body) - size) % 8]
        attr = event_attr(record.body[:size], self.order)
        attr = attr._replace(ids=struct.unpack(f"{self.order}{len(ids) // 8}Q", ids))
        self.attrs.append(attr)
        self._by_id |= dict.fromkeys(attr.ids, attr)

    def _decompressed(self, record: PerfRecord, content: bytes) -> Iterator[PerfRecord]:
        for at in range(0, len(content), _SLICE):
            data = self._rest + self._decompress(record, content[at : at + _SLICE])
            begin = 0
            while begin + _HEADER <= len(data):
                kind, misc, size = struct.unpack_from(self.order + "IHH", data, begin)
                if size < _HEADER:
                    raise BadPerfData(self.file.path, record.offset, f"decompressed to a record of {size} bytes")
                if begin + size > len(data):
                    break
                yield self._take_notice(PerfRecord(record.offset, kind, misc, data[begin + _HEADER : begin + size]))
                begin += size
            self._rest = data[begin:]

    def _decompress(self, record: PerfRecord, content: bytes) -> bytes:
        try:
            import zstandard  # no part of Python before 3.14; few files are compressed
        except ImportError:
            raise NoZstd(self.file.path) from None
        if self._decompressor is None or getattr(self._decompressor, "eof", False):
            self._decompressor = zstandard.ZstdDecompressor().decompressobj()
        try:
            found: bytes = self._decompressor.decompress(content)  # type: ignore[attr-defined]
        except zstandard.ZstdError as error:
            raise BadPerfData(self.file.path, record.offset, f"cannot be decompressed: {error}") from None
        return found

    def _with_origin(self, record: PerfRecord) -> PerfRecord:
        attr = self._attr_of(record)
        if attr is None:
            return record
        if record.type == RecordType.SAMPLE:
            origin = _origin(self._fields(record, attr, _IN_SAMPLE, 0)[0])
        elif attr.flags & AttrFlag.SAMPLE_ID_ALL:
            wanted = [field for field in _SAMPLE_ID if attr.sample_type & field]
            begin = len(record.body) - 8 * len(wanted)
            origin = _origin(self._fields(record, attr, _SAMPLE_ID, begin)[0]) if begin >= 0 else RecordOrigin()
        else:
            origin = RecordOrigin()
        return PerfRecord(record.offset, record.type, record.misc, record.body, origin, attr)

    def _attr_of(self, record: PerfRecord) -> EventAttr | None:
        """Return the event of a record, by its ID where there are several. All that have an ID have it at one place."""
        if len(self.attrs) <= 1 or (len({attr.sample_type for attr in self.attrs}) == 1 and not self._by_id):
            return self.attrs[0] if self.attrs else None
        if len(record.body) < 8 or not self.attrs[0].sample_type & SampleType.IDENTIFIER:
            return self.attrs[0]
        at = 0 if record.type == RecordType.SAMPLE else len(record.body) - 8
        return self._by_id.get(self.number(record, at, "Q"), self.attrs[0])

    def _fields(
        self, record: PerfRecord, attr: EventAttr, order: tuple[SampleType, ...], at: int
    ) -> tuple[dict[SampleType, tuple[int, int]], int]:
        """Return the fields that *attr* has, as pairs of 32-bit numbers or as one of 64 with a 0, and where they end.
        """
        found: dict[SampleType, tuple[int, int]] = {}
        for field in order:
            if attr.sample_type & field:
                if field in _PAIRS:
                    found[field] = self.number(record, at, "I"), self.number(record, at + 4, "I")
                else:
                    found[field] = self.number(record, at, "Q"), 0
                at += 8
        return found, at

    def sample(self, record: PerfRecord) -> BranchSample | None:
        """Return a sample; None: its event has no branch stack. Raises BadPerfData when it ends inside a field."""
        attr = record.attr
        if attr is None or not attr.sample_type & SampleType.BRANCH_STACK:
            return None
        fields, at = self._fields(record, attr, _IN_SAMPLE, 0)
        if attr.sample_type & SampleType.READ:
            at += self._read_bytes(record, attr, at)
        if attr.sample_type & SampleType.CALLCHAIN:
            at += 8 + 8 * self.number(record, at, "Q")
        if attr.sample_type & SampleType.RAW:
            at += 4 + self.number(record, at, "I")
        count = self.number(record, at, "Q")
        at += 16 if attr.branch_sample_type & BRANCH_HW_INDEX else 8
        if at + _BRANCH * count > len(record.body):
            raise BadPerfData(
                self.file.path, record.offset, f"a sample with {count} branches ends before the last of them"
            )
        rows = struct.iter_unpack(self.order + "3Q", record.body[at : at + _BRANCH * count])
        ip = fields.get(SampleType.IP, (0, 0))[0]
        return BranchSample(record.origin, ip, tuple(BranchEntry(*row) for row in rows))

    def _read_bytes(self, record: PerfRecord, attr: EventAttr, at: int) -> int:
        """Return how long the counts of a sample are."""
        times = 8 * sum(
            bool(attr.read_format & bit) for bit in (ReadFormat.TOTAL_TIME_ENABLED, ReadFormat.TOTAL_TIME_RUNNING)
        )
        each = 8 + 8 * sum(bool(attr.read_format & bit) for bit in (ReadFormat.ID, ReadFormat.LOST))
        if attr.read_format & ReadFormat.GROUP:
            return 8 + times + each * self.number(record, at, "Q")
        return times + each


def _store_of(file: PerfFile) -> AuxStore:
    """Return where the bytes of AUX buffers are."""
    if file.reopen is not None:
        return FileStore(file.reopen)
    return OpenStore(file.stream) if file.stream.seekable() else SpoolStore()


def _origin(fields: dict[SampleType, tuple[int, int]]) -> RecordOrigin:
    pid, tid = fields.get(SampleType.TID, (None, None))
    identifier = fields.get(SampleType.IDENTIFIER, fields.get(SampleType.ID))
    return RecordOrigin(
        pid=None if pid == _NOBODY else pid,
        tid=None if tid == _NOBODY else tid,
        time=fields[SampleType.TIME][0] if SampleType.TIME in fields else None,
        cpu=fields[SampleType.CPU][0] if SampleType.CPU in fields else None,
        id=identifier[0] if identifier else None,
    )


_NOBODY = (1 << 32) - 1
