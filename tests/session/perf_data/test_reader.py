"""perf.data is read as it was written, by a writer of its own that Debian's perf understands, whole and damaged."""

import io
import re
import struct
import subprocess
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from rvtrace_gdb.session.perf_data.auxtrace import AuxBuffers, CpuEncoder, DriverSeries, auxtrace_info
from rvtrace_gdb.session.perf_data.file import BadPerfData, PerfFile
from rvtrace_gdb.session.perf_data.layout import HeaderFeature, RecordType
from rvtrace_gdb.session.perf_data.processes import KERNEL, ProcessRecords
from rvtrace_gdb.session.perf_data.recording import read_recording
from rvtrace_gdb.session.perf_data.records import BranchEntry, PerfRecord, RecordOrigin, RecordReader
from tests.session.perf_data.writer import (
    BRANCH_STACK,
    CPU,
    IDENTIFIER,
    IP,
    PERIOD,
    SAMPLE_ID_ALL,
    TID,
    TIME,
    Writer,
    attr,
    text,
)

SAMPLED = IP | TID | TIME | CPU | PERIOD | BRANCH_STACK | IDENTIFIER
BUILD_ID = bytes(range(20))
BRANCHES = [(0x10004, 0x10010, 1 << 1), (0x1101C, 0x10000, 1 | 17 << 4)]


def attrs(order: str = "<") -> list[tuple[bytes, list[int]]]:
    flags = SAMPLE_ID_ALL | 1 << 8 | 1 << 9 | 1 << 23
    return [(attr(sample_type=SAMPLED, branch_type=9, flags=flags, order=order), [1, 2])]


def recorded(order: str = "<") -> Writer:
    """Two processes, the second one forked by the first, and two CPUs with trace."""
    writer = Writer(order)
    writer.mmap2(KERNEL, 0xFFFFFFFF80002000, 0x400000, 0xFFFFFFFF80002000, "[kernel.kallsyms]_text", misc=1)
    writer.comm(100, 100, "prog", exec=True, time=10)
    writer.mmap2(100, 0x10000, 0x2000, 0, "/usr/bin/prog", build_id=BUILD_ID, time=20)
    writer.mmap2(100, 0x3F000, 0x3000, 0x1000, "/lib/libc.so.6", time=30)
    writer.mmap2(100, 0x40000, 0x1000, 0, "/lib/other.so", time=40)
    writer.mmap2(100, 0x90000, 0x1000, 0, "//anon", protection=3, time=41)
    writer.fork(101, 100, 101, 100, time=50)
    writer.comm(101, 101, "child", time=51)
    writer.aux(0, 64, cpu=0, time=60, id=1)
    writer.aux(64, 32, 1, cpu=0, time=70, id=1)
    writer.aux(0, 8, 4, cpu=1, time=71, id=2)
    writer.sample(0x10008, BRANCHES, time=80, cpu=1)
    writer.finished_round()
    return writer


def with_trace(writer: Writer) -> Writer:
    writer.auxtrace_info([9])
    writer.auxtrace(bytes(range(48)), index=0, cpu=0)
    writer.auxtrace(b"cpu one!", index=1, cpu=1)
    writer.auxtrace(bytes(range(48, 96)), 48, index=0, cpu=0)
    return writer


FEATURES = {6: "riscv64", 4: "6.18.0"}


def features(order: str = "<") -> dict[int, bytes]:
    return {number: text(value, order) for number, value in FEATURES.items()}


class Read:
    """Everything that is read of a file."""

    def __init__(self, data: bytes) -> None:
        self.file = PerfFile(io.BytesIO(data), "perf.data")
        self.reader = RecordReader(self.file)
        self.records: list[PerfRecord] = []
        self.buffers, self.processes = AuxBuffers(), ProcessRecords()
        self.infos = []
        for record in self.reader:
            self.records.append(record)
            self.processes.add(record)
            if record.type == RecordType.AUX:
                self.buffers.add_range(record, self.reader)
            elif record.type == RecordType.AUXTRACE:
                self.buffers.add_stretch(record, self.reader)
            elif record.type == RecordType.AUXTRACE_INFO:
                self.infos.append(auxtrace_info(record, self.reader))
        self.found = self.processes.processes(self.reader)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("form", ["file", "pipe"])
