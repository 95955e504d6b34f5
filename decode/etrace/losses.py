"""Losses and damage that packets do not announce: packets that are missing, and synchronizations that are none.

Packets are missing where there are fewer than there have to be from one synchronization to the next (`Stretches`).
Source: Efficient Trace for RISC-V 2.0, "Resynchronisation": a counter of packets, which each format 3 packet of
subformat 0 or 1 sets back, and a synchronization when it has exceeded the period: so one packet more than the period,
or more where the next instruction cannot have one. An encoder that synchronizes when the period is reached, or counts
the synchronization too, sends one or two fewer, and is believed until the trace has shown that it does not.

A synchronization packet does not say why it was sent. Not periodic are those after a support packet (tracing starts,
packets were lost), those with another privilege mode or context than the stretch began with, and those right after
another. Where packets have no context an encoder may synchronize for a new one all the same: right after an instruction
that writes a CSR, so that one after such an instruction tells nothing either.

Damage makes bytes look like packets that they are not, and a synchronization does not tell by itself that it is one:
nearly any address may be code. Whether a synchronization after damage is believed depends on what the packets right
after it would mean (`Doubt`): that either can have run from there on, or it cannot.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.encapsulation import Packets
from rvtrace_gdb.decode.etrace.layout import FORMAT_BITS, Format, Malformed, Packet, Sync
from rvtrace_gdb.decode.etrace.options import Dialect, Options
from rvtrace_gdb.decode.etrace.packet import Codec
from rvtrace_gdb.decode.etrace.state import Setup, State, Step, Tables
from rvtrace_gdb.decode.etrace.step import StepFunction
from rvtrace_gdb.decode.history.builder import Judge, Report
from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.stepping.control_flow import Stack

_START, _TRAP, _, _SUPPORT = (Format.SYNC | kind << FORMAT_BITS for kind in Sync)
_STARTS = bytes((_START,))
_HEAD_BITS = 4  # format and subformat of a synchronization
_HEADS = bytes(byte & (1 << _HEAD_BITS) - 1 for byte in range(256))
_CLOSING = re.compile(b"[" + bytes((_START, _TRAP, _SUPPORT)) + b"]")
_FIRST = itemgetter(0)
_TOLERANCE = 2
_CONTEXT_FIELDS = ("privilege", "context")
_SYSTEM, _OPCODE = 0x73, 0x7F
_CSR_BYTES = 4  # of an instruction that writes a CSR


class ShortStretch(NamedTuple):
    """A stretch with few *packets*, from the synchronization *opening* at byte *start* to *closing* at byte *end*.

    *at*: the packet, of those looked at, that closes it.
    """

    start: int
    end: int
    packets: int
    opening: bytes
    closing: bytes
    at: int


class SyncPeriodChecker:
    """Counts one hart's packets, whose encoder synchronizes after *period* of them."""

    def __init__(self, period: int) -> None:
        self._judge = Judge(period + 1, _TOLERANCE)
        self._count: int | None = None  # since the last synchronization, None before the first one
        self._last_sync_payload = b""
        self._last_sync: tuple[Sequence[int], int] = ((), 0)  # where that packet is; looked up only when it is needed

    def check(self, packets: Packets) -> Iterator[ShortStretch]:
        """The stretches that may lack packets; each is to be judged before the next is asked for."""
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
            if count and heads[at] == _START:
                if count < self._judge.least:
                    yield ShortStretch(where[index], offsets[at], count, opening, payloads[at], at)
                else:
                    self._judge.is_short(count)
        if self._count is not None:
            self._count += len(payloads) - done

    def _count_complete(self, heads: bytes, packets: Packets) -> bool:
        """Counts all packets at once if there is nothing to look at closely: no trap or support, no short stretch."""
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
        if counts and min(counts) < self._judge.least:
            return False
        self._judge.add(len(counts), counts.count(self._judge.least))
        at = len(heads) - last - 1
        self._count, self._last_sync, self._last_sync_payload = last, (packets.offsets, at), packets.payloads[at]
        return True

    def is_short(self, candidate: ShortStretch, codec: Codec, image: Image) -> bool:
        """Whether packets are missing there, as far as this encoder has shown that it keeps to its period.

        *image*: the code that runs then.
        """
        return _is_periodic(candidate, codec, image) and self._judge.is_short(candidate.packets)


def period_checker(options: Options) -> SyncPeriodChecker | None:
    """What counts the packets of an encoder, None where it is not known how many there have to be."""
    known = options.sync_packets and options.dialect is Dialect.STANDARD
    return SyncPeriodChecker(options.sync_packets) if known else None


def _heads(payloads: list[bytes]) -> bytes:
    """Format and subformat of each packet, if it is a synchronization."""
    try:
        return bytes(map(_FIRST, payloads)).translate(_HEADS)
    except IndexError:
        return bytes(payload[0] if payload else 0 for payload in payloads).translate(_HEADS)


