"""Decoders from N-Trace bytes to histories: of one hart, or of several harts, distinguished by the SRC field.

Source: N-Trace 1.0, "Decoding trace from multiple harts".
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate

from rvtrace_gdb.decode.history.builder import BuilderFactory, Losses, LostBytes, Streams, complete_history
from rvtrace_gdb.decode.history.events import Accounting, Note
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.framing import Batch, Framer, faulty_frames, frame_fault, idle_note, is_idle
from rvtrace_gdb.decode.ntrace.hart import MEMO_LIMIT, HartDecoder
from rvtrace_gdb.decode.ntrace.messages import MAX_SRC_BITS, MDO_BITS, TCODE_BITS
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.ntrace.walk import Walkers
from rvtrace_gdb.decode.program.image import Program
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
) -> Streams:
    """Decode the histories of all harts in *data*.

    programs  the program of each hart by SRC (messages of other harts are skipped), or one program for all harts
    wrapped   whether the trace comes from a ring buffer that wrapped, oldest byte first

    Any bytes are accepted. Raises only what *progress* raises.
    """
    decoder = StreamDecoder(programs, options, progress, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


class StreamDecoder:
    """Decodes the traces of several harts, fed in pieces of any size. See `decode_streams`.

    total       number of bytes to expect, used only for *progress*
    memo_limit  greatest number of steps to remember for each hart; 0: none
    split       whether messages are distributed by SRC; else all belong to one hart
    builders    creates the builder of a history for a SRC
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
    ) -> None:
        self._programs = programs
        self._options = options
        self._progress = progress
        self._expected = total
        self._memo_limit = memo_limit
        self._builders = builders
        no_default = isinstance(programs, Mapping) and 0 not in programs  # no hart for messages without SRC
        self._split = (split and options.src_bits > 0) or no_default
        self._framer = Framer(wrapped=wrapped)
        self._harts: dict[int, HartDecoder] = {}
        self._idle = self._skipped = 0
        self._walkers = Walkers(options)
        self._sources: dict[bytes, int] = {}  # SRC by the head of a frame
        self._losses = Losses()
        self._pending_note: tuple[int, Note] | None = None  # on idle bytes, not reported yet
        self._idle_noted = False

    def feed(self, data: bytes) -> None:
        """Decode the next bytes of the trace. Raises only what *progress* raises."""
        for item in self._framer.feed(data):
            if isinstance(item, LostBytes):
                self._lose(item)
            elif self._split:
                self._distribute(item)
            else:
                self._hart(0).run(item.frames, _Consecutive(item.frames, item.offset))
            self._progress("decoding", self._framer.total, self._expected)

    def finish(self) -> Streams:
        """End the trace and return the histories."""
        if not self._split:
            self._hart(0)
        for src in self._harts:
            self._hart(src)
        for lost in self._framer.finish():
            self._skipped += lost.length
            for hart in self._harts.values():
                hart.cut_off(lost)
        histories = {src: self._harts[src].finish() for src in sorted(self._harts)}
        accounts = [history.accounting for history in histories.values()]
        return Streams(
            histories,
            Accounting(
                self._framer.total,
                sum(account.decoded for account in accounts),
                self._idle + sum(account.idle for account in accounts),
                self._skipped + sum(account.skipped for account in accounts),
            ),
        )

    def expect(self, src: int) -> None:
        """Make sure that there is a history of this hart, even if it sent nothing."""
        self._hart(src)

    def _distribute(self, batch: Batch) -> None:
        """Pass the frames of the batch to their harts, in order.

        At a damaged frame every hart may have lost a message.
        """
        start, offset = 0, batch.offset
        for damaged in faulty_frames(batch.frames):
            self._run(batch.frames[start:damaged], offset)
            frame = batch.frames[damaged]
            offset += sum(map(len, batch.frames[start:damaged]))
            self._lose(LostBytes(offset, len(frame), frame_fault(frame) or ""))
            start, offset = damaged + 1, offset + len(frame)
        self._run(batch.frames[start:], offset)

    def _run(self, frames: list[bytes], offset: int) -> None:
        """Decode undamaged frames; the first one is at *offset*."""
        sources = self._sources_of(frames)
        if self._note_filling(frames, sources, offset):
            return
        if len(set(sources)) == 1 and self._is_decoded(sources[0]):
            self._hart(sources[0]).run(frames, _Consecutive(frames, offset))
            return
        offsets = list(accumulate(map(len, frames), initial=offset))
        indices: dict[int, list[int]] = defaultdict(list)
        for i, src in enumerate(sources):
            indices[src].append(i)
        for src, own in indices.items():
            if self._is_decoded(src):
                self._hart(src).run([frames[i] for i in own], _Scattered(offsets, own))
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
                self._run(frames[:i], offset)
                offset += sum(map(len, frames[:i]))
                self._pending_note, self._idle_noted = (offset, note), True
                self._run(frames[i:], offset)
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

    def _is_decoded(self, src: int) -> bool:
        if src == _FILLING or (self._options.src_id is not None and src != self._options.src_id):
            return False
        return not isinstance(self._programs, Mapping) or src in self._programs

    def _hart(self, src: int) -> HartDecoder:
        """Return the decoder of a hart, after reporting pending losses and notes to it."""
        if src not in self._harts:
            program = self._programs[src] if isinstance(self._programs, Mapping) else self._programs
            self._harts[src] = HartDecoder(
                program, self._options, self._walkers, memo_limit=self._memo_limit, builder=self._builders(src)
            )
        missed = self._losses.missed(src)
        if missed is not None:
            self._harts[src].lose(missed)
        if self._pending_note is not None:
            self._harts[src].note(*self._pending_note)
            self._pending_note = None
        return self._harts[src]

    def _lose(self, lost: LostBytes) -> None:
        """Record bytes that no hart can use and any hart may have sent.

        At the start of a wrapped buffer this is no loss.
        """
        self._skipped += lost.length
        if lost.why:
            self._losses.add(lost)
            if not self._split:
                self._hart(0)
            if self._losses.full:
                for src in self._harts:
                    self._hart(src)
                self._losses.forget()


