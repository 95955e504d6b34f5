"""The capture of a perf.data: the trace of each CPU, or the branch stacks of one process, with the programs that ran.

The contexts of a trace are threads where the kernel's driver puts their IDs into `scontext` (the CoreSight series). In
a trace without contexts they are what the kernel's records say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rvtrace_gdb.decode.coresight.frames import FrameForm
from rvtrace_gdb.decode.ntrace.options import SIFIVE, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.model import Capture, CapturedEncoder, CapturedSink, CapturedThread
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.imports.framed_import import encoders_and_sink
from rvtrace_gdb.session.formats.imports.imported_encoders import (
    EncoderTraceOptions,
    ImportedFrames,
    RawImport,
    encoder_of_hart,
    full_sink,
)
from rvtrace_gdb.session.formats.imports.raw_import import files_beside
from rvtrace_gdb.session.perf_data.auxtrace import AuxtraceInfo, DriverSeries
from rvtrace_gdb.session.perf_data.code_epochs import CodeEpochs
from rvtrace_gdb.session.perf_data.cpu_traces import CpuTraces
from rvtrace_gdb.session.perf_data.framed_trace import FramedTrace, options_by_kernel
from rvtrace_gdb.session.perf_data.images import PerfPrograms as PerfPrograms
from rvtrace_gdb.session.perf_data.images import RecordedImages
from rvtrace_gdb.session.perf_data.message_times import MessageTimes
from rvtrace_gdb.session.perf_data.recording import PerfRecording
from rvtrace_gdb.session.program import identity_of
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import counted, printable


class SeveralProcesses(RvtraceError):
    """Which process is meant has to be said. *pids*: those that have trace, with what each has."""

    def __init__(self, path: str, what: dict[int, str]) -> None:
        self.pids = tuple(what)
        found = ", ".join(f"{pid} ({text})" for pid, text in what.items())
        super().__init__(f"{path}: nothing says which of several processes ran: choose one with --pid: {found}")


class NoProcess(RvtraceError):
    """The process that was chosen has no trace."""

    def __init__(self, path: str, pid: int, what: dict[int, str]) -> None:
        self.pid = pid
        found = ", ".join(f"{pid} ({text})" for pid, text in what.items()) or "none"
        super().__init__(f"{path}: process {pid} has no trace; those that have: {found}")


class WholeCpus(RvtraceError):
    """A process was chosen, and the trace is that of CPUs, whatever ran there."""

    def __init__(self, path: str, pid: int) -> None:
        self.pid = pid
        super().__init__(
            f"{path}: its trace is that of whole CPUs (perf record -a or -C), not of process {pid}: import it without"
            f" --pid; `rvtrace functions FILE --process {pid}`, and others, show that process alone"
        )


_EncodersAndSinks = tuple[tuple[CapturedEncoder, ...], tuple[CapturedSink, ...]]


@dataclass
class _Importing:
    """One import. *options*: how the encoders sent their trace; *pid*: the process that is meant, None: all."""

    recording: PerfRecording
    images: RecordedImages
    options: EncoderTraceOptions
    pid: int | None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        recording = self.recording
        self._epochs = CodeEpochs(recording.processes, recording.changes, self.images.of_memory, recording.xlen)
        self._in_contexts = False  # whether processes are in memory in the contexts of their threads alone

    def capture(self) -> Capture:
        """Return the capture. Raises `import_perf_data`'s errors."""
        recording = self.recording
        if recording.info is not None:
            framed = recording.info.series is DriverSeries.CORESIGHT
            encoders, sinks = self._framed(recording.info) if framed else self._traced()
            return self._completed(replace(self._empty(), encoders=encoders, sinks=sinks))
        samples = recording.branches.samples()
        if not samples:
            raise NoTrace(f"{recording.path}: has neither trace (AUXTRACE) nor branch stacks (perf record -b)")
        self._choose_pid({pid: counted(count, "sample") for pid, count in samples.items()})
        assert self.pid is not None
        return self._completed(replace(self._empty(), records=recording.branches.captured(self.pid, recording.xlen)))

    def _choose_pid(self, what: dict[int, str]) -> None:
        """Determine the only process that is meant. *what*: what there is of each."""
        named = {pid: f"{self._process_name(pid)}{text}" for pid, text in what.items()}
        if self.pid is None and len(what) > 1:
            raise SeveralProcesses(self.recording.path, named)
        if self.pid is not None and self.pid not in what:
            raise NoProcess(self.recording.path, self.pid, named)
        self.pid = self.pid if self.pid is not None else next(iter(what), None)
        self.images.pid = self.pid

    def _refuse_pid(self, pid: int) -> None:
        """Say that no process can be chosen. Raises NoProcess, WholeCpus."""
        known = {it: printable(one.name) or "without a name" for it, one in self.recording.processes.items() if it > 0}
        if pid not in known:
            raise NoProcess(self.recording.path, pid, known)
        raise WholeCpus(self.recording.path, pid)

    def _process_name(self, pid: int) -> str:
        process = self.recording.processes.get(pid)
        return f"{printable(process.name)}, " if process is not None and process.name else ""

    def _empty(self) -> Capture:
        """Return a capture that has the kernel, and no trace."""
        image = self.images.kernel()
        release = f" {self.recording.release}" if self.recording.release else ""
        return Capture(
            created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            tool=tool(),
            target=f"Linux{printable(release)}, recorded by perf",
            xlen=self.recording.xlen,
            elf=identity_of(image) if image.path else None,
            encoders=(),
            sinks=(),
            code=tuple(image.code),
            elfs=files_beside(image),
            patched=tuple(image.patched),
        )

    def _completed(self, capture: Capture) -> Capture:
        """Return a capture with the programs of the processes, and their threads. Raises BadElf, BadMemory."""
        processes = list(self.images.processes())
        found = tuple(self._epochs.images(processes, self._in_contexts))
        if not self._epochs.all_changes:
            times = counted(len(self.recording.changes), "time")
            self.notes.append(f"the kernel changed its own code {times} while perf recorded: code is as it was first")
        self.notes += self.images.notes
        threads = tuple(
            CapturedThread(tid, it.pid, printable(it.threads.get(tid) or it.name))
            for it in processes
            for tid in sorted({it.pid, *it.threads})
        )
        return replace(capture, images=found, threads=threads)

    def _traced(self) -> _EncodersAndSinks:
        """Return the encoder and the trace of each CPU. Raises NoProcess, WholeCpus."""
        restarts = isinstance(self.options, Options) and self.options.dialect.name == SIFIVE.name
        timed, conversion = self._is_timed(self.options), self.recording.conversion
        times = None
        if timed and conversion is not None:
            times = MessageTimes(self.options, self.recording.xlen, conversion)
        traces = CpuTraces(self.recording, restarts=restarts, timed=timed, times=times)
        sizes = traces.sizes()
        if self.pid is not None and set(sizes) == {0}:
            self._refuse_pid(self.pid)
        if len(sizes) == 1 or (self.pid is not None and 0 not in sizes):
            self._choose_pid({pid: counted(size, "byte") for pid, size in sizes.items()})
        self.images.pid = self.pid = self.pid or None
        self._in_contexts = self.pid is None
        encoders, sinks = [], []
        for one in traces.decodable(self._epochs, self.pid):
            encoders.append(encoder_of_hart(one.name, one.hart, self.options, one.data))
            sink = full_sink(one.name, one.data, False, (one.name,))
            sinks.append(replace(sink, breaks=tuple(one.breaks), marks=tuple(one.marks)))
            self.notes += one.notes
        return tuple(encoders), tuple(sinks) if self._in_contexts else _needed_marks(sinks)

    def _framed(self, info: AuxtraceInfo) -> _EncodersAndSinks:
        """Return the encoders, which are told apart by SRC, or else by ATB ID, and the frames of all buffers."""
        trace = FramedTrace(self.recording)
        self._in_contexts = not info.cpus or any(it.context for it in info.cpus)
        if not self._in_contexts:
            self._choose_pid({pid: counted(size, "byte") for pid, size in trace.sizes().items()})
        options = options_by_kernel(info, self.options, self.recording.path)
        frames, marks = trace.joined_frames(self._epochs, timed=self._is_timed(options))
        self.notes += trace.notes
        raw = RawImport("frames", frames, options, Image(self.recording.xlen))
        encoders, sink = encoders_and_sink(raw, ImportedFrames(FrameForm.MEMORY))
        return encoders, _needed_marks([replace(sink, marks=marks)])

    @staticmethod
    def _is_timed(options: EncoderTraceOptions) -> bool:
        return registry.format_of(options).has_times(options)


