"""The capture of a perf.data: the trace of each CPU, or the branch stacks of one process, with the programs that ran.

The contexts of a trace are threads where the kernel's driver puts their IDs into `scontext` (the CoreSight series). A
trace without contexts does not say which process it is of, so it has to be of one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from rvtrace_gdb.decode.coresight.frames import BARRIER, FRAME_BYTES, FrameForm
from rvtrace_gdb.decode.program.image import Image, read_elf
from rvtrace_gdb.decode.program.linux import add_kernel_pages, process_image
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.capture.model import Capture, CapturedEncoder, CapturedImage, CapturedSink, TraceBreak
from rvtrace_gdb.session.errors import NoTrace, Unsupported
from rvtrace_gdb.session.formats.framed_import import encoders_and_sink
from rvtrace_gdb.session.formats.imported_encoders import (
    EncoderTraceOptions,
    ImportedFrames,
    RawImport,
    encoder_of_hart,
    full_sink,
)
from rvtrace_gdb.session.formats.raw_import import captured_image
from rvtrace_gdb.session.perf_data.auxtrace import AuxPiece, AuxtraceInfo, DriverSeries
from rvtrace_gdb.session.perf_data.processes import KERNEL, PerfProcess
from rvtrace_gdb.session.perf_data.program_files import (
    BuildIdFiles,
    add_kcore,
    as_maps,
    cache_folder,
    kernel_bias,
)
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
        super().__init__(f"{path}: a trace without contexts, of several processes: choose one with --pid: {found}")


class NoProcess(RvtraceError):
    """The process that was chosen has no trace."""

    def __init__(self, path: str, pid: int, what: dict[int, str]) -> None:
        self.pid = pid
        found = ", ".join(f"{pid} ({text})" for pid, text in what.items()) or "none"
        super().__init__(f"{path}: process {pid} has no trace; those that have: {found}")


@dataclass(frozen=True)
class PerfPrograms:
    """Where the files that ran are.

    elves         by the user: files that processes had mapped, by the last part of their names, and the kernel
    vdso          the file for [vdso]
    sysroot       the target's root file system
    kernel_pages  a folder with pages of the kernel
    """

    elves: tuple[str, ...] = ()
    vdso: str | None = None
    sysroot: str | None = None
    kernel_pages: str | None = None


@dataclass
class _Importing:
    """One import. *options*: how the encoders sent their trace; *pid*: the process that is meant, None: the only one.
    """

    recording: PerfRecording
    programs: PerfPrograms
    options: EncoderTraceOptions
    pid: int | None
    notes: list[str] = field(default_factory=list)

    def capture(self) -> Capture:
        """Return the capture. Raises `import_perf_data`'s errors."""
        recording = self.recording
        if recording.info is not None:
            framed = recording.info.series is DriverSeries.CORESIGHT
            encoders, sinks = self._framed(recording.info) if framed else self._traced()
            return replace(self._empty(), encoders=encoders, sinks=sinks, images=self._images())
        names = {pid: counted(count, "sample") for pid, count in recording.branches.samples().items()}
        if not names:
            raise NoTrace(f"{recording.path}: has neither trace (AUXTRACE) nor branch stacks (perf record -b)")
        self.pid = self._chosen_pid(names)
        records = recording.branches.captured(self.pid, recording.xlen)
        return replace(self._empty(), records=records, images=self._images())

    def _chosen_pid(self, what: dict[int, str]) -> int:
        """Return the process that is meant."""
        named = {pid: f"{self._process_name(pid)}{text}" for pid, text in what.items()}
        if self.pid is None and len(what) == 1:
            return next(iter(what))
        if self.pid is None:
            raise SeveralProcesses(self.recording.path, named)
        if self.pid not in what:
            raise NoProcess(self.recording.path, self.pid, named)
        return self.pid

    def _process_name(self, pid: int) -> str:
        process = self.recording.processes.get(pid)
        return f"{printable(process.name)}, " if process is not None and process.name else ""

    def _empty(self) -> Capture:
        """Return a capture that has the kernel, and no trace."""
        image = self._kernel()
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
        )

    def _kernel(self) -> Image:
        """Return what is in memory in every context. Raises BadElf, BadMemory."""
        image = Image(self.recording.xlen)
        kernel = self.recording.processes.get(KERNEL, PerfProcess(KERNEL))
        if self.recording.kcore is not None:  # first: what is known already stays, and this is how the code really was
            add_kcore(image, self.recording.kcore)
        for path in self._others():
            elf = read_elf(path)
            image.add_elf(elf, kernel_bias(kernel.mappings, elf))
        if self.programs.kernel_pages is not None:
            add_kernel_pages(image, self.programs.kernel_pages)
        return image

    def _mapped(self) -> set[str]:
        return {Path(it.name).name for process in self._imported_processes() for it in process.mappings}

    def _others(self) -> list[str]:
        """Return the files of the user that no process had mapped: the kernel."""
        mapped = self._mapped()
        return [elf for elf in self.programs.elves if Path(elf).name not in mapped]

    def _imported_processes(self) -> Iterator[PerfProcess]:
        for pid, process in sorted(self.recording.processes.items()):
            if pid != KERNEL and process.mappings and self.pid in (None, pid):
                yield process

    def _images(self) -> tuple[CapturedImage, ...]:
        """Return the programs of the processes, in the contexts of their threads. Raises BadElf, BadMemory."""
        mapped = self._mapped()
        given: dict[str, str | Path] = {Path(elf).name: elf for elf in self.programs.elves if Path(elf).name in mapped}
        if self.programs.vdso is not None:
            given["[vdso]"] = self.programs.vdso
        found: list[CapturedImage] = []
        for process in self._imported_processes():
            build_ids = {it.name: it.build_id for it in process.mappings if it.build_id}
            files = BuildIdFiles(given, self.programs.sysroot, build_ids, cache_folder())
            image = process_image(as_maps(process), files, self.recording.xlen)
            self.notes += map(printable, files.refused.values())
            name = printable(f"{process.name or 'process'} {process.pid}")
            found += [captured_image(image, name, scontext=context) for context in self._contexts(process)]
        return tuple(found)

    def _contexts(self, process: PerfProcess) -> Sequence[int | None]:
        """Return the values of scontext in which a process is in memory: the IDs of its threads."""
        return [None] if self.pid is not None else sorted({process.pid, *process.threads})

    def _traced(self) -> tuple[tuple[CapturedEncoder, ...], tuple[CapturedSink, ...]]:
        """Return the encoder and the trace of each CPU. Raises SeveralProcesses, NoProcess."""
        buffers = self.recording.buffers.buffers()
        pieces_of = {number: buffer.pieces() for number, buffer in buffers.items()}
        self.pid = self._chosen_pid(_sizes(pieces_of.values()))
        encoders, sinks = [], []
        for number, buffer in sorted(buffers.items()):
            hart = number if buffer.cpu is None else buffer.cpu
            name = f"tid{buffer.tid}" if buffer.cpu is None else f"cpu{buffer.cpu}"
            pieces = [it for it in pieces_of[number] if it.origin.pid in (None, self.pid)]
            data = b"".join(piece.data for piece in pieces)
            encoders.append(encoder_of_hart(name, hart, self.options, data))
            sinks.append(replace(full_sink(name, data, False, (name,)), breaks=tuple(_breaks(pieces))))
            self.notes += _losses(name, pieces)
        return tuple(encoders), tuple(sinks)

    def _framed(self, info: AuxtraceInfo) -> tuple[tuple[CapturedEncoder, ...], tuple[CapturedSink, ...]]:
        """Return the encoders, which are told apart by SRC, or else by ATB ID, and the frames of all buffers."""
        pieces = self._pieces_by_time()
        if info.cpus and not any(it.context for it in info.cpus):
            self.pid = self._chosen_pid(_sizes([[piece for _, piece in pieces]]))
        raw = RawImport(
            "frames", _frames(pieces), _options_of(info, self.options, self.recording.path), Image(self.recording.xlen)
        )
        encoders, sink = encoders_and_sink(raw, ImportedFrames(FrameForm.MEMORY))
        return encoders, (sink,)

    def _pieces_by_time(self) -> list[tuple[int, AuxPiece]]:
        """Return the pieces of all buffers, each with the number of its buffer."""
        found: list[tuple[int, AuxPiece]] = []
        for number, buffer in self.recording.buffers.buffers().items():
            pieces = buffer.pieces()
            self.notes += _losses(f"buffer {number}", pieces)
            found += [(number, piece) for piece in pieces]
        return sorted(found, key=lambda it: it[1].origin.time or 0)


