"""Decoders from N-Trace bytes to histories: of one hart, or of several harts, distinguished by the SRC field.

Source: N-Trace 1.0, "Decoding trace from multiple harts".
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import deepcopy
from itertools import accumulate
from typing import Self

from rvtrace_gdb.decode.history.builder import BuilderFactory, HistoryBuilder, SourceHistories, complete_history
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, NoCheckpoint
from rvtrace_gdb.decode.history.events import BreakKind, Note
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.ntrace.framing import FrameBatch, MessageFramer, faulty_frames, frame_fault, idle_note, is_idle
from rvtrace_gdb.decode.ntrace.hart import HartDecoder
from rvtrace_gdb.decode.ntrace.kernel_hart import KernelHart
from rvtrace_gdb.decode.ntrace.messages import MAX_SRC_BITS, MDO_BITS, TCODE_BITS
from rvtrace_gdb.decode.ntrace.offsets import ConsecutiveOffsets, ScatteredOffsets, SourceOffsets
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.ntrace.walk import Walkers
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping import decoder as stepping
from rvtrace_gdb.decode.stepping.hart import MEMO_LIMIT
from rvtrace_gdb.decode.stepping.reports import LostBytes
from rvtrace_gdb.support.errors import Progress, silent

_HEAD = -(-(TCODE_BITS + MAX_SRC_BITS) // MDO_BITS)  # bytes that hold TCODE and SRC
_HEADS_REMEMBERED = 1 << 16
_FILLING = -1  # in place of a SRC


def decode_streams(
    data: bytes,
    programs: Mapping[int, Program] | Program,
    options: Options,
    *,
    wrapped: bool = False,
    progress: Progress = silent,
) -> SourceHistories:
    """Decode the histories of all harts in *data*.

    programs  the program of each hart by SRC (messages of other harts are skipped), or one program for all harts
    wrapped   whether the trace comes from a ring buffer that wrapped, oldest byte first

    Any bytes are accepted. Raises only what *progress* raises.
    """
    decoder = StreamDecoder(programs, options, progress, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


def decode(
    data: bytes, program: Program, options: Options, *, wrapped: bool = False, progress: Progress = silent
) -> History:
    """Decode a whole trace of the hart `Options.src_id`, or of the only hart.

    *wrapped*: as for `decode_streams`. Any bytes are accepted: what cannot be decoded becomes events and gaps of the
    history. Raises only what *progress* raises.
    """
    source = options.src_id if options.src_bits else None
    programs = program if source is None else {source: program}
    decoder = StreamDecoder(
        programs, options, progress, wrapped=wrapped, total=len(data), split=source is not None
    )
    decoder.feed(data)
    return decoder.finish_one(source or 0)


class StreamDecoder(stepping.StreamDecoder[HartDecoder]):
    """Decodes the traces of several harts, distinguished by SRC.

    memo_limit  greatest number of steps to remember for each hart; 0: none
    compiled    whether the steps known are taken by the kernel, if there is one
    """

    def __init__(
        self,
        programs: Mapping[int, Program] | Program,
        options: Options,
        progress: Progress = silent,
        *,
        wrapped: bool = False,
        total: int | None = None,
        memo_limit: int = MEMO_LIMIT,
        split: bool = True,
        builders: BuilderFactory = complete_history,
        compiled: bool = True,
    ) -> None:
        no_default = isinstance(programs, Mapping) and 0 not in programs  # no hart for messages without SRC
        super().__init__(
            programs, progress, total, builders, split=(split and options.src_bits > 0) or no_default
        )
        self._options = options
        self._memo_limit = memo_limit
        self._kernel = kernel() if compiled and memo_limit else None
        self._framer = MessageFramer(wrapped=wrapped)
        self._walkers = Walkers(options, self._kernel)
        self._sources: dict[bytes, int] = {}  # SRC by the head of a frame
        self._pending_note: tuple[int, Note] | None = None  # on idle bytes, not reported yet
        self._idle_noted = False

    def duplicate(self) -> Self:
        other = super().duplicate()
        other._framer = deepcopy(self._framer)
        return other

    def checkpoint(self) -> Checkpoint:
        if self._pending_note is not None:
            raise NoCheckpoint("note")
        return super().checkpoint() | {"framer": self._framer.checkpoint(), "idle_noted": self._idle_noted}

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        super().go_on_from(checkpoint)
        self._framer.go_on_from(checkpoint["framer"])
        self._idle_noted = checkpoint["idle_noted"]

    def begin_at(self, offset: int, checkpoint: Checkpoint) -> None:
        super().begin_at(offset, checkpoint)
        self._framer.begin_at(offset)
        self._idle_noted = checkpoint["idle_noted"]

    def feed(self, data: bytes) -> None:
        """Decode the next bytes of the trace. Raises only what *progress* raises."""
        for item in self._framer.feed(data):
            if isinstance(item, LostBytes):
                self._record_lost_bytes(item)
            elif self._split:
                self._distribute(item)
            else:
                self._hart_decoder(0).run_batch(item)
            self._progress("decoding", self._framer.total, self._expected)

    def _end_part(self, kind: BreakKind) -> int:
        cut_off = sum(lost.length for lost in self._framer.finish())
        if kind is BreakKind.ANYWHERE:
            self._framer.begin_at(self._framer.total)
        else:
            self._framer.begin_with_message()
        return cut_off

    def _decode_rest(self) -> Iterable[LostBytes]:
        if not self._split:
            self._hart_decoder(0)
        return self._framer.finish()

    @property
    def _fed(self) -> int:
        return self._framer.total

    def _distribute(self, batch: FrameBatch) -> None:
        """Pass the frames of the batch to their harts, in order."""
        found = self._kernel.sort(batch.data, TCODE_BITS, self._options.src_bits) if self._kernel is not None else None
        if found is None:
            return self._distribute_frames(batch.frames(), batch.offset)
        idle, sources = found
        self._idle += idle
        for src, data, runs in sources:
            if self._is_decoded(src):
                self._hart_decoder(src).run_bytes(data, SourceOffsets(batch.offset, array("I", runs)))
            else:
                self._skipped += len(data)
        return None

    def _distribute_frames(self, frames: list[bytes], offset: int) -> None:
        """Pass frames, the first one at *offset*, to their harts. At a damaged one any may have lost a message."""
        start = 0
        for damaged in faulty_frames(frames):
            self._decode_undamaged(frames[start:damaged], offset)
            frame = frames[damaged]
            offset += sum(map(len, frames[start:damaged]))
            self._record_lost_bytes(LostBytes(offset, len(frame), frame_fault(frame) or ""))
            start, offset = damaged + 1, offset + len(frame)
        self._decode_undamaged(frames[start:], offset)

    def _decode_undamaged(self, frames: list[bytes], offset: int) -> None:
        """Decode undamaged frames; the first one is at *offset*."""
        sources = self._sources_of(frames)
        if self._note_filling(frames, sources, offset):
            return
        if len(set(sources)) == 1 and self._is_decoded(sources[0]):
            self._hart_decoder(sources[0]).run(frames, ConsecutiveOffsets(frames, offset))
            return
        offsets = list(accumulate(map(len, frames), initial=offset))
        indices: dict[int, list[int]] = defaultdict(list)
        for i, src in enumerate(sources):
            indices[src].append(i)
        for src, own in indices.items():
            if self._is_decoded(src):
                self._hart_decoder(src).run([frames[i] for i in own], ScatteredOffsets(offsets, own))
            elif src == _FILLING:
                self._idle += sum(len(frames[i]) for i in own)
            else:
                self._skipped += sum(len(frames[i]) for i in own)

    def _note_filling(self, frames: list[bytes], sources: list[int], offset: int) -> bool:
        """Keep the note on non-standard idle bytes for the hart that sends the next message. True: *frames* were
        decoded.

        Such a note is made only once in a trace.
        """
        if self._idle_noted or _FILLING not in sources:
            return False
        for i, frame in enumerate(frames):
            note = idle_note(frame) if sources[i] == _FILLING else None
            if note is not None:
                self._decode_undamaged(frames[:i], offset)
                offset += sum(map(len, frames[:i]))
                self._pending_note, self._idle_noted = (offset, note), True
                self._decode_undamaged(frames[i:], offset)
                return True
        return False

    def _sources_of(self, frames: list[bytes]) -> list[int]:
        """Return the SRC of each frame, or _FILLING."""
        known, heads = self._sources, [frame[:_HEAD] for frame in frames]
        try:
            return [known[head] for head in heads]
        except KeyError:
            if len(known) > _HEADS_REMEMBERED:
                known.clear()
            for head in set(heads).difference(known):
                known[head] = _FILLING if is_idle(head) else source_of(head, self._options.src_bits)
            return [known[head] for head in heads]

    def _is_decoded(self, source: int) -> bool:
        if source == _FILLING or (self._options.src_id is not None and source != self._options.src_id):
            return False
        return super()._is_decoded(source)

    def _new_hart(self, program: Program, builder: HistoryBuilder) -> HartDecoder:
        walkers, limit = self._walkers, self._memo_limit
        if self._kernel is None:
            return HartDecoder(program, self._options, walkers, memo_limit=limit, builder=builder)
        return KernelHart(self._kernel, program, self._options, walkers, memo_limit=limit, builder=builder)

    def _hart_decoder(self, source: int) -> HartDecoder:
        """Return the decoder of a hart, after reporting pending losses and notes to it."""
        hart = super()._hart_decoder(source)
        if self._pending_note is not None:
            hart.note(*self._pending_note)
            self._pending_note = None
        return hart


def source_of(frame: bytes, src_bits: int) -> int:
    """Return the SRC field of a message, at most 12 bits wide. Missing high bits are 0."""
    value = 0
    for i, byte in enumerate(frame[:_HEAD]):
        value |= byte >> 2 << MDO_BITS * i
        if byte & 0b11:
            break
    return value >> TCODE_BITS & (1 << src_bits) - 1
