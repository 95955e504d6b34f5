"""perf.data with branch stacks, as `perf inject --itrace --strip` makes it of a trace: for perf report and AutoFDO.

Each hart is a CPU and a process. A sample is a stretch of its taken transfers, newest first, as many as a record holds;
its period is the number of instructions since the sample before it, so that `perf report` shows where the instructions
went. The mappings are those of the first executable segments. A gap is a LOST record: perf says how many chunks were
lost.

Source: Linux, tools/perf/Documentation/perf.data-file-format.txt; include/uapi/linux/perf_event.h.
"""

import struct
from array import array
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from rvtrace_gdb.decode.calls.slices.axis import HistoryAxis
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.missing import missing
from rvtrace_gdb.session.exports.profiles.perf_script import CUT, branch_stacks, mappings
from rvtrace_gdb.session.perf_data.layout import AttrFlag, HeaderFeature, RecordType, SampleType
from rvtrace_gdb.support.errors import Progress

MOST = 32
"""So many transfers a sample has at most: as many as hardware records, and as perf's own tools look at."""
_HEADER_BYTES, _ATTR_BYTES = 104, 128
_INSTRUCTIONS = 1  # PERF_COUNT_HW_INSTRUCTIONS
_PERIOD = 1000  # with 1, perf takes the samples for those of another kind of trace
_ANY_IN_USER = 1 << 3 | 1 << 0  # of branch_sample_type
_FLAGS = AttrFlag.SAMPLE_ID_ALL | AttrFlag.MMAP | AttrFlag.COMM | AttrFlag.MMAP2
_SAMPLE = (
    SampleType.IDENTIFIER | SampleType.IP | SampleType.TID | SampleType.TIME | SampleType.CPU | SampleType.PERIOD
    | SampleType.BRANCH_STACK
)  # fmt: skip
_ID = 1
_USER = 2  # of `misc`
_PREDICTED = 1 << 1  # of a branch's flags
_READ_EXECUTE, _PRIVATE = 5, 2


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the samples of all harts. They are collected first, 24 bytes for each transfer: a header says how long they
    are.
    """
    records = [record for hart in trace.harts for record in _records(hart)]
    cut = 0
    for hart in trace.harts:
        for sample in _samples(hart, progress):
            records.append(sample.record)
            cut += sample.is_cut
    records.append(_record(RecordType.FINISHED_ROUND, b""))
    ids = struct.pack("<Q", _ID)
    attrs_at = _HEADER_BYTES + len(ids)
    data_at, data_size = attrs_at + _ATTR_BYTES + 16, sum(map(len, records))
    texts = {HeaderFeature.OSRELEASE: "unknown", HeaderFeature.ARCH: f"riscv{trace.program.xlen}"}
    features = {feature: _feature_text(text) for feature, text in texts.items()}
    contents_at = data_at + data_size + 16 * len(features)
    bits = sum(1 << feature for feature in features)
    sections = (_ATTR_BYTES + 16, attrs_at, _ATTR_BYTES + 16, data_at, data_size, 0, 0)
    file.write(b"PERFILE2" + struct.pack("<12Q", _HEADER_BYTES, *sections, bits, 0, 0, 0))
    file.write(ids + _attr() + struct.pack("<2Q", _HEADER_BYTES, len(ids)))
    for record in records:
        file.write(record)
    for content in features.values():
        file.write(struct.pack("<2Q", contents_at, len(content)))
        contents_at += len(content)
    for content in features.values():
        file.write(content)
    return Written(None, {CUT: cut})


class _SampleRecord(NamedTuple):
    record: bytes
    is_cut: bool


def _records(hart: ExportedTrace) -> Iterator[bytes]:
    """Yield who ran: the process of a hart, its mappings, what is missing."""
    pid = hart.hart + 1
    at = _origin(hart, 0)
    yield _record(RecordType.COMM, struct.pack("<2I", pid, pid) + _padded_name(f"hart {hart.hart}") + at)
    for one in mappings(hart):
        place = struct.pack("<2I3Q", pid, pid, one.begin, one.size, one.offset)
        identity = struct.pack("<2I2Q2I", 0, 0, 0, 0, _READ_EXECUTE, _PRIVATE)
        yield _record(RecordType.MMAP2, place + identity + _padded_name(one.path) + at, _USER)
    for times in missing(hart.history, hart.part).values():
        yield _record(RecordType.LOST, struct.pack("<2Q", _ID, times) + at)


def _samples(hart: ExportedTrace, progress: Progress) -> Iterator[_SampleRecord]:
    axis = HistoryAxis(hart.history)
    begin = hart.part.start
    for stack in branch_stacks(hart, progress, MOST):
        origin = struct.pack("<2IQ2I", hart.hart + 1, hart.hart + 1, axis(stack.position), hart.hart, 0)
        counts = struct.pack("<2Q", stack.position - begin, len(stack.sources))
        begin = stack.position
        body = struct.pack("<2Q", _ID, stack.last) + origin + counts + _branch_entries(stack.sources, stack.targets)
        yield _SampleRecord(_record(RecordType.SAMPLE, body, _USER), stack.is_cut)


def _branch_entries(sources: "array[int]", targets: "array[int]") -> bytes:
    """Return the entries of a branch stack: source, target, flags of each, newest first."""
    words = array("Q", bytes(24 * len(sources)))
    words[0::3], words[1::3] = sources[::-1], targets[::-1]
    words[2::3] = array("Q", [_PREDICTED]) * len(sources)
    return words.tobytes()


def _origin(hart: ExportedTrace, time: int) -> bytes:
    """Return the `sample_id` of a record that is no sample."""
    return struct.pack("<2IQ2IQ", hart.hart + 1, hart.hart + 1, time, hart.hart, 0, _ID)


def _record(kind: RecordType, body: bytes, misc: int = 0) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def _attr() -> bytes:
    start = struct.pack("<2I5Q", 0, _ATTR_BYTES, _INSTRUCTIONS, _PERIOD, _SAMPLE, 0, _FLAGS)
    return (start + struct.pack("<2I3Q", 0, 0, 0, 0, _ANY_IN_USER)).ljust(_ATTR_BYTES, b"\0")


def _feature_text(value: str) -> bytes:
    content = value.encode().ljust(64, b"\0")
    return struct.pack("<I", len(content)) + content


def _padded_name(value: str) -> bytes:
    content = value.encode("utf-8", "surrogateescape")
    return content + bytes(8 - len(content) % 8)