def _sizes(pieces: Iterable[Iterable[AuxPiece]]) -> dict[int, str]:
    """Return how much trace each process has in the pieces of each buffer."""
    sizes: Counter[int] = Counter()
    for piece in chain.from_iterable(pieces):
        sizes[piece.origin.pid or 0] += len(piece.data)
    return {pid: counted(size, "byte") for pid, size in sorted(sizes.items())}


def _frames(pieces: Iterable[tuple[int, AuxPiece]]) -> bytes:
    """Return the frames of pieces in their order. A barrier, which perf puts there, too, is where they do not go on."""
    parts: list[bytes] = []
    last = -1
    for number, piece in pieces:
        whole = len(piece.data) // FRAME_BYTES * FRAME_BYTES
        if (piece.loss or number != last) and parts and not piece.data.startswith(BARRIER):
            parts.append(BARRIER)
        parts.append(piece.data[:whole])
        last = number
    return b"".join(parts)


def _options_of(info: AuxtraceInfo, options: EncoderTraceOptions, path: str) -> EncoderTraceOptions:
    """Return how the encoders sent their trace, by what the kernel's driver says. Raises Unsupported."""
    formats = {it.etrace for it in info.cpus}
    widths = {it.src_bits for it in info.cpus}
    if len(formats) > 1 or len(widths) > 1:
        raise Unsupported(f"{path}: its CPUs have different formats of trace, or SRC of different widths")
    is_etrace = isinstance(options, EtraceTraceOptions)
    if formats and formats != {is_etrace}:
        said, option = ("E-Trace", "--etrace") if True in formats else ("N-Trace", "--ntrace")
        raise Unsupported(f"{path}: the kernel says that this is {said}: add {option}")
    if not widths:
        return options
    if isinstance(options, EtraceTraceOptions):
        return replace(options, encapsulation=replace(options.encapsulation, src_bits=max(widths)))
    return replace(options, src_bits=max(widths))


