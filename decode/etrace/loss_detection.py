"""The detection of losses that packets do not report: missing packets, and bytes that only look like synchronizations.

Packets are missing, or came twice, if there are fewer or more from one synchronization to the next than the encoder's
period demands (`PacketPeriodChecker`). Source: Efficient Trace for RISC-V 2.0, "Resynchronisation": a counter of
packets is reset by each format 3 packet of subformat 0 or 1, and a synchronization is sent when it has exceeded the
period. So there is one packet more than the period. An encoder that synchronizes when the period is reached, or also
counts the synchronization, sends one or two fewer, and one whose next instruction cannot have a synchronization a few
more; this is accepted until the trace has shown that the encoder does not do so.

A synchronization packet does not contain its reason. It is not periodic after a support packet (tracing starts, packets
were lost), with another privilege mode or context than at the start of the stretch, and right after another one. If
packets have no context, an encoder may still synchronize for a new context: right after an instruction that writes a
CSR. So a synchronization after such an instruction shows nothing either.

Damaged bytes can look like packets, and a synchronization does not show by itself that it is one: nearly any address
may be code. Whether a synchronization after damage is accepted depends on the packets right after it (`SyncVerifier`):
either the program can have run that way from there on, or it cannot.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.encapsulation import SourcePackets
from rvtrace_gdb.decode.etrace.encapsulation.cutting import FramedPayloads
from rvtrace_gdb.decode.etrace.layout import FORMAT_BITS, MalformedPacket, Packet, SyncSubformat, TeInstFormat
from rvtrace_gdb.decode.etrace.options import Dialect, Options, Setup
from rvtrace_gdb.decode.etrace.packet import PacketCodec
from rvtrace_gdb.decode.etrace.prediction_tables import PredictionTables
from rvtrace_gdb.decode.etrace.state import State, Step
from rvtrace_gdb.decode.etrace.step import StepFunction
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, Resumable, attributes, set_attributes
from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.stepping.control_flow import Stack
from rvtrace_gdb.decode.stepping.reports import MessageCountJudge, Report

_START, _TRAP, _, _SUPPORT = (TeInstFormat.SYNC | kind << FORMAT_BITS for kind in SyncSubformat)
_STARTS = bytes((_START,))
_HEAD_BITS = 4  # format and subformat of a synchronization
_HEADS = bytes(byte & (1 << _HEAD_BITS) - 1 for byte in range(256))
_CLOSING = re.compile(b"[" + bytes((_START, _TRAP, _SUPPORT)) + b"]")
_FIRST = itemgetter(0)
_TOLERANCE = 2
_CONTEXT_FIELDS = ("privilege", "context")
_SYSTEM, _OPCODE = 0x73, 0x7F
_CSR_BYTES = 4  # the size of an instruction that writes a CSR


class OddPacketStretch(NamedTuple):
    """A stretch with few or many *packets*, from the synchronization *opening* at byte *start* to *closing* at *end*.

    *opening* and *closing* are payloads. *at*: the index of the closing packet among those passed to `check`.
    """

    start: int
    end: int
    packets: int
    opening: bytes
    closing: bytes
    at: int


class PacketPeriodChecker(Resumable):
    """Counts the packets of one hart whose encoder synchronizes after every *period* packets."""

    def __init__(self, period: int) -> None:
        self._judge = MessageCountJudge(period + 1, _TOLERANCE, always=True)
        self._count: int | None = None  # since the last synchronization, None before the first one
        self._last_sync_payload = b""
        self._last_sync: tuple[Sequence[int], int] = ((), 0)  # its position; the offset is looked up only if needed

    def checkpoint(self) -> Checkpoint:
        """Return what was counted."""
        offsets, index = self._last_sync
        sync = offsets[index] if len(offsets) else None
        return attributes(self, "_count", "_last_sync_payload") | {"judge": self._judge.checkpoint(), "sync": sync}

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Go on where another checker was."""
        set_attributes(self, checkpoint, "_count", "_last_sync_payload")
        self._judge.go_on_from(checkpoint["judge"])
        self._last_sync = ((), 0) if checkpoint["sync"] is None else ((checkpoint["sync"],), 0)

    def begin_like(self, checkpoint: Checkpoint) -> None:
        """Begin in the middle of a trace, with what another checker knew of the encoder."""
        self._judge.go_on_from(checkpoint["judge"])

    def check(self, packets: SourcePackets) -> Iterator[OddPacketStretch]:
        """Return the stretches that may lack packets, or have too many.

        Call `is_odd` for each of them before taking the next one.
        """
        payloads, offsets = packets.payloads, packets.offsets
        heads = _heads(payloads)
        if self._count_complete(heads, packets):
            return
        done = 0  # packets that are counted
        for found in _CLOSING.finditer(heads):
            at = found.start()
            count, (where, index), opening = self._count, self._last_sync, self._last_sync_payload
            if count is not None:
                count += at - done
            is_support = heads[at] == _SUPPORT
            self._count = None if is_support else 0
            done = at + 1
            if not is_support:
                self._last_sync, self._last_sync_payload = (offsets, at), payloads[at]
            if count and (count > self._judge.least or heads[at] == _START):
                if count == self._judge.least:
                    self._judge.is_short(count)
                else:
                    yield OddPacketStretch(
                        where[index], offsets[at], count, opening=opening, closing=payloads[at], at=at
                    )
        if self._count is not None:
            self._count += len(payloads) - done

    def _count_complete(self, heads: bytes, packets: SourcePackets) -> bool:
        """Count all packets at once if there is no trap or support packet and no short stretch; else return False."""
        if _TRAP in heads or _SUPPORT in heads:
            return False
        before, *counts = map(len, heads.split(_STARTS))
        count = None if self._count is None else self._count + before
        if not counts:
            self._count = count
            return True
        last = counts.pop()
        if count is not None:
            counts.append(count)
        if counts and not min(counts) == max(counts) == self._judge.least:
            return False
        self._judge.add(len(counts), counts.count(self._judge.least))
        at = len(heads) - last - 1
        self._count, self._last_sync, self._last_sync_payload = last, (packets.offsets, at), packets.payloads[at]
        return True

    def finish(self, end: int) -> OddPacketStretch | None:
        """Return the last stretch, which byte *end* of the trace ends, if it has too many packets."""
        count, (where, index) = self._count, self._last_sync
        if count is None or count <= self._judge.least or not self._judge.is_long(count - self._judge.least):
            return None
        return OddPacketStretch(where[index], end, count, self._last_sync_payload, closing=b"", at=-1)

    def is_odd(self, candidate: OddPacketStretch, codec: PacketCodec, image: Image) -> bool:
        """Whether packets are missing in *candidate*, or too many, as far as this encoder has shown how it counts.

        *image*: the code that runs there.
        """
        if candidate.packets > self._judge.least:
            return self._judge.is_long(candidate.packets - self._judge.least)
        return _is_periodic(candidate, codec, image) and self._judge.is_short(candidate.packets)