def test_everything_is_read(form: str, order: str) -> None:
    writer = with_trace(recorded(order))
    read = Read(getattr(writer, form)(attrs(order), features(order)))
    assert read.reader.cut is None
    prog, child, kernel = read.found[100], read.found[101], read.found[KERNEL]
    assert (prog.name, child.name, prog.executed, child.executed) == ("prog", "child", 1, 0)
    assert [(it.start, it.end, it.offset, it.name, it.build_id, it.executable) for it in prog.mappings] == [
        (0x10000, 0x12000, 0, "/usr/bin/prog", BUILD_ID.hex(), True),
        (0x3F000, 0x40000, 0x1000, "/lib/libc.so.6", "", True),  # what is mapped later covers its middle
        (0x40000, 0x41000, 0, "/lib/other.so", "", True),
        (0x41000, 0x42000, 0x3000, "/lib/libc.so.6", "", True),
        (0x90000, 0x91000, 0, "//anon", "", False),
    ]
    assert child.mappings == prog.mappings
    assert [it.name for it in kernel.mappings] == ["[kernel.kallsyms]_text"]
    one, two = read.buffers.buffers().values()
    assert [(it.data, bool(it.loss), it.origin.time) for it in one.pieces()] == [
        (bytes(range(64)), False, 60),
        (bytes(range(64, 96)), True, 70),
    ]
    assert "PERF_AUX_FLAG_TRUNCATED" in one.pieces()[1].loss
    [only] = two.pieces()
    assert only.data == b"cpu one!" and "PERF_AUX_FLAG_PARTIAL" in only.loss
    [info] = read.infos
    assert (info.series, info.pmu_type, info.cpus) == (DriverSeries.RVTRACE, 9, ())
    samples = [read.reader.sample(it) for it in read.records if it.type == RecordType.SAMPLE]
    assert [(it.ip, it.branches, it.origin.time, it.origin.cpu) for it in samples if it] == [
        (0x10008, tuple(BranchEntry(*row) for row in BRANCHES), 80, 1)
    ]
    taken = [branch for it in samples if it for branch in it.branches]
    assert [(it.mispredicted, it.cycles) for it in taken] == [(False, 0), (True, 17)]
    assert read.reader.features[HeaderFeature.ARCH] == features(order)[6]


def test_perf_reads_what_the_writer_writes(tmp_path: Path) -> None:
    """Debian's perf knows no RISC-V trace, and everything else."""
    file = tmp_path / "perf.data"
    file.write_bytes(recorded().file(attrs(), features()))
    command = [
        "perf",
        "script",
        "--show-mmap-events",
        "--show-task-events",
        "-F",
        "pid,time,ip,brstack",
        "-i",
        str(file),
    ]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert re.findall(r"PERF_RECORD_MMAP2 (-?\d+)/.* (\S+)$", said, re.M) == [
        ("-1", "[kernel.kallsyms]_text"), ("100", "/usr/bin/prog"), ("100", "/lib/libc.so.6"), ("100", "/lib/other.so"),
        ("100", "//anon"),
    ]  # fmt: skip
    assert "PERF_RECORD_FORK(101:101):(100:100)" in said and "0x10004/0x10010/P/-/-/0" in said
    dump = subprocess.run(["perf", "report", "-D", "-i", str(file)], check=True, capture_output=True, text=True).stdout
    assert re.findall(r"PERF_RECORD_AUX offset: (\S+) size: (\S+) flags: (\S+)", dump) == [
        ("0", "0x40", "0"), ("0x40", "0x20", "0x1"), ("0", "0x8", "0x4"),
    ]  # fmt: skip


def compressed(writer: Writer, size: int) -> Writer:
    """The records in pieces of one stream of zstd, cut without regard to where a record begins."""
    data = b"".join(writer.records)
    found = Writer(writer.order)
    stream = zstandard.ZstdCompressor().compressobj()
    for at in range(0, len(data), size):
        piece = stream.compress(data[at : at + size]) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        found.record(81, piece)
    return found


@pytest.mark.parametrize("size", [7, 100, 5000])
def test_compressed_records(size: int) -> None:
    plain = Read(with_trace(recorded()).file(attrs()))
    read = Read(with_trace(compressed(recorded(), size)).file(attrs()))
    assert read.found == plain.found
    assert [(it.type, it.body, it.origin) for it in read.records if it.type < 64] == [
        (it.type, it.body, it.origin) for it in plain.records if it.type < 64
    ]
    assert contents(read) == contents(plain)