def _needed_marks(sinks: Sequence[CapturedSink]) -> tuple[CapturedSink, ...]:
    """Return the sinks, without marks where these say nothing that the whole capture does not say."""
    known = {(it.thread, it.epoch) for sink in sinks for it in sink.marks}
    several = len(sinks) > 1 or any(len(sink.encoders) > 1 for sink in sinks)
    if len(known) < 2 and not (several and any(it.time for sink in sinks for it in sink.marks)):
        return tuple(replace(sink, marks=()) for sink in sinks)
    return tuple(sinks)


def import_perf_data(
    recording: PerfRecording, programs: PerfPrograms, options: EncoderTraceOptions, pid: int | None = None
) -> Capture:
    """Return the capture of what perf recorded, its trace, else the branch stacks of its samples. *options*: how the
    encoders sent their trace. *pid*: of this process alone; None: of all, or where nothing says which process ran, of
    the only one.

    Raises NoTrace, SeveralProcesses, NoProcess, BadElf, BadMemory.
    """
    work = _Importing(recording, RecordedImages(recording, programs, pid), options, pid)
    capture = work.capture()
    return replace(capture, notes=(*dict.fromkeys(work.notes), *_remarks(recording)))


def _remarks(recording: PerfRecording) -> Iterator[str]:
    """Yield lines on what perf, or its file, lost."""
    first = recording.buffers.first_time()
    if recording.wall_clock is not None and first is not None:
        yield f"the first piece of trace was recorded at {recording.wall_clock.text(first)}"
    if recording.cut is not None:
        yield printable(f"{recording.path}: {recording.cut}")
    if recording.lost:
        yield f"perf lost {counted(recording.lost, 'record')}, or samples"