def source_of(frame: bytes, src_bits: int) -> int:
    """Return the SRC field of a message, at most 12 bits wide. Missing high bits are 0."""
    value = 0
    for i, byte in enumerate(frame[:_HEAD]):
        value |= byte >> 2 << MDO_BITS * i
        if byte & 0b11:
            break
    return value >> TCODE_BITS & (1 << src_bits) - 1


class _Consecutive:
    """The byte offsets of consecutive frames. They are needed only for reports, mostly in ascending order."""

    def __init__(self, frames: Sequence[bytes], offset: int) -> None:
        self._frames = frames
        self._index = 0
        self._offset = offset

    def of(self, index: int) -> int:
        """Return the offset of frame *index*."""
        if index < self._index:
            self._offset -= sum(map(len, self._frames[index : self._index]))
        else:
            self._offset += sum(map(len, self._frames[self._index : index]))
        self._index = index
        return self._offset


class _Scattered:
    """The byte offsets of the frames of one hart among those of all harts."""

    def __init__(self, offsets: Sequence[int], own: Sequence[int]) -> None:
        self._offsets = offsets
        self._own = own

    def of(self, index: int) -> int:
        """Return the offset of the hart's frame *index*."""
        return self._offsets[self._own[index]]


def decode(
    data: bytes, program: Program, options: Options, *, wrapped: bool = False, progress: Progress = silent
) -> History:
    """Decode a whole trace. *wrapped*: it comes from a ring buffer that wrapped, oldest byte first.

    Any bytes are accepted: what cannot be decoded becomes events and gaps of the history. Raises only what *progress*
    raises.
    """
    decoder = Decoder(program, options, progress, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


class Decoder:
    """Decodes the trace of one hart, fed in pieces of any size: of the hart `Options.src_id`, or of the only hart.

    total       number of bytes to expect, used only for *progress*
    memo_limit  greatest number of steps to remember; 0: none
    """

    def __init__(
        self,
        program: Program,
        options: Options,
        progress: Progress = silent,
        *,
        wrapped: bool = False,
        total: int | None = None,
        memo_limit: int = MEMO_LIMIT,
    ) -> None:
        self.options = options
        self._source = options.src_id if options.src_bits else None
        programs = program if self._source is None else {self._source: program}
        self._stream = StreamDecoder(
            programs,
            options,
            progress,
            wrapped=wrapped,
            total=total,
            memo_limit=memo_limit,
            split=self._source is not None,
        )

    def feed(self, data: bytes) -> None:
        """Decode the next bytes of the trace. Raises only what *progress* raises."""
        self._stream.feed(data)

    def finish(self) -> History:
        """End the trace and return its history. The history's accounting covers all bytes, including other harts'."""
        if self._source is not None:
            self._stream.expect(self._source)
        histories, accounting = self._stream.finish()
        (history,) = histories.values()
        history.accounting = accounting
        return history
