"""The comparison of N-Trace messages, and the choices that an encoder has.

What the history does not determine is not compared: the reason of a synchronization, which sort of trap it was, times.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from sys import maxsize
from typing import Any, NamedTuple

from rvtrace_gdb.decode.check.comparison import CheckedPart, Interval, IntervalComparison, ReportedMessage
from rvtrace_gdb.decode.check.intervals import PERIODS
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.ntrace import messages as layouts
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import MalformedMessage, Rcode, Sync, Tcode
from rvtrace_gdb.decode.ntrace.options import (
    MIN_HIST_LIMIT,
    EncoderOptions,
    ImplicitReturn,
    InstSyncMode,
    Options,
    SyncPlacement,
)

_FULL = Tcode.RESOURCE_FULL << 2
_REASONS = {int(sync): sync for sync in Sync}


class Opening(NamedTuple):
    """What begins an interval: the SYNC of its message."""

    sync: int


class ClosingKind(Enum):
    """How an interval ends."""

    SYNCHRONIZED = "synchronized"
    STOPPED = "stopped"


class Continuation(Enum):
    """Where execution would continue after the last instruction: unknown, reported, at the next one, at its target."""

    UNKNOWN = "unknown"
    TOLD = "told"
    FALL = "fall"
    TARGET = "target"


class Closing(NamedTuple):
    """What ends an interval: its last *message*, with its SYNC or EVCODE as *code*.

    block    the instruction at the address of a synchronization
    trap     the trap that it reports
    next_pc  where tracing stops, if a message before has reported it
    outcome  see `Continuation`
    late     whether the encoder was asked to synchronize only after it had reported the last branch
    """

    kind: ClosingKind
    message: ReportedMessage
    code: int
    block: Block | None = None
    trap: IngressTrap | None = None
    next_pc: int | None = None
    outcome: Continuation = Continuation.UNKNOWN
    late: bool = False


class Build(NamedTuple):
    """How an encoder is built.

    period  the messages after which it synchronizes, 0: not compared
    summed  whether of I-CNT only the sum up to the next message with another field is compared, because the encoder
            retires several instructions at once and reports a full I-CNT after any of them
    proven  the options that messages of the trace prove to be on
    """

    options: EncoderOptions
    period: int = 0
    summed: bool = False
    proven: frozenset[str] = frozenset()


class Follower(Encoder):
    """An encoder that synchronizes where it is told."""

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None], period: int) -> None:
        super().__init__(options, emit)
        self._out._period = period or maxsize

    def count_foreign(self, messages: int) -> None:
        """Count messages that another part of the encoder has sent."""
        self._out.messages += messages

    def forget_period(self) -> None:
        """Do not synchronize after a number of messages any more."""
        self._out._period = maxsize
        if self._requests.due is Sync.PERIODIC:
            self._requests.due = None

    def end(self, closing: Closing) -> None:
        """Stop tracing."""
        last = self._pending.block
        pcs = {Continuation.TOLD: closing.next_pc, Continuation.FALL: last.fall, Continuation.TARGET: last.taken_target}
        self.stop(closing.code, pcs.get(closing.outcome))


class NtraceComparison(IntervalComparison):
    """The comparison of one interval."""

    def __init__(self, options: Options, build: Build, opening: Opening) -> None:
        super().__init__()
        self._options, self._timed, self._summed = options, bool(build.period), build.summed
        self._made_sum, self._sent_sum = _Sum(self._parsed), _Sum(self._parsed)
        self._messages: list[bytes] = []
        self._encoder = Follower(build.options, self._messages.append, build.period)
        self._encoder.start(Sync.TRACE_ENABLE)
        self._at_start, self._foreign = True, False
        self._unproven = False  # whether a message repeats, of an encoder that is not known to do that

    def encode(self, part: CheckedPart) -> None:
        items = [item for item in part.items if isinstance(item, Block | IngressTrap)]
        if part.foreign and self._at_start:
            self._encoder.count_foreign(part.foreign)
        elif part.foreign:
            self._foreign = True
            self._timed = False
            self._encoder.forget_period()
        if items:
            self._retire(items)

    def _retire(self, items: Sequence[Block | IngressTrap]) -> None:
        if self._at_start:
            counted = self._encoder._out.messages
            self._encoder.retire(items[:1])
            self._encoder.count_foreign(counted)
            del self._messages[:1]  # the synchronization itself
            items = items[1:]
            self._at_start = False
        self._encoder.retire(items)
        self._take_messages()

    def _take_messages(self) -> None:
        for raw in self._messages:
            summed = self._made_sum.sum_of(raw) if self._summed else raw
            if summed:
                self._made.append(summed)
        self._messages.clear()

    def receive(self, messages: Iterable[ReportedMessage]) -> None:
        messages = list(messages)
        self._unproven = self._unproven or any(self._repeats_unproven(message.raw) for message in messages)
        if not self._summed:
            super().receive(messages)
            return
        for message in messages:
            summed = self._sent_sum.sum_of(message.raw)
            if summed:
                self._sent.append(message._replace(raw=summed))

    def close(self, closing: Closing) -> bool:
        self.receive([closing.message])
        if closing.kind is ClosingKind.STOPPED:
            if not self._at_start:
                self._encoder.end(closing)
                self._take_messages()
                return True
            return False
        by_itself = closing.code == Sync.SEQUENTIAL_INSTRUCTION_COUNTER
        if closing.late and closing.block is not None:
            self._encoder.retire([], closing.trap.epc if closing.trap is not None else closing.block.pc)
            self._take_messages()
        if not by_itself and not self.is_timed(closing):
            self._encoder.mark(_REASONS.get(closing.code, Sync.PERIODIC))
        last = closing.trap or closing.block
        if last is not None:
            self._retire([last])
        return last is not None

    @property
    def is_uncertain(self) -> bool:
        """Whether repetitions are counted in a way that does not show: another message ends the count."""
        options = self._encoder.options
        return self._unproven or (self._foreign and (options.repeated_history or options.repeat_branch))

    def _repeats_unproven(self, raw: bytes) -> bool:
        """Whether a message counts repetitions although the encoder is not known to do that."""
        options = self._encoder.options
        if raw[0] >> 2 == Tcode.REPEAT_BRANCH:
            return not options.repeat_branch
        if raw[0] != _FULL or options.repeated_history:
            return False
        with suppress(MalformedMessage):
            return self._parsed(raw).fields["rcode"] not in (Rcode.ICNT, Rcode.HIST)
        return False

    def is_timed(self, closing: Closing | None) -> bool:
        return (
            self._timed
            and closing is not None
            and closing.code == Sync.PERIODIC
            and closing.kind is ClosingKind.SYNCHRONIZED
        )

    def mistimed(self, closing: Closing) -> bool:
        return False  # its message is missing then

    def is_same(self, encoded: bytes, sent: bytes) -> bool:
        try:
            ours, theirs = self._parse_waiting(encoded), self._parse_waiting(sent)
        except MalformedMessage:
            return False
        return ours.tcode == theirs.tcode and self._determined(ours) == self._determined(theirs)

    def may_be_exchanged(self, encoded: bytes, sent: bytes) -> bool:
        """HIST and I-CNT that are full in the same moment: two ResourceFull, in any order."""
        return self._head(encoded) == self._head(sent) == _FULL

    def runs_ahead(self, raw: bytes) -> bool:
        return self._head(raw) == _FULL

    def _head(self, raw: bytes) -> int:
        return raw[_SUM_BYTES if self._summed else 0]

    def _parsed(self, raw: bytes) -> layouts.Message:
        return self._options.message(raw)

    def _parse_waiting(self, raw: bytes) -> layouts.Message:
        """Return a message that waits to be compared."""
        if not self._summed:
            return self._parsed(raw)
        message = self._parsed(raw[_SUM_BYTES:])
        carried = int.from_bytes(raw[:_SUM_BYTES], "little")
        return message._replace(fields={**message.fields, "icnt": message.fields.get("icnt", 0) + carried})

    def _determined(self, message: layouts.Message) -> dict[str, int]:
        fields = dict(message.fields)
        fields.pop("sync", None)
        if "b_type" in fields:
            fields["b_type"] = int(fields["b_type"] > 0)
        return fields

    def name_of(self, raw: bytes) -> str:
        try:
            return self._parse_waiting(raw).name
        except MalformedMessage:
            return "no message"

    def name(self, closing: Closing) -> str:
        return self.name_of(closing.message.raw)


_SUM_BYTES = 8


class _Sum:
    """Takes the counts of ResourceFull out of a row of messages and puts each before the next message with I-CNT."""

    def __init__(self, parsed: Callable[[bytes], layouts.Message]) -> None:
        self._parsed = parsed
        self._count = 0

    def sum_of(self, raw: bytes) -> bytes:
        """Return the sum before *raw*, and *raw*; b"" for a message that only counts."""
        carried = 0
        try:
            fields = self._parsed(raw).fields
        except MalformedMessage:
            fields = {}
        if raw[0] == _FULL and fields.get("rcode") == Rcode.ICNT:
            self._count += fields["rdata"]
            return b""
        if "icnt" in fields:
            carried, self._count = self._count, 0
        return carried.to_bytes(_SUM_BYTES, "little") + raw


class NtraceScheme:
    """See `Scheme`."""

    evidence = 512
    exact = False

    def __init__(self, options: Options, xlen: int) -> None:
        self._options, self._xlen = options, xlen

    def comparison(self, build: Build, opening: Opening) -> IntervalComparison:
        return NtraceComparison(self._options, build, opening)

    def base(self, intervals: Sequence[Interval]) -> Build:
        told = self._options
        dialect = told.dialect
        if told.address_bits is not None:
            dialect = replace(dialect, address_bits=told.address_bits)
        options = replace(
            EncoderOptions.of_features(told), src_id=self._source(intervals), dialect=dialect, xlen=self._xlen
        )
        seen = self._seen(intervals)
        return Build(replace(options, **seen), proven=frozenset(_REPEATS & seen.keys()))

    def _messages(self, intervals: Sequence[Interval]) -> Iterator[layouts.Message]:
        for interval in intervals:
            for part in interval.parts or ():
                for message in part.messages:
                    with suppress(MalformedMessage):
                        yield self._options.message(message.raw)

    def _source(self, intervals: Sequence[Interval]) -> int:
        return next((message.src for message in self._messages(intervals)), 0)

    def _seen(self, intervals: Sequence[Interval]) -> dict[str, Any]:
        """Return what the messages show of the encoder's registers."""
        found: dict[str, Any] = {}
        hists, icnts = [0], list[int]()
        for message in self._messages(intervals):
            fields = message.fields
            if message.tcode == Tcode.REPEAT_BRANCH:
                found["repeat_branch"] = True
            if message.tcode != Tcode.RESOURCE_FULL:
                continue
            if fields["rcode"] == Rcode.ICNT:
                icnts.append(fields["rdata"])
            elif fields["rcode"] in (Rcode.HIST, Rcode.REPEATED_HIST):
                hists.append(fields["rdata"].bit_length())
                if fields["rcode"] == Rcode.REPEATED_HIST:
                    found["repeated_history"] = True
            elif fields["rcode"] in self._options.dialect.run_rcodes:
                found["repeated_history"] = True
        if max(hists) > 1:
            found["hist_limit"] = max(MIN_HIST_LIMIT, min(max(hists), 32))
        return found | _icnt_register(icnts)

    def choices(self, build: Build) -> Iterator[Build]:
        options = build.options
        for change in _changes(options):
            if not build.proven.isdisjoint(change):
                continue
            with suppress(ValueError):
                yield build._replace(options=replace(options, **change))  # type: ignore[arg-type]

    def relaxed(self, build: Build) -> Build | None:
        return None if build.summed else build._replace(summed=True)

    def timed(self, build: Build) -> Iterator[Build]:
        period = self._options.sync_period
        for more in PERIODS if period else ():
            options = replace(build.options, sync_mode=InstSyncMode.MESSAGES)
            timed = build._replace(options=options, period=(period or 0) + more)
            yield timed
            yield from self.placements(timed)

    def placements(self, build: Build) -> Iterator[Build]:
        for placement in SyncPlacement:
            if placement is not build.options.sync_placement:
                yield build._replace(options=replace(build.options, sync_placement=placement))

    def delayed(self, build: Build) -> Iterator[Build]:
        for name in sorted(_REPEATS - build.proven):
            other = build._replace(options=replace(build.options, **{name: not getattr(build.options, name)}))  # type: ignore[arg-type]
            yield other
            yield from self.placements(other)

    def untimed(self, build: Build) -> Build:
        return build._replace(options=replace(build.options, sync_mode=InstSyncMode.OFF), period=0)

    def closings(self, closing: Closing) -> Sequence[Closing]:
        if closing.kind is ClosingKind.STOPPED:
            return [closing._replace(outcome=outcome) for outcome in Continuation]
        return [closing, closing._replace(late=True)]


