"""A running trace of what QEMU executes: a `session.sources.TraceSource`.

`HartTrace` is one hart of QEMU: how far its ring was read, and the encoded trace. `start` is `trace start` if the
target description says that the target is a QEMU started by `rvtrace qemu`. The other functions describe the trace in
lines that are ready to print.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session import program as session_program
from rvtrace_gdb.session import report as common
from rvtrace_gdb.session.capture.model import CapturedEncoder, CapturedImage, CapturedSink
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import DecodedCapture
from rvtrace_gdb.session.description.model import Description
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.program import LoadedProgram
from rvtrace_gdb.session.sources import TraceOwner, TraceSource
from rvtrace_gdb.session.sources.options import chosen_components, trace_request, unsupported_notes
from rvtrace_gdb.session.sources.qemu import encoder
from rvtrace_gdb.session.sources.qemu.encoder import QemuEncoderOptions, encoder_for, encoder_options
from rvtrace_gdb.session.sources.qemu.records import HartRecords, RecordedCode, RecordedItems, lacking
from rvtrace_gdb.session.sources.qemu.saved import QemuReader
from rvtrace_gdb.session.target.target_state import SavedTarget, wishes_of
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent
from rvtrace_gdb.support.text import counted
from rvtrace_gdb.transport.qemu import recorder
from rvtrace_gdb.transport.qemu.recorder import BLOCK, TAG, QemuError, QemuGone, Ring

BATCH = 1 << 16  # words
KEPT = 1 << 26
"""How many bytes of a hart's trace are kept: older ones are dropped, as in a buffer that wraps."""


class HartTrace:
    """The trace of *hart* in *ring* from now on. *kept*: see KEPT; a tail is added, so it may be a little longer."""

    def __init__(
        self, ring: Ring, hart: int, code: RecordedCode, options: QemuEncoderOptions, image: Image, *, kept: int = KEPT
    ) -> None:
        self.hart = hart
        self._ring, self._code, self._options, self._kept = ring, code, options, kept
        self._at = ring.written(hart)
        self._records = self._new_records()
        self._encoder = encoder_for(options)
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._wrapped = False  # the first piece that is kept may begin in the middle of a message
        self.overwritten = False
        """Older trace is lost."""
        self.encoder: CapturedEncoder = encoder.encoder(hart, options, image)
        self.sink: CapturedSink = encoder.sink(hart, b"", wrapped=False)
        self.instructions = 0
        """The number of instructions that retired since the trace began, and were read."""

    def _new_records(self) -> HartRecords:
        return HartRecords(self._code, contexts=self._options.has_privilege, spaces=self._options.has_spaces)

    @property
    def unread_words(self) -> int:
        """How many words in the ring have not been read yet."""
        return self._ring.written(self.hart) - self._at

    def read(self, progress: Progress = silent) -> None:
        """Take everything that is in the ring now. Raises QemuError, and what *progress* raises."""
        end = self._ring.written(self.hart)
        begin = max(self._at, end - self._ring.size)
        while self._at < end:
            progress(f"hart {self.hart}: encoding (blocks)", self._at - begin, end - begin)
            self._keep_until(min(end, self._at + BATCH))

    def close_up(self, *, stopped: bool, halted: bool) -> None:
        """Build the sink of everything that was read.

        *stopped*: the program is stopped, and the recorder has reported how far it came. *halted*: it can go on.
        """
        rest = self._records.open_end(self._ring.began(self.hart)) if stopped else RecordedItems()
        before = self._encoder.instructions
        tail = self._encoder.end(rest, halted=halted)
        self.instructions = before + rest.instructions
        self.sink = encoder.sink(self.hart, b"".join(self._pieces) + tail, wrapped=self._wrapped)

    def _keep_until(self, end: int) -> None:
        words = self._ring.words(self.hart, self._at, end)
        oldest = self._ring.oldest(self.hart)  # as of now
        if oldest > self._at:
            words = words[min(oldest - self._at, len(words)) :]
            self._lose_words()
            words = _from_a_block(words)
        self._at = max(end, oldest)
        data = self._encoder.feed(self._records.feed(words))
        self._pieces.append(data)
        self._size += len(data)
        while self._size > self._kept and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft())
            self._wrapped = self.overwritten = True

    def _lose_words(self) -> None:
        """Begin anew: words were overwritten before they were read, so what was read before has no continuation."""
        self._records = self._new_records()
        instructions = self._encoder.instructions
        self._encoder = encoder_for(self._options)
        self._encoder.instructions = instructions
        self._pieces.clear()
        self._size, self._wrapped, self.overwritten = 0, False, True