def period_checker(options: Options) -> PacketPeriodChecker | None:
    """Return the checker for an encoder, None if its period is not known."""
    known = options.sync_packets and options.dialect is Dialect.STANDARD
    return PacketPeriodChecker(options.sync_packets) if known else None


def _heads(payloads: Sequence[bytes]) -> bytes:
    """Return the low bits of each packet: format and subformat, if it is a synchronization."""
    if isinstance(payloads, FramedPayloads):
        return payloads.heads().translate(_HEADS)
    try:
        return bytes(map(_FIRST, payloads)).translate(_HEADS)
    except IndexError:
        return bytes(payload[0] if payload else 0 for payload in payloads).translate(_HEADS)


def _is_periodic(candidate: OddPacketStretch, codec: PacketCodec, image: Image) -> bool:
    """Whether the period is the only possible reason of the closing synchronization."""
    try:
        opening, closing = codec.parse(candidate.opening).fields, codec.parse(candidate.closing).fields
    except MalformedPacket:
        return False
    if any(opening.get(name) != closing.get(name) for name in _CONTEXT_FIELDS):
        return False
    return "context" in closing or not _follows_csr(closing["address"], image)


def _follows_csr(address: int, image: Image) -> bool:
    """Whether the instruction before *address* may have written a CSR."""
    try:
        return image.read(address - _CSR_BYTES, _CSR_BYTES)[0] & _OPCODE == _SYSTEM
    except CodeMissing:
        return True


LOOKAHEAD = 2
"""The number of packets after a synchronization that are checked: more do not detect more damage
(`benchmarks/decoding/damage.py`).
"""

