"""The layout of a perf.data: header, events, records, features.

Source: Linux, tools/perf/Documentation/perf.data-file-format.txt; include/uapi/linux/perf_event.h;
tools/lib/perf/include/perf/event.h (`perf_record_auxtrace_error`).
"""

import shutil
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile, gettempdir
from typing import BinaryIO, NamedTuple

from rvtrace_gdb.session.exports.perf.branch_stacks import TextMapping
from rvtrace_gdb.session.exports.perf.processes import ExportedProcess
from rvtrace_gdb.session.perf_data.layout import AttrFlag, HeaderFeature, RecordType, SampleType
from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.support.files import OutputError

USER = 2
"""Of `misc`: a record about a process."""
_HEADER_BYTES, _ATTR_BYTES = 104, 128
_ANY_IN_USER = 1 << 3 | 1 << 0  # of branch_sample_type
_FLAGS = AttrFlag.SAMPLE_ID_ALL | AttrFlag.MMAP | AttrFlag.COMM | AttrFlag.MMAP2 | AttrFlag.EXCLUDE_GUEST
_ALWAYS = (
    SampleType.IDENTIFIER | SampleType.IP | SampleType.TID | SampleType.TIME | SampleType.CPU | SampleType.PERIOD
)  # fmt: skip
_READ_EXECUTE, _PRIVATE = 5, 2
_MESSAGE_BYTES = 64
_INSTRUCTION_TRACE, _WITH_TIME = 1, 1  # of perf_record_auxtrace_error


class PerfDataEvent(NamedTuple):
    """An event of the file. *config*: `perf_hw_id`; *period*: from one sample to the next; *has*: what its samples
    have, beside what all have.
    """

    name: str
    config: int
    period: int
    has: SampleType

    def attr(self) -> bytes:
        """Return its `perf_event_attr`."""
        start = struct.pack("<2I5Q", 0, _ATTR_BYTES, self.config, self.period, _ALWAYS | self.has, 0, _FLAGS)
        branches = _ANY_IN_USER if self.has & SampleType.BRANCH_STACK else 0
        return (start + struct.pack("<2I3Q", 0, 0, 0, 0, branches)).ljust(_ATTR_BYTES, b"\0")


class RecordMoment(NamedTuple):
    """When and where something happened."""

    process: ExportedProcess
    hart: int
    time: int

    def sample_id(self, event_id: int = 1) -> bytes:
        """Return the `sample_id` of a record that is no sample."""
        return struct.pack("<2IQ2IQ", self.process.pid, self.process.tid, self.time, self.hart, 0, event_id)


class PerfDataFile(Closeable):
    """A perf.data that is made: records are added, then it is written. They are kept in a temporary file, because the
    header says how long they are.
    """

    def __init__(self, events: Sequence[PerfDataEvent], xlen: int) -> None:
        """Raises OutputError: there is no room for the temporary file."""
        self._events, self._xlen = events, xlen
        with _temporary_folder_named():
            self._records = TemporaryFile(prefix="rvtrace-perf-")  # noqa: SIM115 (close)
        self._size = 0

    def close(self) -> None:
        """Drop the temporary file."""
        self._records.close()

    def add(self, kind: RecordType, body: bytes, misc: int = 0) -> None:
        """Add a record. Raises OutputError: no room for the temporary file."""
        with _temporary_folder_named():
            self._size += self._records.write(struct.pack("<IHH", kind, misc, 8 + len(body)) + body)

    def add_process(self, at: RecordMoment, mapped: Sequence[TextMapping]) -> None:
        """Add a process and its mappings."""
        pid, tid = at.process.pid, at.process.tid
        self.add(RecordType.COMM, struct.pack("<2I", pid, tid) + _padded_name(at.process.comm) + at.sample_id())
        for one in (it.in_pages() for it in mapped):
            place = struct.pack("<2I3Q", pid, tid, one.address, one.size, one.offset)
            identity = struct.pack("<2I2Q2I", 0, 0, 0, 0, _READ_EXECUTE, _PRIVATE)
            self.add(RecordType.MMAP2, place + identity + _padded_name(one.path) + at.sample_id(), USER)

    def add_lost(self, at: RecordMoment, times: int) -> None:
        """Add that something was lost so many times."""
        self.add(RecordType.LOST, struct.pack("<2Q", 1, times) + at.sample_id())

    def add_error(self, at: RecordMoment, ip: int, message: str) -> None:
        """Add a place where the trace is not complete."""
        text = message.encode("ascii", "replace")[: _MESSAGE_BYTES - 1]
        where = struct.pack(
            "<6I2Q", _INSTRUCTION_TRACE, 0, at.hart, at.process.pid, at.process.tid, _WITH_TIME, ip, at.time
        )
        self.add(RecordType.AUXTRACE_ERROR, where + text.ljust(_MESSAGE_BYTES, b"\0"))

    def write(self, file: BinaryIO) -> None:
        """Write all. Raises what *file* raises, and OutputError."""
        self.add(RecordType.FINISHED_ROUND, b"")
        ids = [struct.pack("<Q", number) for number in range(1, len(self._events) + 1)]
        attrs_at, entry = _HEADER_BYTES + 8 * len(ids), _ATTR_BYTES + 16
        data_at = attrs_at + entry * len(ids)
        features = self._features()
        contents_at = data_at + self._size + 16 * len(features)
        sections = (entry, attrs_at, entry * len(ids), data_at, self._size, 0, 0)
        bits = sum(1 << feature for feature in features)
        file.write(b"PERFILE2" + struct.pack("<12Q", _HEADER_BYTES, *sections, bits, 0, 0, 0) + b"".join(ids))
        for number, event in enumerate(self._events):
            file.write(event.attr() + struct.pack("<2Q", _HEADER_BYTES + 8 * number, 8))
        with _temporary_folder_named():
            self._records.seek(0)
        shutil.copyfileobj(self._records, file)
        for content in features.values():
            file.write(struct.pack("<2Q", contents_at, len(content)))
            contents_at += len(content)
        for content in features.values():
            file.write(content)

    def _features(self) -> dict[HeaderFeature, bytes]:
        described = struct.pack("<2I", len(self._events), _ATTR_BYTES)
        for number, event in enumerate(self._events, 1):
            described += event.attr() + struct.pack("<I", 1) + _padded_text(event.name) + struct.pack("<Q", number)
        return {
            HeaderFeature.OSRELEASE: _padded_text("unknown"),
            HeaderFeature.ARCH: _padded_text(f"riscv{self._xlen}"),
            HeaderFeature.EVENT_DESC: described,
        }


@contextmanager
def _temporary_folder_named() -> Iterator[None]:
    """Within this context an error of the system is one of the folder for temporary files, as OutputError."""
    try:
        yield
    except OSError as error:
        raise OutputError(gettempdir(), error) from None


def _padded_text(value: str) -> bytes:
    content = value.encode().ljust(64, b"\0")
    return struct.pack("<I", len(content)) + content


def _padded_name(value: str) -> bytes:
    content = value.encode("utf-8", "surrogateescape")
    return content + bytes(8 - len(content) % 8)