def _icnt_register(counts: Sequence[int]) -> dict[str, Any]:
    """Return the limit of I-CNT that explains the *counts* of full registers best.

    An encoder reports after the instruction with which the limit is reached, or before the one that would exceed it.
    """
    least, most = min(counts, default=0), max(counts, default=0)
    if not least:
        return {"icnt_limit": 1 << 22}
    above = 1 << (most - 1).bit_length()
    if above - 1 <= least < above:
        return {"icnt_limit": above, "full_at_once": False}
    return {"icnt_limit": 1 << (least.bit_length() - 1)}


_REPEATS = frozenset({"repeated_history", "repeat_branch"})
_SWITCHES = (
    "full_at_once", "indirect_without_hist", "correlation_without_hist", "hist_full_first", "icnt_by_block",
    "icnt_full_sync", "repeated_history", "repeat_branch", "all_jumps",
)  # fmt: skip
_REPEAT_SWITCHES = ("repeat_shortest", "repeat_broken_by_icnt")
_ICNT_LIMITS = tuple(1 << bits for bits in range(4, 23))
_HIST_LIMITS = (8, 16, 17, 24, 30, 31, 32)
_DEPTHS = (1, 2, 4, 5, 8, 16, 32, 64, 128, 256, 512, 1023)


def _changes(options: EncoderOptions) -> Iterator[dict[str, object]]:
    """Yield the changes of one choice that are worth a try."""
    for name in _SWITCHES:
        yield {name: not getattr(options, name)}
    for placement in SyncPlacement:
        yield {"sync_placement": placement}
    for tcode in (None, Tcode.PROG_TRACE_SYNC, Tcode.DIRECT_BRANCH_SYNC, Tcode.INDIRECT_BRANCH_SYNC):
        yield {"linear_sync": tcode}
    for limit in (options.icnt_limit - 1, options.icnt_limit + 1, *_ICNT_LIMITS):
        yield {"icnt_limit": limit}
        yield {"icnt_limit": limit, "full_at_once": not options.full_at_once}
    for bits in _HIST_LIMITS:
        yield {"hist_limit": bits}
    if options.repeated_history:
        for name in _REPEAT_SWITCHES:
            yield {name: not getattr(options, name)}
        for trims in ((), (1,), (3, 1)):
            yield {"repeat_trims": trims}
    if options.implicit_return is not ImplicitReturn.OFF:
        for mode in (ImplicitReturn.COUNTER, ImplicitReturn.PARTIAL_STACK, ImplicitReturn.FULL_STACK):
            for depth in _DEPTHS:
                yield {"implicit_return": mode, "return_depth": depth}
        for bits in (4, 8, 12, 16, 20, 24):
            yield {"implicit_return": ImplicitReturn.PARTIAL_STACK, "partial_bits": bits}
