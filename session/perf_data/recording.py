"""Everything in a perf.data that a trace needs, from one reading of its records."""

import os
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from rvtrace_gdb.session.perf_data.auxtrace import AuxBuffers, AuxtraceInfo, auxtrace_info
from rvtrace_gdb.session.perf_data.branch_samples import BranchRecords
from rvtrace_gdb.session.perf_data.clocks import TimeConversion, WallClock, time_conversion, wall_clock
from rvtrace_gdb.session.perf_data.file import PerfFile, string_at
from rvtrace_gdb.session.perf_data.kernel_changes import KernelChanges
from rvtrace_gdb.session.perf_data.layout import HeaderFeature, RecordType
from rvtrace_gdb.session.perf_data.processes import PerfProcess, ProcessRecords
from rvtrace_gdb.session.perf_data.records import PerfRecord, RecordReader
from rvtrace_gdb.session.perf_data.scheduling import Scheduling
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.inputs import open_input

_MAGICS = (b"PERFILE2", b"2ELIFREP")
_DATA, _KCORE = "data", "kcore_dir"


@dataclass
class PerfRecording:
    """What perf recorded.

    info       which driver made the trace; None: there is none
    buffers    of the trace
    branches   the branch stacks of samples
    processes  by their numbers, `KERNEL` has the kernel's mappings
    lost       how many records, or samples, perf says that it lost
    changes    what the kernel changed of its own code meanwhile
    scheduling which thread ran where
    harts      by the numbers of CPUs, where the kernel says so (AUX_OUTPUT_HW_ID)
    conversion of the trace's timestamps to times of perf's events; None: the file does not say it
    wall_clock by which these times are dates; None: the file does not say it
    cut        what the file lacks at its end; None: nothing
    kcore      the folder with the kernel's memory; None: there is none
    """

    path: str
    arch: str | None = None
    release: str | None = None
    info: AuxtraceInfo | None = None
    buffers: AuxBuffers = field(default_factory=AuxBuffers)
    branches: BranchRecords = field(default_factory=BranchRecords)
    processes: dict[int, PerfProcess] = field(default_factory=dict)
    lost: int = 0
    changes: KernelChanges = field(default_factory=KernelChanges)
    scheduling: Scheduling = field(default_factory=Scheduling)
    harts: dict[int, int] = field(default_factory=dict)
    conversion: TimeConversion | None = None
    wall_clock: WallClock | None = None
    cut: str | None = None
    kcore: Path | None = None

    @property
    def xlen(self) -> int:
        """The width of the registers, by the name of the architecture."""
        return 32 if self.arch is not None and self.arch.startswith("riscv32") else 64


def is_perf_data(path: str) -> bool:
    """Return whether a file, or a folder of `perf record --kcore`, begins as perf.data. False if it cannot be read."""
    try:
        with open_input(_data_file(path)) as file:
            return file.read(8) in _MAGICS
    except (OSError, ValueError):
        return False


def read_recording(path: str, stream: BinaryIO | None = None, progress: Progress = silent) -> PerfRecording:
    """Read a perf.data. *stream*: what perf wrote to a pipe, read instead of the file.

    Raises BadPerfData, NoZstd, OSError, and what *progress* raises.
    """
    folder = Path(path) / _KCORE if stream is None else None
    kcore = folder if folder is not None and (folder / "kcore").is_file() else None
    reopen = partial(open_input, _data_file(path))
    with closing(reopen() if stream is None else stream) as opened:
        reader = RecordReader(PerfFile(opened, path, reopen if stream is None else None), progress)
        recording, processes = PerfRecording(path, kcore=kcore), ProcessRecords()
        for record in reader:
            processes.add(record)
            _take(record, reader, recording, processes)
    processes.add_build_ids(reader.features.get(HeaderFeature.BUILD_ID, b""), reader.order)
    recording.processes, recording.cut = processes.processes(reader), reader.cut
    recording.arch = _feature_text(reader, HeaderFeature.ARCH)
    recording.release = _feature_text(reader, HeaderFeature.OSRELEASE)
    recording.wall_clock = wall_clock(reader.features.get(HeaderFeature.CLOCK_DATA, b""), reader.order)
    return recording


def _data_file(path: str) -> str:
    return os.path.join(path, _DATA) if os.path.isdir(path) else path


def _feature_text(reader: RecordReader, feature: HeaderFeature) -> str | None:
    content = reader.features.get(feature, b"")
    return string_at(content, 0, reader.order)[0] if len(content) >= 4 else None


def _take(record: PerfRecord, reader: RecordReader, recording: PerfRecording, processes: ProcessRecords) -> None:
    """Take what a record says of the trace. Raises BadPerfData."""
    if record.type == RecordType.AUXTRACE_INFO:
        recording.info = auxtrace_info(record, reader)
    elif record.type == RecordType.AUXTRACE:
        recording.buffers.add_stretch(record, reader)
    elif record.type == RecordType.AUX:
        recording.buffers.add_range(record, reader)
    elif record.type == RecordType.ID_INDEX:
        recording.buffers.add_ids(record, reader)
    elif record.type == RecordType.SAMPLE:
        sample = reader.sample(record)
        if sample is not None and record.attr is not None:
            recording.branches.add(sample, record.attr.branch_sample_type)
    elif record.type == RecordType.HEADER_BUILD_ID:
        processes.add_build_id(record, reader)
    elif record.type == RecordType.LOST:
        recording.lost += reader.number(record, 8, "Q")
    elif record.type == RecordType.LOST_SAMPLES:
        recording.lost += reader.number(record, 0, "Q")
    elif record.type == RecordType.TEXT_POKE:
        recording.changes.add(record, reader)
    elif record.type == RecordType.TIME_CONV:
        recording.conversion = time_conversion(record, reader)
    elif record.type == RecordType.AUX_OUTPUT_HW_ID and record.origin.cpu is not None:
        recording.harts[record.origin.cpu] = reader.number(record, 0, "Q")
    else:
        recording.scheduling.add(record, reader)