def _from_a_block(words: "array[int]") -> "array[int]":
    """Drop what comes before the first block: it belongs to a block that was overwritten."""
    first = next((at for at, word in enumerate(words) if word & TAG == BLOCK), len(words))
    return words[first:]


def target_line(name: str, file: str, ring: Ring) -> str:
    """Describe the QEMU."""
    which = harts_text(range(ring.harts))
    return common.line("target", f"{name}{f' ({file})' if file else ''}, {which}")


def encoders(captured_encoders: Iterable[CapturedEncoder], *, tracing: bool) -> list[str]:
    state = "tracing" if tracing else "off"
    return common.encoders(
        captured_encoders, lambda it: f", in software: {state}, {common.protocol(it.in_force)}", state
    )


def ring_line(ring: Ring, traces: Sequence[HartTrace]) -> str:
    """Describe how much can be recorded before it has to be read out."""
    each = " for each hart" if len(traces) > 1 else ""
    return common.line("sink", f"a ring of {ring.size * _WORD} bytes{each}, keeps the newest {ring.size} blocks or so")


def hart_lines(traces: Iterable[HartTrace], *, read: bool) -> list[str]:
    """Describe how much each hart has recorded."""
    lines: list[str] = []
    for it in traces:
        data = it.sink
        text = f"{data.in_force.name}: {counted(it.instructions, 'instruction')}, {counted(len(data.data), 'byte')}"
        text += ", older trace was overwritten" if it.overwritten else ""
        unread = 0 if read else _WORD * it.unread_words
        text += f", {unread} bytes of the ring are not read yet" if unread else ""
        lines.append(common.line("sink", text, filled=(len(data.data), 0), unread=unread))
    return lines


def failure(error: RvtraceError | None) -> list[str]:
    return [] if error is None else [common.incomplete(error)]


def changed(address: int) -> str:
    """Describe that code ran that differs from the program; the history is decoded with the program."""
    return (
        f"the code changed while it ran, lowest at 0x{address:x}: the history shows the old code, with gaps where"
        " the old code does not fit"
    )


def gone(ring: Ring) -> str:
    """Describe that QEMU does not run any more."""
    if ring.ended:
        return "QEMU has ended; everything it ran is in the trace, as far as the ring had room"
    return "QEMU ended while it was recording: the last instructions may be missing"


_WORD = 4  # bytes