_NO_DAMAGE = (LossCause.ABSENT_CODE, LossCause.NO_CODE, LossCause.COUNT_UNKNOWN, LossCause.UNKNOWN_HANDLER)
_HARMLESS = (*_NO_DAMAGE, LossCause.PACKETS_LOST)


class SyncVerdict(Enum):
    """The result of checking a synchronization by the packets after it."""

    BELIEVED = "believed"
    CONTRADICTED = "contradicted"
    OPEN = "open"
    """There are too few packets yet."""
    SELF_EVIDENT = "self-evident"
    """No check is needed: the packet itself reports a loss or something impossible."""


class SyncVerifier(Resumable):
    """Verifies synchronizations after damage, up to the first one that is accepted.

    codec_of  returns the codec for a setup
    active    whether synchronizations have to be verified
    reported  whether a rejected synchronization was reported since the damage
    """

    def __init__(self, step_function: StepFunction, codec_of: Callable[[Setup], PacketCodec]) -> None:
        self._step_function = step_function
        self._codec_of = codec_of
        self._last_mismatch: int | str | None = None  # the last address at which program and trace differ
        self.active = self.reported = False

    def checkpoint(self) -> Checkpoint:
        """Return what is known of the damage."""
        return attributes(self, "active", "reported", "_last_mismatch")

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Go on where another verifier was."""
        set_attributes(self, checkpoint, "active", "reported", "_last_mismatch")

    def note_damage(self, reports: Iterable[Report]) -> None:
        """Start to verify synchronizations if one of *reports* is damage. Missing code is none."""
        for report in reports:
            if report.lost and _cause(report) not in _NO_DAMAGE:
                self.active = True
                self._last_mismatch = _mismatch_address(report) or self._last_mismatch

    def verdict(self, state: State, packet: Packet, payloads: Iterable[bytes], default: SyncVerdict) -> SyncVerdict:
        """Verify *packet* by the *payloads* that follow it. *state*: the state before it, with an unknown pc.

        *default*: the result if there are too few payloads.
        """
        verdict = self._verdict(state, packet, payloads)
        verdict = default if verdict is SyncVerdict.OPEN else verdict
        if verdict is SyncVerdict.BELIEVED:
            self.active = self.reported = False
        return verdict

    def _verdict(self, state: State, packet: Packet, payloads: Iterable[bytes]) -> SyncVerdict:
        stack: Stack = None
        setup, tables = state.knowledge.setup, PredictionTables(state.knowledge.setup.parameters)
        following = iter(payloads)
        for number in range(LOOKAHEAD + 1):
            step = self._step_function.step(state, packet, stack, tables).step
            if any(report.lost for report in step.reports):
                return self._judge(step, packet) if number else SyncVerdict.SELF_EVIDENT
            if step.tables is not None:
                tables.apply(step.tables)
            stack, state = step.stack_after(stack), step.state
            if state.knowledge.setup != setup:
                setup, tables = state.knowledge.setup, PredictionTables(state.knowledge.setup.parameters)
            if number == LOOKAHEAD:
                break
            if (payload := next(following, None)) is None:
                return SyncVerdict.OPEN
            try:
                packet = self._codec_of(setup).parse(payload)
            except MalformedPacket:
                return SyncVerdict.CONTRADICTED
        return SyncVerdict.BELIEVED

    def _judge(self, step: Step, packet: Packet) -> SyncVerdict:
        """Return the verdict for a step with a loss. A contradiction to a later synchronization proves nothing about
        either.

        If program and trace differ at the same address as before, the program is wrong, not the trace.
        """
        losses = [report for report in step.reports if report.lost]
        if packet.format == TeInstFormat.SYNC or all(_cause(report) in _HARMLESS for report in losses):
            return SyncVerdict.BELIEVED
        places = [_mismatch_address(report) for report in losses]
        return (
            SyncVerdict.BELIEVED
            if self._last_mismatch is not None and self._last_mismatch in places
            else SyncVerdict.CONTRADICTED
        )


def _cause(report: Report) -> LossCause | None:
    return report.fact.cause if isinstance(report.fact, Loss) else None


def _mismatch_address(report: Report) -> int | str | None:
    """Return the address at which program and trace differ, None if the report is not a mismatch."""
    return report.fact.detail[1] if isinstance(report.fact, Loss) and report.kind is EventKind.MISMATCH else None
