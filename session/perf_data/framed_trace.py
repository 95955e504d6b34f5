"""The trace of the CoreSight series: the frames of all buffers as those of one sink, in the order of their times."""

import io
from dataclasses import dataclass, field, replace

from rvtrace_gdb.decode.coresight.frames import BARRIER, FRAME_BYTES
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.capture.model import SystemMark
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats.imports.imported_encoders import EncoderTraceOptions
from rvtrace_gdb.session.perf_data.auxtrace import AuxPiece, AuxtraceInfo
from rvtrace_gdb.session.perf_data.code_epochs import CodeEpochs
from rvtrace_gdb.session.perf_data.cpu_traces import loss_notes
from rvtrace_gdb.session.perf_data.recording import PerfRecording


@dataclass
class FramedTrace:
    """The frames of a recording. *notes*: what is missing."""

    recording: PerfRecording
    pieces: list[tuple[int, AuxPiece]] = field(init=False)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        found: list[tuple[int, AuxPiece]] = []
        for number, buffer in self.recording.buffers.buffers().items():
            pieces = buffer.pieces()
            self.notes += loss_notes(f"buffer {number}", pieces)
            found += [(number, piece) for piece in pieces]
        self.pieces = sorted(found, key=lambda it: it[1].origin.time or 0)

    def sizes(self) -> dict[int, int]:
        """Return how many bytes there are of each process."""
        sizes: dict[int, int] = {}
        for _, piece in self.pieces:
            pid = piece.origin.pid or 0
            sizes[pid] = sizes.get(pid, 0) + piece.size
        return dict(sorted(sizes.items()))

    def joined_frames(self, epochs: CodeEpochs, *, timed: bool) -> tuple[bytes, tuple[SystemMark, ...]]:
        """Return the frames, and what the kernel noted about them. A barrier, which perf puts there, too, is where
        pieces do not go on. *timed*: the trace has times of its own.
        """
        frames = io.BytesIO()
        marks: list[SystemMark] = []
        offset, buffer, before = 0, -1, 0
        for number, piece in self.pieces:
            data = piece.data
            if (piece.loss or number != buffer) and offset and not data.startswith(BARRIER):
                frames.write(BARRIER)
                offset += len(BARRIER)
            now = piece.origin.time
            epoch = epochs.epoch_of(None, before, before if now is None else now)
            marks.append(SystemMark(offset, None, epoch, None if timed else now))
            whole = len(data) // FRAME_BYTES * FRAME_BYTES
            frames.write(memoryview(data)[:whole])
            offset, buffer, before = offset + whole, number, before if now is None else now
        return frames.getvalue(), tuple(marks)


def options_by_kernel(info: AuxtraceInfo, options: EncoderTraceOptions, path: str) -> EncoderTraceOptions:
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