class QemuTrace(TraceSource):
    """The trace of *harts*, by the recorder in *folder*. *program* is given the code that ran and that no ELF has."""

    shows_halts = False

    def __init__(self, folder: Path, harts: list[int], options: QemuEncoderOptions, program: LoadedProgram) -> None:
        self.tracing = self.incomplete = True
        self.failure: RvtraceError | None = None
        self.notes: list[str] = []
        self._change = ""  # the note that says that code changed
        self._folder, self._program = folder, program
        self._ring = Ring.open(folder)
        self._recorded_before = self._ring.recording
        image = program.image()
        self._image: Image | None = image
        self._code = RecordedCode(self._ring, image)
        self._fresh: list[tuple[int, bytes]] = []
        self._harts = [HartTrace(self._ring, hart, self._code, options, image) for hart in harts]

    @classmethod
    def start(cls, folder: Path, harts: list[int], options: QemuEncoderOptions, program: LoadedProgram) -> "QemuTrace":
        """Start recording. Raises QemuError."""
        if not recorder.is_running(folder):
            recorder.synchronize(folder)
        trace = cls(folder, harts, options, program)
        try:
            recorder.set_recording(folder, True)
        except BaseException:
            trace.close()
            raise
        return trace

    @property
    def encoders(self) -> tuple[CapturedEncoder, ...]:
        return tuple(hart.encoder for hart in self._harts)

    @property
    def sinks(self) -> tuple[CapturedSink, ...]:
        return tuple(hart.sink for hart in self._harts)

    @property
    def images(self) -> tuple[CapturedImage, ...]:
        return self._code.images

    def retired(self, hart: int) -> int:
        """Return how many instructions of a hart were read out since the trace began, including those dropped."""
        return next(it.instructions for it in self._harts if it.hart == hart)

    def started(self) -> list[str]:
        return [
            *encoders(self.encoders, tracing=self.tracing),
            ring_line(self._ring, self._harts),
            *common.notes(self.notes),
        ]

    def status(self) -> list[str]:
        if self.tracing:
            self._wait_for_stop()
        return [
            *encoders(self.encoders, tracing=self.tracing),
            *hart_lines(self._harts, read=not self.incomplete),
            *common.notes(self.notes),
            *failure(self.failure),
        ]

    def ended(self) -> list[str]:
        return [*hart_lines(self._harts, read=True), *common.notes(self.notes)]

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        """Return a value that stays the same as long as nothing runs."""
        return None if runs is None else (runs, *(hart.unread_words for hart in self._harts))

    def unread(self) -> int:
        self._wait_for_stop()
        return _WORD * sum(hart.unread_words for hart in self._harts)

    def read_out(self, progress: Progress = silent) -> None:
        if self.tracing or self.incomplete:
            self._read_ring(progress)

    def stop(self, progress: Progress = silent) -> None:
        self.read_out(progress)
        if self.state is not None and self.failure is None:
            self.state.end(self.halted)
        if self.tracing:
            self.tracing = False
            self._record_no_more()

    def abandon(self) -> None:
        self._record_no_more()
        self.tracing = self.incomplete = False
        self.failure = None

    def close(self) -> None:
        """Release the ring; the recorder continues."""
        self._code.close()
        self._ring.close()

    def _record_no_more(self) -> None:
        if self._recorded_before:
            return  # another process records into a capture
        try:
            recorder.set_recording(self._folder, False)
        except RvtraceError:
            return  # QEMU has ended

    def _read_ring(self, progress: Progress) -> None:
        self.failure, self.incomplete = None, True
        try:
            if self.state is not None:
                self.state.forget_end()
            self.halted = ()
            stopped = self._stopped()
            for hart in self._harts:
                hart.read(progress)
                hart.close_up(stopped=stopped, halted=stopped and self.tracing)
            self._code.refresh()
            self._tell_code()
            self._say_changed()
            if self._ring.failed:
                raise QemuError(lacking(self._ring))
        except Cancelled:
            raise
        except RvtraceError as error:
            self.failure = error
        else:
            self.incomplete = False
            self.halted = [hart.hart for hart in self._harts] if stopped and self.tracing else ()

    def _stopped(self) -> bool:
        """Return whether the program is stopped; if so, everything it did is in the ring."""
        try:
            if recorder.is_running(self._folder):
                return False
            recorder.synchronize(self._folder)
        except QemuGone:
            recorder.wait_for_end(self._ring)
            if self.tracing:
                self.tracing = False
                self.notes.append(gone(self._ring))
        return True

    def _wait_for_stop(self) -> None:
        """Wait until a program that is stopping has stopped: then the ring contains everything that ran."""
        with suppress(QemuError):
            if not recorder.is_running(self._folder):
                recorder.synchronize(self._folder)

    def _say_changed(self) -> None:
        if self._code.changed is not None:
            note = changed(self._code.changed)
            self.notes = [note, *(it for it in self.notes if it is not self._change)]
            self._change = note

    def _tell_code(self) -> None:
        """Give the program's image the code that ran and is not in its ELF: a boot ROM, code of a loader."""
        fresh = self._code.take_fresh()
        image = self._program.image()
        if image is not self._image:
            self._image, fresh, self._fresh = image, self._fresh + fresh, []
        for address, data in self._code.patched.items():
            if image.differs(address, data):
                image.replace_code(address, data)
        for address, data in fresh:
            if not (image.knows(address) and image.knows(address + len(data) - 2)):  # blocks may have the same code
                self._fresh.append((address, data))
                image.add_code(address, data)
        self._code.refresh_images()


def start(
    session: TraceOwner,
    description: Description,
    context: Context,
    options: Mapping[str, Any],
    progress: Progress,
) -> list[str]:
    """Start tracing, and drop the trace that the session had. Return lines about what was set up.

    Raises NoElf, BadElf, WrongXlen, BadOption, Busy, QemuError.
    """
    program = session_program.program_of(context.elf, others=context.others)
    image = program.image()
    session_program.check_xlen(image, description)
    request, wishes = trace_request(options, image), wishes_of(options, context.save_memory)
    encoder, notes = encoder_options(request, image.xlen, options)
    session.check_free(QemuTrace)
    folder = Path(description.qemu)
    ring = Ring.open(folder)
    try:
        harts = _traced_harts(options, ring)
        target = target_line(description.name, description.file, ring)
    finally:
        ring.close()
    if session.live is not None:
        session.live.abandon()
    trace = QemuTrace.start(folder, harts, encoder, program)
    trace.state = SavedTarget(QemuReader(folder), harts, image, description.memory, wishes)
    trace.state.begin(progress)
    trace.notes += [*notes, *unsupported_notes(options), *trace.state.unsaid()]
    return session.begin(trace, DecodedCapture(session_program.new_capture(description.name, image), program), target)


def _traced_harts(options: Mapping[str, Any], ring: Ring) -> list[int]:
    _, harts = chosen_components(options)
    for hart in harts:
        if not 0 <= hart < ring.harts:
            raise BadOption(f"there is no hart {hart}: this QEMU has {ring.harts}")
    return sorted(set(harts)) or list(range(ring.harts))
