"""N-Trace bytes to history: frames through the automaton, its answers remembered.

Of the messages in a real trace only a few percent are distinct, and the automaton's step depends on nothing but its
state and the message. So each state keeps the steps already taken from it, under the bytes of the message: a hot loop
costs one look-up per message, however many instructions that stands for. What is remembered is bounded; forgetting
costs time, never correctness.
"""

from collections.abc import Sequence
from operator import length_hint

from decode.history import Accounting, EventKind, History, HistoryBuilder
from decode.image import Image
from decode.ntrace.automaton import Automaton
from decode.ntrace.framing import Batch, Framer, Lost, fault, is_idle
from decode.ntrace.layout import Tcode
from decode.ntrace.message import Malformed, Message, parse
from decode.ntrace.options import Options
from decode.ntrace.state import Mode, Report, Step
from support.progress import Progress, silent

__all__ = ["Decoder", "Options", "decode"]

MEMO_LIMIT = 1 << 17
"""Steps remembered at most (about 0.6 KB each)."""


def decode(
    data: bytes, image: Image, options: Options, *, wrapped: bool = False, progress: Progress = silent
) -> History:
    """The history of a whole trace. *wrapped*: it comes from a ring buffer that wrapped, oldest byte first.

    No bytes make it fail: what cannot be decoded is in the history as events and gaps. Raises only what *progress*
    raises.
    """
    decoder = Decoder(image, options, progress, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


class Decoder:
    """Decodes one hart's trace, fed in pieces of any size.

    *total*: bytes to expect, for *progress* only. *memo_limit*: steps to remember at most, 0 for none.
    """

    def __init__(
        self,
        image: Image,
        options: Options,
        progress: Progress = silent,
        *,
        wrapped: bool = False,
        total: int | None = None,
        memo_limit: int = MEMO_LIMIT,
    ) -> None:
        self.options = options
        self._progress = progress
        self._expected = total
        self._framer = Framer(wrapped=wrapped)
        self._automaton = Automaton(image, options)
        self._builder = HistoryBuilder()
        self._state = self._automaton.lost
        self._ahead = 0
        self._memo_limit = memo_limit
        self._memo_size = 0
        self._framed = self._idle = self._unframed = self._unused = 0

    def feed(self, data: bytes) -> None:
        """The next bytes of the trace. Raises only what *progress* raises."""
        for item in self._framer.feed(data):
            if isinstance(item, Lost):
                self._lose(item)
            else:
                self._run(item)
            self._builder.flush()
            self._progress("decoding", self._framer.total, self._expected)

    def finish(self) -> History:
        """The end of the trace: what is left is decoded as far as it is determined."""
        tail = self._automaton.tail(self._state, self._ahead)
        if tail is not None:
            self._builder.append(tail)
        for lost in self._framer.finish():
            self._unframed += lost.length
            self._builder.event(EventKind.NOTE, lost.offset, lost.why)
        decoded = self._framed - self._unused
        skipped = self._unframed + self._unused
        return self._builder.finish(Accounting(self._framer.total, decoded, self._idle, skipped))

    def _run(self, batch: Batch) -> None:
        """The hot path: everything known is one look-up and one append."""
        position = _Position(batch)
        append = self._builder.append
        state, ahead = self._state, self._ahead
        frames = iter(batch.frames)
        for frame in frames:
            step = state.get(frame)
            if ahead and (step is None or step[4]):
                step = state.get((frame, ahead))
            if step is None:
                offset = position.of(len(batch.frames) - length_hint(frames) - 1)
                self._state, self._ahead = state, ahead
                self._unknown(frame, offset)
                state, ahead = self._state, self._ahead
                continue
            path, state, change, reports, _ = step
            ahead += change
            if path is not None:
                append(path)
            if reports:
                self._report(reports, position.of(len(batch.frames) - length_hint(frames) - 1))
        self._state, self._ahead = state, ahead
        self._framed += sum(map(len, batch.frames))

    def _unknown(self, frame: bytes, offset: int) -> None:
        """A frame without a remembered step."""
        if is_idle(frame):
            self._idle += len(frame)
            self._framed -= len(frame)
            return
        why = fault(frame)
        if why is not None:
            self._framed -= len(frame)
            self._lose(Lost(offset, len(frame), why))
            return
        try:
            message = parse(frame, self.options.src_bits)
        except Malformed as error:
            self._unused += len(frame)
            self._take(self._automaton.loss(self._state, self._ahead, EventKind.LOSS, str(error)), offset)
            return
        if self._is_used(message, offset):
            step = self._automaton.step(self._state, message, self._ahead)
            self._remember(frame, step)
            self._take(step, offset)
        else:
            self._unused += len(frame)

    def _is_used(self, message: Message, offset: int) -> bool:
        """Whether a message says something about this hart's flow, as far as it is known."""
        if self.options.src_id is not None and message.src != self.options.src_id:
            return False
        if message.layout is None or message.tcode == Tcode.OWNERSHIP:
            self._builder.event(EventKind.NOTE, offset, f"{message.name} ignored")
            return False
        return self._state.mode is not Mode.LOST or self._automaton.can_leave_lost(message)

    def _remember(self, frame: bytes, step: Step) -> None:
        self._memo_size += 1
        if self._memo_size > (self._memo_limit or MEMO_LIMIT):  # without memory, too, states must not pile up
            self._automaton.forget()
            self._memo_size = 1
        if self._memo_limit:
            self._state[(frame, self._ahead) if step.counted and self._ahead else frame] = step

    def _take(self, step: Step, offset: int) -> None:
        self._state = step.state
        self._ahead += step.ahead
        if step.path is not None:
            self._builder.append(step.path)
        self._report(step.reports, offset)

    def _lose(self, lost: Lost) -> None:
        """Bytes that are no message: whatever they were, the flow is lost. Silent at the start of a wrapped buffer."""
        self._unframed += lost.length
        if lost.why:
            text = f"{lost.length} bytes skipped: {lost.why}"
            self._take(self._automaton.loss(self._state, self._ahead, EventKind.LOSS, text), lost.offset)

    def _report(self, reports: Sequence[Report], offset: int) -> None:
        for report in reports:
            if report.lost:
                self._builder.gap(report.kind, offset, report.text)
                continue
            if report.elsewhere:
                self._builder.add_gap(report.text)
            if report.resumed is not None:
                self._builder.resume(report.resumed)
            self._builder.event(report.kind, offset, report.text, last_pc=report.last_pc, next_pc=report.next_pc)


class _Position:
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