def _breaks(pieces: Sequence[AuxPiece]) -> Iterator[TraceBreak]:
    """Yield where trace is missing in the bytes of all pieces; before the first of them, nobody knows of any."""
    offset = 0
    for piece in pieces:
        if piece.loss and offset:
            yield TraceBreak(offset, piece.loss)
        offset += len(piece.data)


def _losses(name: str, pieces: Sequence[AuxPiece]) -> Iterator[str]:
    """Yield a line for each cause for which trace is missing in a buffer."""
    for why, times in Counter(piece.loss for piece in pieces if piece.loss).items():
        yield f"{name}: trace is missing, {counted(times, 'time')}: {why}"


def import_perf_data(
    recording: PerfRecording, programs: PerfPrograms, options: EncoderTraceOptions, pid: int | None = None
) -> Capture:
    """Return the capture of what perf recorded, its trace, else the branch stacks of its samples. *options*: how the
    encoders sent their trace. *pid*: of which process, where there are no contexts; None: of the only one.

    Raises NoTrace, SeveralProcesses, NoProcess, BadElf, BadMemory.
    """
    work = _Importing(recording, programs, options, pid)
    capture = work.capture()
    notes = list(dict.fromkeys(work.notes))
    if recording.cut is not None:
        notes.append(printable(f"{recording.path}: {recording.cut}"))
    if recording.lost:
        notes.append(f"perf lost {counted(recording.lost, 'record')}, or samples")
    if recording.pokes:
        times = counted(recording.pokes, "time")
        notes.append(f"the kernel changed its own code {times} while perf recorded: code is as it was first")
    return replace(capture, notes=tuple(notes))
