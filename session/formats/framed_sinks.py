"""Sinks that hold CoreSight frames: for each ATB ID in them a sink of its own, with the bytes that its encoders sent.

Everybody who decodes, checks or lists a trace gets these instead. So the byte offsets of messages, events and gaps are
those in the bytes of an ATB ID; `AtbStream.offset_in_frames` says where in the sink that is.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rvtrace_gdb.decode.coresight.deformatter import FrameAccounting
from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace
from rvtrace_gdb.decode.coresight.frames import FLUSH_ID, TRIGGER_ID, USABLE_IDS, FrameForm, NoId
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.session.capture.model import Captured, CapturedSink, TraceBreak, is_framed
from rvtrace_gdb.session.formats.sinks import HartHistories
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import counted, printable, warning


@dataclass(frozen=True)
class AtbStream(CapturedSink):
    """What the encoders with one ATB ID sent into a sink."""

    atb_id: int = 0
    trace: DemultiplexedTrace | None = field(default=None, compare=False, repr=False)

    def offset_in_frames(self, offset: int) -> int:
        """Return where in the sink a byte is."""
        return offset if self.trace is None else self.trace.offset_of(self.atb_id, offset)


MISSING = "frames are missing before it, or damaged"


def stream_name(sink: str, atb_id: int) -> str:
    """Return the name of the bytes of an ATB ID in a sink."""
    return f"{sink}, ATB ID {atb_id:#04x}"


class FramedSinks:
    """Takes sinks apart that hold frames; what has been taken apart is kept for when a sink holds more."""

    def __init__(self) -> None:
        self._traces: dict[int, DemultiplexedTrace] = {}  # by the number of the sink
        self._made: tuple[Sequence[Captured], tuple[Captured, ...]] = ((), ())

    def streams(self, captured: Sequence[Captured], progress: Progress = silent) -> tuple[Captured, ...]:
        """Return what is decoded: all of *captured*, but streams instead of frames. Raises what *progress* raises."""
        before, made = self._made
        if len(before) != len(captured) or any(a is not b for a, b in zip(before, captured, strict=True)):
            found: list[Captured] = []
            for number, it in enumerate(captured):
                found += self._of_sink(number, it, progress) if is_framed(it) else [it]
            made = tuple(found)
            self._made = captured, made
        return made

    def _of_sink(self, number: int, sink: Captured, progress: Progress) -> Iterator[AtbStream]:
        assert isinstance(sink, CapturedSink) and sink.frames is not None
        known = self._traces.get(number)
        if known is None or known.form is not sink.frames or not sink.data.startswith(known.frames):
            known = self._traces[number] = DemultiplexedTrace(sink.frames)
        known.grow(sink.data, progress)
        for atb_id in sorted(set(sink.atb_ids.values())):
            offsets = known.breaks(atb_id)
            own = [name for name in sink.encoders if sink.atb_ids.get(name) == atb_id]
            yield AtbStream(
                replace(sink.in_force, name=stream_name(sink.in_force.name, atb_id)),
                known.stream(atb_id),
                sink.wrapped or 0 in offsets,
                sink.missing,
                tuple(own),
                tuple(name for name in sink.lost if name in own),
                atb_id=atb_id,
                breaks=tuple(TraceBreak(offset, MISSING) for offset in offsets if offset),
                marks=tuple(one._replace(offset=known.index_at(atb_id, one.offset)) for one in sink.marks),
                trace=known,
            )

    def completed(self, histories: HartHistories) -> HartHistories:
        """Return what was decoded of the streams, with what became of the other bytes of the frames."""
        if not self._traces:
            return histories
        total, decoded, idle, skipped = histories.accounting
        for sink, trace in self._framed():
            known = trace.accounting
            others = known.total - sum(known.sources.get(atb_id, 0) for atb_id in set(sink.atb_ids.values()))
            total, idle, skipped = total + others, idle + known.idle, skipped + others - known.idle
        accounting = Accounting(total, decoded, idle, skipped)
        return replace(histories, accounting=accounting, notes=(*histories.notes, *self.remarks()))

    def remarks(self) -> list[str]:
        """Return lines for the user on what is in the frames besides the known encoders' trace."""
        return [
            printable(line)
            for sink, trace in self._framed()
            for line in remarks_of(
                trace.form, trace.accounting, trace.firsts, sink.in_force.name, sink.atb_ids.values()
            )
        ]

    def _framed(self) -> Iterator[tuple[CapturedSink, DemultiplexedTrace]]:
        for number, it in enumerate(self._made[0]):
            if isinstance(it, CapturedSink) and it.frames is not None:
                yield it, self._traces[number]


def remarks_of(
    form: FrameForm, accounting: FrameAccounting, firsts: Mapping[int, int], name: str, atb_ids: Collection[int]
) -> Iterator[str]:
    """Yield lines on what is in frames of *form* besides the trace of *atb_ids*. *firsts*: where what has no source
    begins, by ID or `NoId`. *name*: of the buffer or the stream.
    """
    strangers = {atb_id: size for atb_id, size in accounting.sources.items() if atb_id not in atb_ids}
    if strangers:
        what = f"{counted(sum(strangers.values()), 'byte')} of ATB ID {_ids(strangers)}"
        yield warning(f"{what} are in the frames, too, which no known encoder has")
    yield from _damage(form, accounting, firsts)
    if TRIGGER_ID in firsts:
        number = counted(accounting.of_ids[TRIGGER_ID], "trigger")
        yield f"note: {number} in the frames, the first at byte {firsts[TRIGGER_ID]:#x} of {name}"


_MEANINGS = {
    NoId.UNKNOWN: "of an unknown ATB ID: the frames with it were overwritten, or are missing",
    NoId.UNSYNCHRONIZED: "without synchronization (FSYNC)",
    NoId.DAMAGED: "of frames that are damaged",
    NoId.INCOMPLETE: "of a frame that is not complete",
}


_MEANT = (FLUSH_ID, TRIGGER_ID)


def _damage(form: FrameForm, accounting: FrameAccounting, firsts: Mapping[int, int]) -> Iterator[str]:
    """Yield a line for each sort of bytes of which nobody knows the source."""
    if form is FrameForm.PINS and accounting.total and not accounting.others.get(NoId.SYNC):
        size = counted(accounting.total, "byte")
        yield warning(f"no FSYNC (ff ff ff 7f) in {size}: are these frames from pins (tpiu)?")
        return
    for cause, meaning in _MEANINGS.items():
        if count := accounting.others.get(cause, 0):
            first = f"the first at byte {firsts[cause]:#x} of the frames"
            yield warning(f"{counted(count, 'byte')} {meaning}, {first}")
    reserved = {it: size for it, size in accounting.of_ids.items() if it > USABLE_IDS[-1] and it not in _MEANT}
    if reserved:
        what = counted(sum(reserved.values()), "byte")
        yield warning(f"{what} of ATB ID {_ids(reserved)}, which no trace source has: are these CoreSight frames?")


def _ids(sizes: dict[int, int]) -> str:
    return ", ".join(f"{atb_id:#04x}" for atb_id in sorted(sizes))
