"""The contents of sinks: the histories of the harts whose encoders feed them."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.capture.model import Captured, CapturedEncoder, CapturedRecords, CapturedSink
from rvtrace_gdb.session.errors import NoTrace, Unsupported
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.format import Decoding, PiecewiseDecoding, TraceOptions
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import counted, printable, warning

_PIECE = 1 << 14  # bytes checked at once: what they show is in memory

LEAST_INDEXED = 1 << 20
"""How many bytes a trace has at least that gets an index: shorter ones are decoded in no time."""

if TYPE_CHECKING:
    from rvtrace_gdb.decode.check.verdict import Verdict
    from rvtrace_gdb.session.formats.long_traces.indexed_history import IndexedTrace
    from rvtrace_gdb.session.formats.long_traces.trace_index import TraceIndex


class GrowingHistories(NamedTuple):
    """What has been decoded so far, by hart: no later byte of the trace changes it. *settled*: the position of each
    history from which on events may change, or come. *harts*: all that the result will have. *timed*: whether histories
    may have times.
    """

    histories: dict[int, History]
    settled: dict[int, int]
    harts: frozenset[int]
    timed: bool


@dataclass(frozen=True)
class HartHistories:
    """The histories by hart, and what was lost of the sinks' bytes. *notes*: notes for the user; no hart is missing.

    *sinks*: the number of the sink, counted from 0, from which a hart's history comes; 0 for harts that are not in it.
    """

    histories: dict[int, History]
    accounting: Accounting
    notes: tuple[str, ...] = ()
    sinks: Mapping[int, int] = field(default_factory=dict)

    def number(self, hart: int | None, likely: int | None = None) -> int:
        """Return the hart to show: *hart*, else *likely* if it is here, else the first. Raises `NoTrace`."""
        if hart is None:
            return likely if likely is not None and likely in self.histories else min(self.histories)
        if hart not in self.histories:
            there = harts_text(sorted(self.histories))
            raise NoTrace(f"hart {hart} is not in this trace, which has {there}")
        return hart

    def of_thread(self, hart: int | None, wanted: int | None) -> int:
        """Return the hart in whose past a debugger's thread goes back: its own, if it was traced; else as `number`.

        Raises `NoTrace`.
        """
        return hart if hart is not None and hart in self.histories else self.number(wanted, hart)


def feeding(sink: CapturedSink, encoders: tuple[CapturedEncoder, ...]) -> list[CapturedEncoder]:
    """Return the encoders that feed *sink*. Raises `NoTrace` when none is known."""
    found = [encoder for encoder in encoders if encoder.in_force.name in sink.encoders]
    if not found:
        raise NoTrace(printable(f"no encoder is known that feeds {sink.in_force.name}"))
    return found


def options_of_sink(sink: Captured, encoders: tuple[CapturedEncoder, ...]) -> TraceOptions:
    """Return the decoder's options for a sink. Raises as `feeding` and `options_of`."""
    return options_of(feeding(sink, encoders)) if isinstance(sink, CapturedSink) else sink.in_force


def options_of(encoders: list[CapturedEncoder]) -> TraceOptions:
    """Return the decoder's options for *encoders* that share a sink. Raises `Unsupported`."""
    all_options = registry.with_one_period([registry.options_of_encoder(encoder) for encoder in encoders])
    for encoder, options in zip(encoders, all_options, strict=True):
        if options != all_options[0]:
            names = f"{encoders[0].in_force.name} and {encoder.in_force.name}"
            raise Unsupported(printable(f"{names} feed one sink, but with different settings: this cannot be decoded"))
    return all_options[0]


