"""N-Trace bytes to histories: of one hart, or of several harts, whose messages are sorted by their SRC field.

Source: N-Trace 1.0, "Decoding trace from multiple harts".
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate

from rvtrace_gdb.decode.history.builder import Builders, Losses, Lost, Streams, whole
from rvtrace_gdb.decode.history.events import Accounting, Note
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.framing import Batch, Framer, fault, faults, is_idle, remark
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
    """The histories of all harts in *data*. *programs*: what each runs, by SRC; others are skipped. Or one for all.

    *wrapped*: the trace comes from a ring buffer that wrapped, oldest byte first. No bytes make it fail. Raises only
    what *progress* raises.
    """
    decoder = StreamDecoder(programs, options, progress, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


class StreamDecoder:
    """Decodes the traces of several harts, fed in pieces of any size.

    *split*: by SRC; else all messages are taken for one hart's. *total*: bytes to expect, for *progress* only.
    *memo_limit*: steps to remember at most for each hart, 0 for none. *builders*: what collects the histories, by SRC.
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
        builders: Builders = whole,
    ) -> None:
        self._programs = programs
        self._options = options
        self._progress = progress
        self._expected = total
        self._memo_limit = memo_limit
        self._builders = builders
        nobody = isinstance(programs, Mapping) and 0 not in programs  # who could have sent what has no SRC
        self._split = (split and options.src_bits > 0) or nobody
        self._framer = Framer(wrapped=wrapped)
        self._harts: dict[int, HartDecoder] = {}
        self._idle = self._skipped = 0
        self._walkers = Walkers(options)
        self._sources: dict[bytes, int] = {}  # by the head of a frame
        self._losses = Losses()
        self._remark: tuple[int, Note] | None = None  # on the filling, not said yet
        self._remarked = False

    def feed(self, data: bytes) -> None:
        """The next bytes of the trace. Raises only what *progress* raises."""
        for item in self._framer.feed(data):
            if isinstance(item, Lost):
                self._lose(item)
            elif self._split:
                self._sort(item)
            else:
                self._hart(0).run(item.frames, _Consecutive(item.frames, item.offset))
            self._progress("decoding", self._framer.total, self._expected)

    def finish(self) -> Streams:
        """The end of the trace."""
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
        """There is a history of this hart, even if it said nothing."""
        self._hart(src)

    def _sort(self, batch: Batch) -> None:
        """Each hart gets its frames of the batch, in order, up to where all may have lost something."""
        start, offset = 0, batch.offset
        for damaged in faults(batch.frames):
            self._run(batch.frames[start:damaged], offset)
            frame = batch.frames[damaged]
            offset += sum(map(len, batch.frames[start:damaged]))
            self._lose(Lost(offset, len(frame), fault(frame) or ""))
            start, offset = damaged + 1, offset + len(frame)
        self._run(batch.frames[start:], offset)

    def _run(self, frames: list[bytes], offset: int) -> None:
        """Undamaged frames from *offset* on."""
        sources = self._sources_of(frames)
        if self._cut_at_filling(frames, sources, offset):
            return
        if len(set(sources)) == 1 and self._is_ours(sources[0]):
            self._hart(sources[0]).run(frames, _Consecutive(frames, offset))
            return
        offsets = list(accumulate(map(len, frames), initial=offset))
        indices: dict[int, list[int]] = defaultdict(list)
        for i, src in enumerate(sources):
            indices[src].append(i)
        for src, own in indices.items():
            if self._is_ours(src):
                self._hart(src).run([frames[i] for i in own], _Scattered(offsets, own))
            elif src == _FILLING:
                self._idle += sum(len(frames[i]) for i in own)
            else:
                self._skipped += sum(len(frames[i]) for i in own)

    def _cut_at_filling(self, frames: list[bytes], sources: list[int], offset: int) -> bool:
        """What there is to say of filling is said once, to the first hart that speaks after it: whether it was cut."""
        if self._remarked or _FILLING not in sources:
            return False
        for i, frame in enumerate(frames):
            note = remark(frame) if sources[i] == _FILLING else None
            if note is not None:
                self._run(frames[:i], offset)
                offset += sum(map(len, frames[:i]))
                self._remark, self._remarked = (offset, note), True
                self._run(frames[i:], offset)
                return True
        return False

    def _sources_of(self, frames: list[bytes]) -> list[int]:
        """The SRC of each frame, or _FILLING."""
        known, heads = self._sources, [frame[:_HEAD] for frame in frames]
        try:
            return [known[head] for head in heads]
        except KeyError:
            if len(known) > _HEADS_REMEMBERED:
                known.clear()
            for head in set(heads).difference(known):
                known[head] = _FILLING if is_idle(head) else source_of(head, self._options.src_bits)
            return [known[head] for head in heads]

    def _is_ours(self, src: int) -> bool:
        if src == _FILLING or (self._options.src_id is not None and src != self._options.src_id):
            return False
        return not isinstance(self._programs, Mapping) or src in self._programs

    def _hart(self, src: int) -> HartDecoder:
        """A hart's decoder, which knows what was lost so far."""
        if src not in self._harts:
            program = self._programs[src] if isinstance(self._programs, Mapping) else self._programs
            self._harts[src] = HartDecoder(
                program, self._options, self._walkers, memo_limit=self._memo_limit, builder=self._builders(src)
            )
        missed = self._losses.missed(src)
        if missed is not None:
            self._harts[src].lose(missed)
        if self._remark is not None:
            self._harts[src].note(*self._remark)
            self._remark = None
        return self._harts[src]

    def _lose(self, lost: Lost) -> None:
        """Bytes no hart can use, and any may have sent. Not worth a word at the start of a wrapped buffer."""
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
    """The SRC field of a message, at most 12 bits wide. High bits that are missing are 0."""
    value = 0
    for i, byte in enumerate(frame[:_HEAD]):
        value |= byte >> 2 << MDO_BITS * i
        if byte & 0b11:
            break
    return value >> TCODE_BITS & (1 << src_bits) - 1