def _is_periodic(candidate: ShortStretch, codec: Codec, image: Image) -> bool:
    """Whether nothing but the period can have been why the encoder synchronized there."""
    try:
        opening, closing = codec.parse(candidate.opening).fields, codec.parse(candidate.closing).fields
    except Malformed:
        return False
    if any(opening.get(name) != closing.get(name) for name in _CONTEXT_FIELDS):
        return False
    return "context" in closing or not _follows_csr(closing["address"], image)


def _follows_csr(address: int, image: Image) -> bool:
    """Whether the instruction before this one may have written a CSR."""
    try:
        return image.read(address - _CSR_BYTES, _CSR_BYTES)[0] & _OPCODE == _SYSTEM
    except CodeMissing:
        return True


LOOKAHEAD = 2
"""How many packets after one are looked at: of `benchmarks/damage.py` more of them find no more."""

_NO_DAMAGE = (LossCause.ABSENT_CODE, LossCause.NO_CODE, LossCause.COUNT_UNTOLD, LossCause.UNKNOWN_HANDLER)
_HARMLESS = (*_NO_DAMAGE, LossCause.PACKETS_LOST)


class Verdict(Enum):
    """What the packets after a synchronization say of it."""

    BELIEVED = "believed"
    CONTRADICTED = "contradicted"
    OPEN = "open"
    """Nothing yet: there are too few of them."""
    SELF_EVIDENT = "self-evident"
    """Nothing is needed: the packet itself tells a loss, or what cannot be."""


class SyncVerifier:
    """What is in doubt: nothing before there is damage, then all up to a synchronization that is believed.

    *codec_of*: what reads packets under a setup. *active*: whether something is in doubt. *told*: whether it was said
    since the damage that something is not believed.
    """

    def __init__(self, step_function: StepFunction, codec_of: Callable[[Setup], Codec]) -> None:
        self._step_function = step_function
        self._codec_of = codec_of
        self._last_mismatch: int | str | None = None  # the last place where program and trace do not agree
        self.active = self.reported = False

    def note_damage(self, reports: Iterable[Report]) -> None:
        """Whether one of *reports* is damage; that code is missing is none."""
        for report in reports:
            if report.lost and _cause(report) not in _NO_DAMAGE:
                self.active = True
                self._last_mismatch = _mismatch_address(report) or self._last_mismatch

    def verdict(self, state: State, packet: Packet, payloads: Iterable[bytes], default: Verdict) -> Verdict:
        """What *payloads*, which follow *packet*, say of it. *state*: before it, where the hart is not known.

        *otherwise*: what holds if there are too few of them.
        """
        verdict = self._verdict(state, packet, payloads)
        verdict = default if verdict is Verdict.OPEN else verdict
        if verdict is Verdict.BELIEVED:
            self.active = self.reported = False
        return verdict

    def _verdict(self, state: State, packet: Packet, payloads: Iterable[bytes]) -> Verdict:
        stack: Stack = None
        setup, tables = state.place.setup, Tables(state.place.setup.parameters)
        following = iter(payloads)
        for number in range(LOOKAHEAD + 1):
            step = self._step_function.step(state, packet, stack, tables).step
            if any(report.lost for report in step.reports):
                return self._judge(step, packet) if number else Verdict.SELF_EVIDENT
            if step.tables is not None:
                tables.apply(step.tables)
            stack, state = step.stack_after(stack), step.state
            if state.place.setup != setup:
                setup, tables = state.place.setup, Tables(state.place.setup.parameters)
            if number == LOOKAHEAD:
                break
            if (payload := next(following, None)) is None:
                return Verdict.OPEN
            try:
                packet = self._codec_of(setup).parse(payload)
            except Malformed:
                return Verdict.CONTRADICTED
        return Verdict.BELIEVED

    def _judge(self, step: Step, packet: Packet) -> Verdict:
        """Of a step with a loss. One synchronization against another says nothing of either.

        Where the program differs from the trace at the same place as before, it is the program that is wrong.
        """
        losses = [report for report in step.reports if report.lost]
        if packet.format == Format.SYNC or all(_cause(report) in _HARMLESS for report in losses):
            return Verdict.BELIEVED
        places = [_mismatch_address(report) for report in losses]
        return (
            Verdict.BELIEVED
            if self._last_mismatch is not None and self._last_mismatch in places
            else Verdict.CONTRADICTED
        )


def _cause(report: Report) -> LossCause | None:
    return report.fact.cause if isinstance(report.fact, Loss) else None


def _mismatch_address(report: Report) -> int | str | None:
    """The address at which program and trace do not agree, None where they do."""
    return report.fact.detail[1] if isinstance(report.fact, Loss) and report.kind is EventKind.MISMATCH else None