def contents(read: Read) -> list[list[tuple[bytes, str, RecordOrigin]]]:
    return [[(it.data, it.loss, it.origin) for it in one.pieces()] for one in read.buffers.buffers().values()]


@pytest.mark.parametrize("form", ["file", "pipe"])
def test_trace_is_not_in_memory_before_it_is_needed(form: str, tmp_path: Path) -> None:
    """Of a pipe it is in a temporary file. Cut anywhere, what is there is read."""
    pieces, size = 8, 1 << 20
    writer = recorded()
    writer.auxtrace_info([9])
    for number in range(pieces):
        writer.auxtrace(bytes((number,)) * size, number * size)
    content = getattr(writer, form)(attrs())
    del writer
    for left_out in (0, size // 2 + 3 * size + 4 * 48):
        path = tmp_path / "perf.data"
        path.write_bytes(content[: len(content) - left_out])
        stream = path.open("rb") if form == "pipe" else None
        if stream is not None:
            stream.seekable = lambda: False  # type: ignore[method-assign]
        tracemalloc.start()
        try:
            recording = read_recording(str(path), stream)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 3 * size
        [buffer] = recording.buffers.buffers().values()
        found = b"".join(it.data.read() for it in buffer.stretches)
        whole = b"".join(bytes((number,)) * size for number in range(pieces))
        assert whole.startswith(found) and (found == whole) == (not left_out) and len(found) > 4 * size
        assert (recording.cut is None) == (not left_out)


def test_what_compresses_well_needs_little_memory() -> None:
    """64 KiB can decompress to 2 GiB: here records that have nothing but zeros."""
    number, record = 4000, struct.pack("<IHH", 68, 0, 65528) + bytes(65520)
    stream = zstandard.ZstdCompressor().compressobj()
    content = b"".join(stream.compress(record) for _ in range(number)) + stream.flush()
    writer = Writer()
    writer.record(81, content)
    tracemalloc.start()
    try:
        count = sum(it.type == 68 for it in RecordReader(PerfFile(io.BytesIO(writer.pipe(attrs())), "x")))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == number and peak < number * len(record) // 2


def test_the_encoders_of_the_other_series() -> None:
    writer = recorded()
    writer.auxtrace_info([11 << 32 | 2, 0, 5, 1, 1, 0, 12, 0, 1, 5, 1, 1, 1, 12, 7])
    [info] = Read(writer.file(attrs())).infos
    assert (info.series, info.pmu_type) == (DriverSeries.CORESIGHT, 11)
    assert info.cpus == (CpuEncoder(0, False, True, 12, 0), CpuEncoder(1, False, True, 0, 7))


@pytest.mark.parametrize(
    ("words", "kind", "why"),
    [
        ([9], 1, "Intel PT"),
        ([9, 1], 8, "2 words"),
        ([9, 0, 5, 3, 1, 0, 12, 0], 8, "format 3"),
    ],
)
def test_other_hardware_is_named(words: list[int], kind: int, why: str) -> None:
    writer = recorded()
    writer.auxtrace_info(words, kind)
    with pytest.raises(BadPerfData, match=why):
        Read(writer.file(attrs()))


def test_a_file_that_ends_early_gives_what_is_there() -> None:
    whole = with_trace(recorded()).file(attrs(), features())
    found = 0
    for size in range(105, len(whole), 13):
        try:
            read = Read(whole[:size])
        except BadPerfData as error:
            assert size < 400 and "ends after" in str(error)  # in the header
            continue
        found += 1
        assert read.reader.cut is not None or size > len(whole) - 400
        assert len(read.records) <= 20
    assert found > 50


def test_no_perf_data() -> None:
    for data, why in (
        (b"", "ends after 0 of the 16 bytes"),
        (b"\x7fELF" + bytes(60), "is no perf.data"),
        (b"PERFILE2" + struct.pack("<Q", 99), "a header of 99 bytes"),
    ):
        with pytest.raises(BadPerfData, match=why):
            PerfFile(io.BytesIO(data), "x")