class _Consecutive:
    """Byte offsets of frames one after the other: asked for where something is reported, mostly in rising order."""

    def __init__(self, frames: Sequence[bytes], offset: int) -> None:
        self._frames = frames
        self._index = 0
        self._offset = offset

    def of(self, index: int) -> int:
        """The offset of frame *index*."""
        if index < self._index:
            self._offset -= sum(map(len, self._frames[index : self._index]))
        else:
            self._offset += sum(map(len, self._frames[self._index : index]))
        self._index = index
        return self._offset


class _Scattered:
    """Byte offsets of those of all frames that a hart sent."""

    def __init__(self, offsets: Sequence[int], own: Sequence[int]) -> None:
        self._offsets = offsets
        self._own = own

    def of(self, index: int) -> int:
        """The offset of the hart's frame *index*."""
        return self._offsets[self._own[index]]


def decode(
    data: bytes, program: Program, options: Options, *, wrapped: bool = False, progress: Progress = silent
) -> History:
    """The history of a whole trace. *wrapped*: it comes from a ring buffer that wrapped, oldest byte first.

    No bytes make it fail: what cannot be decoded is in the history as events and gaps. Raises only what *progress*
    raises.
    """
    decoder = Decoder(program, options, progress, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


class Decoder:
    """Decodes one hart's trace, fed in pieces of any size: that of `Options.src_id`, or whatever there is.

    *total*: bytes to expect, for *progress* only. *memo_limit*: steps to remember at most, 0 for none.
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
        """The next bytes of the trace. Raises only what *progress* raises."""
        self._stream.feed(data)

    def finish(self) -> History:
        """The end of the trace: what is left is decoded as far as it is determined; the account is of all bytes."""
        if self._source is not None:
            self._stream.expect(self._source)
        histories, accounting = self._stream.finish()
        (history,) = histories.values()
        history.accounting = accounting
        return history
