"""A trace in which several harts speak: messages sorted by their SRC field, each hart's to its own history.

Source: N-Trace 1.0, "Decoding trace from multiple harts".
"""

from collections.abc import Mapping
from typing import NamedTuple

from decode.history import Accounting, History
from decode.ntrace.automaton import Program
from decode.ntrace.framing import Batch, Framer, Lost, fault, is_idle
from decode.ntrace.hart import MEMO_LIMIT, HartDecoder
from decode.ntrace.layout import TCODE_BITS
from decode.ntrace.options import Options
from support.progress import Progress, silent

_LOSSES_KEPT = 16


class Streams(NamedTuple):
    """One history for each SRC value found (0 where messages have no SRC), and what became of all bytes."""

    histories: dict[int, History]
    accounting: Accounting


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
    *memo_limit*: steps to remember at most for each hart, 0 for none.
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
    ) -> None:
        self._programs = programs
        self._options = options
        self._progress = progress
        self._expected = total
        self._memo_limit = memo_limit
        self._split = split and options.src_bits > 0
        self._framer = Framer(wrapped=wrapped)
        self._harts: dict[int, HartDecoder] = {}
        self._idle = self._skipped = 0
        self._losses: list[Lost] = []  # the last ones, for harts not heard of yet

    def feed(self, data: bytes) -> None:
        """The next bytes of the trace. Raises only what *progress* raises."""
        for item in self._framer.feed(data):
            if isinstance(item, Lost):
                self._lose(item)
            elif self._split:
                self._sort(item)
            else:
                self._hart(0).run(item.frames, _Consecutive(item))
            self._progress("decoding", self._framer.total, self._expected)

    def finish(self) -> Streams:
        """The end of the trace."""
        if not self._split:
            self._hart(0)
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
        sorted_out: dict[int, tuple[list[bytes], list[int]]] = {}
        offset, bits = batch.offset, self._options.src_bits
        for frame in batch.frames:
            if is_idle(frame):
                self._idle += len(frame)
            elif (why := fault(frame)) is not None:
                self._run(sorted_out)
                self._lose(Lost(offset, len(frame), why))
            else:
                frames, offsets = sorted_out.setdefault(source_of(frame, bits), ([], []))
                frames.append(frame)
                offsets.append(offset)
            offset += len(frame)
        self._run(sorted_out)

    def _run(self, sorted_out: dict[int, tuple[list[bytes], list[int]]]) -> None:
        for src, (frames, offsets) in sorted_out.items():
            if self._is_ours(src):
                self._hart(src).run(frames, _Scattered(offsets))
            else:
                self._skipped += sum(map(len, frames))
        sorted_out.clear()

    def _is_ours(self, src: int) -> bool:
        if self._options.src_id is not None and src != self._options.src_id:
            return False
        return not isinstance(self._programs, Mapping) or src in self._programs

    def _hart(self, src: int) -> HartDecoder:
        if src not in self._harts:
            program = self._programs[src] if isinstance(self._programs, Mapping) else self._programs
            hart = self._harts[src] = HartDecoder(program, self._options, memo_limit=self._memo_limit)
            for lost in self._losses:
                hart.lose(lost)
        return self._harts[src]

    def _lose(self, lost: Lost) -> None:
        self._skipped += lost.length
        if not self._split:
            self._hart(0)
        for hart in self._harts.values():
            hart.lose(lost)
        self._losses = [*self._losses[1 - _LOSSES_KEPT :], lost]


def source_of(frame: bytes, src_bits: int) -> int:
    """The SRC field of a message, at most 12 bits wide."""
    value = int.from_bytes(bytes(byte >> 2 for byte in frame[:3]), "little")
    packed = (value & 63) | (value >> 8 & 63) << 6 | (value >> 16 & 63) << 12
    return packed >> TCODE_BITS & (1 << src_bits) - 1


class _Consecutive:
    """Byte offsets of a batch's frames, asked for in rising order and only where something is reported."""

    def __init__(self, batch: Batch) -> None:
        self._frames = batch.frames
        self._index = 0
        self._offset = batch.offset

    def of(self, index: int) -> int:
        """The offset of frame *index*."""
        self._offset += sum(map(len, self._frames[self._index : index]))
        self._index = index
        return self._offset


class _Scattered:
    """Byte offsets of frames that others stood between."""

    def __init__(self, offsets: list[int]) -> None:
        self._offsets = offsets

    def of(self, index: int) -> int:
        """The offset of frame *index*."""
        return self._offsets[index]