class SinkDecoding:
    """The decoding of the sinks of a capture. What was done when it was interrupted is kept, and not done again.

    *stop_at_error*: nothing after the first loss of a sink is decoded. *grows*: the sinks may have more bytes later.
    *lazily*: of a trace that has an index only what is looked at is decoded, see `indexed_history`; *index*: that of
    the only sink, if somebody has it.
    """

    def __init__(
        self,
        sinks: Sequence[Captured],
        encoders: tuple[CapturedEncoder, ...],
        program: Program,
        *,
        stop_at_error: bool = False,
        grows: bool = False,
        lazily: bool = False,
        index: "TraceIndex | None" = None,
    ) -> None:
        self._sinks, self._encoders, self._program = sinks, encoders, program
        self._stop_at_error, self._grows, self._lazily = stop_at_error, grows, lazily
        self._index = index
        self._indexed: dict[int, IndexedTrace] = {}  # by the index of the sink
        self._begun: dict[int, Decoding] = {}  # by the index of the sink

    def grow(self, sinks: Sequence[Captured]) -> None:
        """Decode *sinks* from now on: what follows the bytes so far is decoded alone, if nothing else has changed."""
        before, self._sinks = self._sinks, sinks
        for index, begun in list(self._begun.items()):
            now = sinks[index] if index < len(sinks) else None
            if not _grown(begun, before[index], now):
                del self._begun[index]

    def result(self, progress: Progress = silent) -> HartHistories:
        """Return the histories of all harts whose encoders feed the sinks; a hart without trace has an empty one, and a
        hart that is in several sinks the longest one.

        Raises `Unsupported`, `NoTrace`, and what *progress* raises.
        """
        histories: dict[int, History] = {}
        places: dict[int, int] = {}
        several: set[int] = set()
        notes: list[str] = []
        account = Accounting(0, 0, 0, 0)
        self.use_progress(progress)
        for index in range(len(self._sinks)):
            found = self._harts_of(index, progress)
            account = Accounting(*map(sum, zip(account, found.accounting, strict=True)))
            notes += found.notes
            for hart, history in found.histories.items():
                if hart in histories:
                    several.add(hart)
                if hart not in histories or history.instructions > histories[hart].instructions:
                    histories[hart], places[hart] = history, index
        if several:
            whose = harts_text(sorted(several))
            notes.append(f"note: the trace of {whose} is in several sinks: of each hart the longest history is shown")
        return HartHistories(dict(sorted(histories.items())), account, tuple(notes), places)

    def views(self) -> GrowingHistories | None:
        """Return what has been decoded so far; None where more of the trace may replace it."""
        histories: dict[int, History] = {}
        settled: dict[int, int] = {}
        harts: list[int] = []
        timed = False
        for index, sink in enumerate(self._sinks):
            begun = self._begun.get(index)
            if not isinstance(sink, CapturedSink) or not isinstance(begun, PiecewiseDecoding | None):
                return None
            fed = feeding(sink, self._encoders)
            trace_options = options_of(fed)
            trace_format = registry.format_of(trace_options)
            timed = timed or trace_format.has_times(trace_options)
            own = sources(fed, has_sources=trace_format.has_sources(trace_options))
            harts += [it.hart for it in own]
            if begun is not None:
                settled |= {it.hart: begun.settled(it.source) for it in own}
                found = begun.views()
                histories |= {it.hart: found[it.source] for it in own if it.source in found}
        if len(set(harts)) < len(harts) or self._indexed:
            return None
        return GrowingHistories(dict(sorted(histories.items())), settled, frozenset(harts), timed)

    def _harts_of(self, index: int, progress: Progress) -> HartHistories:
        """Return the histories of one sink."""
        sink = self._sinks[index]
        if not isinstance(sink, CapturedSink):
            streams = self._streams(index, sink.in_force, progress)
            return HartHistories({sink.hart: streams.histories[0]}, streams.accounting)
        fed = feeding(sink, self._encoders)
        trace_options = options_of(fed)
        found = self._streams(index, trace_options, progress)
        by_source = dict(found.histories)
        sizes = {source: history.instructions for source, history in by_source.items()}
        has_sources = registry.format_of(trace_options).has_sources(trace_options)
        histories = {
            it.hart: by_source.pop(it.source) if it.source in by_source else _nothing()
            for it in sources(fed, has_sources=has_sources, sizes=sizes)
        }
        notes = _notes(fed, by_source, has_sources=has_sources)
        return HartHistories(histories, found.accounting, tuple(notes))

    def _streams(self, index: int, trace_options: TraceOptions, progress: Progress) -> SourceHistories:
        """Return what is decoded of one sink. A decoding that has begun goes on."""
        sink = self._sinks[index]
        if index not in self._begun:
            wrapped = not isinstance(sink, CapturedRecords) and sink.wrapped
            begun = registry.format_of(trace_options).decoding(
                sink.data, self._program, trace_options, wrapped=wrapped, stop_at_error=self._stop_at_error
            )
            if isinstance(begun, PiecewiseDecoding):
                begun.grows = self._grows and not wrapped
                begun.seams = sink.seams if isinstance(sink, CapturedSink) else ()
            if isinstance(begun, PiecewiseDecoding) and not begun.seams:
                self._use_index(index, begun, sink.data, f"{trace_options!r} {wrapped} {self._stop_at_error}")
            self._begun[index] = begun
        if index in self._indexed:
            return self._indexed[index].histories()
        return self._begun[index].result(progress)

    def _use_index(self, number: int, begun: PiecewiseDecoding, data: bytes, options: str) -> None:
        """Let a long trace have an index, or use the one that it has."""
        if self._index is not None:
            from rvtrace_gdb.session.formats.long_traces.indexed_history import IndexedTrace

            self._indexed[number] = IndexedTrace(data, self._index, begun.make, begun.result)
            return
        if self._grows or len(data) < LEAST_INDEXED or not isinstance(self._program, ContextImages):
            return
        parts = self._program.code_parts()
        if parts is None:
            return
        from rvtrace_gdb.session.formats.long_traces import trace_index  # few traces are so long
        from rvtrace_gdb.session.formats.long_traces.indexed_history import IndexedTrace

        key = trace_index.index_key(data, parts, options)
        known = trace_index.read_index(key) if self._lazily else None
        if known is None:
            begun.recorder = trace_index.IndexRecorder(key, len(data))
        else:
            self._indexed[number] = IndexedTrace(data, known, begun.make, begun.result)

    @property
    def is_indexed(self) -> bool:
        """Whether more may be decoded when it is looked at."""
        return bool(self._indexed)

    def use_progress(self, progress: Progress) -> None:
        """Have *progress* show what is decoded later."""
        for trace in self._indexed.values():
            trace.progress = progress


