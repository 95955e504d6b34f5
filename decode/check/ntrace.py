"""The check of N-Trace: its messages against those that our encoder makes of the history.

An interval goes from a synchronizing message to the next one, that one included, or to ProgTraceCorrelation.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from rvtrace_gdb.decode.check.comparison import CheckedPart, ReportedMessage
from rvtrace_gdb.decode.check.intervals import IntervalChecker
from rvtrace_gdb.decode.check.ntrace_comparison import Build, Closing, ClosingKind, NtraceScheme, Opening
from rvtrace_gdb.decode.check.rows import CheckedRows, checking
from rvtrace_gdb.decode.check.verdict import IntervalDifference, Verdict
from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.history.builder import HistoryBuilder, HistoryPiece, IncrementalBuilder
from rvtrace_gdb.decode.history.events import LOSSES, EventKind, Trap, TrapKind
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.decode.ntrace import decoder as ntrace
from rvtrace_gdb.decode.ntrace import messages as layouts
from rvtrace_gdb.decode.ntrace.framing import is_idle
from rvtrace_gdb.decode.ntrace.hart import HartDecoder
from rvtrace_gdb.decode.ntrace.messages import LAYOUTS, UNREQUESTED, MalformedMessage, Sync, Tcode
from rvtrace_gdb.decode.ntrace.offsets import Offsets, ShiftedOffsets
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.ntrace.state import Mode, State
from rvtrace_gdb.decode.ntrace.step import SYNC_TCODES
from rvtrace_gdb.decode.ntrace.walk import Walkers
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.decode.stepping.reports import LostBytes
from rvtrace_gdb.support.errors import Progress, silent

_SYNCS = bytes(tcode << 2 for tcode in SYNC_TCODES)
_STOP, _OWNERSHIP = Tcode.PROG_TRACE_CORRELATION << 2, Tcode.OWNERSHIP << 2
_BREAKS = re.compile(b"[" + re.escape(_SYNCS + bytes((_STOP, _OWNERSHIP))) + b"]")
_FLOW = _SYNCS + bytes(
    tcode << 2 for tcode in (
        Tcode.DIRECT_BRANCH, Tcode.INDIRECT_BRANCH, Tcode.INDIRECT_BRANCH_HIST, Tcode.RESOURCE_FULL,
        Tcode.REPEAT_BRANCH, Tcode.PROG_TRACE_CORRELATION,
    )
)  # fmt: skip


class CheckedHart(HartDecoder):
    """A decoder of one hart that checks what it decodes.

    *wrapped*: the trace may begin anywhere; *tick*: see `CheckedRows`.
    """

    def __init__(
        self, program: Program, options: Options, walkers: Walkers, builder: HistoryBuilder, tick: Callable[[], None],
        *, wrapped: bool,
    ) -> None:  # fmt: skip
        assert isinstance(builder, IncrementalBuilder)
        super().__init__(program, options, walkers, builder=builder)
        self._program = program
        self._pieces = builder
        self._begun = wrapped  # whether the message that begins a trace has come, or need not come
        self._checker: IntervalChecker[Build] = IntervalChecker(NtraceScheme(options, program.xlen), tick)
        self._rows = CheckedRows(self._checker, builder, tick)

    def run(self, frames: list[bytes], offsets: Offsets) -> None:
        """Decode the next messages, and check them by parts that end at those that synchronize."""
        heads = bytes(frame[0] for frame in frames)
        if not self._begun:
            self._check_beginning(frames, offsets)
        done = 0
        for found in _BREAKS.finditer(heads):
            at = found.start()
            if at > done:
                self._run_part(frames[done:at], ShiftedOffsets(offsets, done), None)
            self._run_part(frames[at : at + 1], ShiftedOffsets(offsets, at), heads[at])
            done = at + 1
        if done < len(frames):
            self._run_part(frames[done:], ShiftedOffsets(offsets, done), None)

    def lose(self, lost: LostBytes) -> None:
        self._checker.drop(lost=True)
        super().lose(lost)

    def verdict(self, end: int) -> Verdict:
        """Return what was found; the trace has ended at byte *end*."""
        return self._rows.end(end, self._image(self._state))

    def _image(self, state: State) -> Image:
        return self._program.image_of(state.context)

    def _check_beginning(self, frames: list[bytes], offsets: Offsets) -> None:
        """Report a beginning that is missing: a trace begins with a message that says why tracing starts."""
        flow = [index for index, frame in enumerate(frames) if frame[0] in _FLOW]
        for index in flow:
            try:
                message = self._parse(frames[index])
            except MalformedMessage:
                continue
            if message.tcode == Tcode.PROG_TRACE_CORRELATION and not message.fields["icnt"]:
                continue  # tracing is off, and the hart halts
            self._begun = True
            if message.fields.get("sync", Sync.PERIODIC) in UNREQUESTED:
                syncs = [i for i in flow if i > index and frames[i][0] in _SYNCS]
                start, end = offsets.offset_of(index), offsets.offset_of(syncs[0] if syncs else flow[-1])
                self._checker.missed(IntervalDifference(start, "ProgTraceSync", message.name), end)
            return

    def _run_part(self, frames: list[bytes], offsets: Offsets, head: int | None) -> None:
        """Decode messages without a synchronization, or one message, which begins with *head*."""
        before = self._state
        image = self._image(before)
        super().run(frames, offsets)
        events, piece = self._pieces.fresh(), self._pieces.take()
        lost = self._stopped or self._state.mode is Mode.LOST
        if lost or any(event.kind in LOSSES for event in events):
            self._checker.drop(lost=True)
        if lost:
            return
        messages = self._messages(frames, offsets)
        if head is None:
            self._add_rows(piece, events, messages, image, len(frames))
        elif head == _OWNERSHIP:
            self._checker.part(CheckedPart((), (), 1))
        elif head == _STOP:
            self._end_interval(piece, messages[0], image, before)
        else:
            self._synchronized(piece, events, messages[0], image, before)

    def _messages(self, frames: Sequence[bytes], offsets: Offsets) -> list[ReportedMessage]:
        """Return the messages about the flow, without TSTAMP."""
        bodies: Iterable[bytes] = frames
        if self._options.timestamps:
            bodies = [body for body, _ in self._clock.split(frames)]
        return [
            ReportedMessage(body, offsets.offset_of(index))
            for index, body in enumerate(bodies)
            if not is_idle(body) and body[0] >> 2 in LAYOUTS
        ]

    def _add_rows(
        self, piece: HistoryPiece, events: Sequence[Event], messages: list[ReportedMessage], image: Image, frames: int
    ) -> None:
        """Add rows and messages to the open interval."""
        begin = piece.begin
        if len(messages) < frames and self._checker.is_open:
            self._checker.part(CheckedPart((), (), frames - len(messages)))
        for event in events:
            if event.kind is EventKind.TRAP:
                self._rows.add(piece.history, begin, event.position, image)
                self._rows.flush(image, event.last_pc)
                begin = max(begin, event.position)
                trap = _event_trap(event)
                if trap is None:
                    self._checker.drop(lost=False)
                    return
                self._checker.part(CheckedPart((trap,), ()))
        self._rows.add(piece.history, begin, piece.end, image, messages)

    def _synchronized(
        self, piece: HistoryPiece, events: Sequence[Event], message: ReportedMessage, image: Image, before: State
    ) -> None:
        """End the open interval at a synchronizing message, and begin the next one."""
        code = self._parse(message.raw).fields["sync"]
        if code in self._options.dialect.keeps_state:
            self._checker.drop(lost=False)
            return
        hit = next((event for event in events if event.kind is EventKind.TRAP), None)
        trap = None if hit is None else _event_trap(hit)
        pc = self._state.pc
        self._rows.add(piece.history, piece.begin, piece.end, image)
        self._rows.flush(image, pc if trap is None else trap.epc)
        block = self._rows.first(pc, self._image(self._state))
        if before.mode is not Mode.ON or (hit is not None and trap is None) or block is None:
            self._checker.drop(lost=False)
        if self._checker.is_open:
            closing = Closing(ClosingKind.SYNCHRONIZED, message, code, block, trap)
            self._checker.close(closing, message.offset, piece.end)
        self._rows.begin()
        self._checker.open(Opening(code), message.offset, piece.end)

    def _end_interval(self, piece: HistoryPiece, message: ReportedMessage, image: Image, before: State) -> None:
        """End the open interval at ProgTraceCorrelation."""
        self._rows.add(piece.history, piece.begin, piece.end, image)
        self._rows.flush(image, before.pc if piece.begin == piece.end else None)
        if before.mode is Mode.ON:
            code = self._parse(message.raw).fields["evcode"]
            closing = Closing(ClosingKind.STOPPED, message, code, next_pc=before.pc)
            self._checker.close(closing, message.offset, piece.end)
        self._checker.drop(lost=False)

    def _parse(self, raw: bytes) -> layouts.Message:
        return self._options.message(raw)


def _event_trap(event: Event) -> IngressTrap | None:
    """Return the trap of an event, None if it is not known where it hit."""
    if event.last_pc is None or not isinstance(event.fact, Trap):
        return None
    return IngressTrap(
        event.last_pc, event.fact.kind is TrapKind.INTERRUPT, cause=0, tval=0, handler=event.next_pc or 0
    )


class StreamChecker(ntrace.StreamDecoder):
    """Decodes the traces of several harts and checks them. Arguments as for `StreamDecoder`."""

    def __init__(
        self, program: Program, options: Options, progress: Progress = silent, *, wrapped: bool = False,
        total: int | None = None, split: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            program, options, checking(progress), wrapped=wrapped, total=total, split=split,
            builders=lambda source: IncrementalBuilder(), compiled=False,
        )  # fmt: skip
        self._wrapped = wrapped

    def _new_hart(self, program: Program, builder: HistoryBuilder) -> CheckedHart:
        return CheckedHart(program, self._options, self._walkers, builder, self._tick, wrapped=self._wrapped)

    def _tick(self) -> None:
        self._progress("", self._fed, self._expected)

    def verdicts(self) -> dict[int, Verdict]:
        """End the trace and return what was found, by source."""
        self.finish()
        harts = {source: hart for source, hart in self._harts.items() if isinstance(hart, CheckedHart)}
        return {source: harts[source].verdict(self._fed) for source in sorted(harts)}