def _grown(decoding: Decoding, before: Captured, now: Captured | None) -> bool:
    """Let the decoding of a sink go on as that of what is in the sink *now*; return False if it cannot."""
    if not isinstance(before, CapturedSink) or not isinstance(now, CapturedSink) or now.wrapped:
        return now == before
    if (before.in_force, before.encoders) != (now.in_force, now.encoders):
        return False
    known, seams = before.seams, now.seams
    if seams[: len(known)] != known or any(it.offset < len(before.data) for it in seams[len(known) :]):
        return False
    if isinstance(decoding, PiecewiseDecoding):
        decoding.seams = seams
    return now.data == before.data or (isinstance(decoding, PiecewiseDecoding) and decoding.grow(now.data))


def decode(
    sinks: Sequence[Captured], encoders: tuple[CapturedEncoder, ...], program: Program, progress: Progress = silent
) -> HartHistories:
    """Return the histories of the harts whose encoders feed *sinks*. Raises as `SinkDecoding.result`."""
    return SinkDecoding(sinks, encoders, program).result(progress)


def check(
    sink: Captured, encoders: tuple[CapturedEncoder, ...], program: Program, progress: Progress = silent
) -> "dict[int, Verdict]":
    """Return what a check of the trace in *sink* finds out, by hart. Raises as `decode`."""
    fed = feeding(sink, encoders) if isinstance(sink, CapturedSink) else []
    trace_options = options_of(fed) if fed else options_of_sink(sink, encoders)
    if isinstance(sink, CapturedSink) and sink.breaks:
        raise Unsupported(f"{printable(sink.in_force.name)}: parts of its trace are missing, so it cannot be checked")
    if isinstance(sink, CapturedSink) and sink.marks:
        raise Unsupported(
            f"{printable(sink.in_force.name)}: what ran is known from an operating system's records, too, so it cannot"
            " be checked"
        )
    wrapped = isinstance(sink, CapturedSink) and sink.wrapped
    checker = registry.format_of(trace_options).checker(
        program, trace_options, progress, wrapped=wrapped, total=len(sink.data)
    )
    for at in range(0, len(sink.data), _PIECE):
        progress("checking", at, len(sink.data))
        checker.feed(sink.data[at : at + _PIECE])
    found = checker.verdicts()
    sizes = {source: verdict.matched for source, verdict in found.items()}
    harts = dict(sources(fed, has_sources=registry.format_of(trace_options).has_sources(trace_options), sizes=sizes))
    return {harts[source]: verdict for source, verdict in found.items() if source in harts}


class HartSource(NamedTuple):
    """The source that messages of a hart's encoder have, 0 if they have none."""

    source: int
    hart: int


def sources(
    fed: list[CapturedEncoder], *, has_sources: bool, sizes: Mapping[int, int] | None = None
) -> list[HartSource]:
    """Return the sources of the encoders that feed a sink. *has_sources*: messages contain the source.

    *sizes*: how much each source sent, None before decoding. A single encoder may send another source than its
    registers say; a user's option (no base) is taken literally.
    """
    if not has_sources:
        return [HartSource(0, fed[0].hart)]
    own = [HartSource(source_of_encoder(encoder), encoder.hart) for encoder in fed]
    if sizes and len(own) == 1 and fed[0].in_force.base and own[0].source not in sizes:
        return [HartSource(max(sizes, key=lambda source: sizes[source]), fed[0].hart)]
    return own


def source_of_encoder(encoder: CapturedEncoder) -> int:
    """Return the source that an encoder sends: as much of trTeSrcID as fits, unless it is known better."""
    known = encoder.unregistered.etrace.get("src_id")
    if isinstance(known, int):
        return known
    return encoder.in_force.src_id & (1 << encoder.in_force.src_bits) - 1


def _nothing() -> History:
    return History([], array("Q"), 0, (), (), Accounting(0, 0, 0, 0))


def _notes(fed: list[CapturedEncoder], strangers: dict[int, History], *, has_sources: bool) -> list[str]:
    lines = []
    if not has_sources and len(fed) > 1:
        names = ", ".join(encoder.in_force.name for encoder in fed)
        lines.append(warning(f"{names} feed one sink, without SRC in their messages: their harts cannot be told apart"))
    unknown = {src: history.instructions for src, history in strangers.items() if history.instructions}
    if unknown:
        what = f"{counted(sum(unknown.values()), 'instruction')} of SRC {', '.join(map(str, sorted(unknown)))}"
        lines.append(warning(f"{what} are also in the trace, but no known encoder has it"))
    return [printable(line) for line in lines]
