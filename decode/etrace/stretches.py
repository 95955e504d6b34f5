"""Packets that are missing where nothing else tells: fewer than there have to be from one synchronization to the next.

Source: Efficient Trace for RISC-V 2.0, "Resynchronisation": a counter of packets, which each format 3 packet of
subformat 0 or 1 sets back, and a synchronization when it has exceeded the period: so one packet more than the period,
or more where the next instruction cannot have one. An encoder that synchronizes when the period is reached, or counts
the synchronization too, sends one or two fewer, and is believed until the trace has shown that it does not.

A synchronization packet does not say why it was sent. Not periodic are those after a support packet (tracing starts,
packets were lost), those with another privilege mode or context than the stretch began with, and those right after
another. Where packets have no context an encoder may synchronize for a new one all the same: right after an instruction
that writes a CSR, so that one after such an instruction tells nothing either.
"""

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.encapsulation import Packets
from rvtrace_gdb.decode.etrace.layout import FORMAT_BITS, Format, Sync
from rvtrace_gdb.decode.etrace.options import Dialect, Options
from rvtrace_gdb.decode.etrace.packet import Codec, Malformed
from rvtrace_gdb.decode.image import CodeMissing, Image
from rvtrace_gdb.decode.stretches import Judge

_START, _TRAP, _, _SUPPORT = (Format.SYNC | kind << FORMAT_BITS for kind in Sync)
_STARTS = bytes((_START,))
_HEAD_BITS = 4  # format and subformat of a synchronization
_HEADS = bytes(byte & (1 << _HEAD_BITS) - 1 for byte in range(256))
_CLOSING = re.compile(b"[" + bytes((_START, _TRAP, _SUPPORT)) + b"]")
_FIRST = itemgetter(0)
_UNSURE = 2
_SAID = ("privilege", "context")
_SYSTEM, _OPCODE = 0x73, 0x7F
_CSR_BYTES = 4  # of an instruction that writes a CSR


class Candidate(NamedTuple):
    """A stretch with few *packets*, from the synchronization *opening* at byte *start* to *closing* at byte *end*.

    *at*: the packet, of those looked at, that closes it.
    """

    start: int
    end: int
    packets: int
    opening: bytes
    closing: bytes
    at: int


class Stretches:
    """Counts one hart's packets, whose encoder synchronizes after *period* of them."""

    def __init__(self, period: int) -> None:
        self._judge = Judge(period + 1, _UNSURE)
        self._count: int | None = None  # since the last synchronization, None before the first one
        self._opening = b""
        self._opened: tuple[Sequence[int], int] = ((), 0)  # where that packet is; looked up only when it is needed

    def look(self, packets: Packets) -> Iterator[Candidate]:
        """The stretches that may lack packets; each is to be judged before the next is asked for."""
        payloads, offsets = packets.payloads, packets.offsets
        heads = _heads(payloads)
        if self._are_whole(heads, packets):
            return
        done = 0  # packets that are counted
        for found in _CLOSING.finditer(heads):
            at = found.start()
            count, (where, index), opening = self._count, self._opened, self._opening
            if count is not None:
                count += at - done
            is_support = heads[at] == _SUPPORT
            self._count = None if is_support else 0
            done = at + 1
            if not is_support:
                self._opened, self._opening = (offsets, at), payloads[at]
            if count and heads[at] == _START:
                if count < self._judge.least:
                    yield Candidate(where[index], offsets[at], count, opening, payloads[at], at)
                else:
                    self._judge.is_short(count)
        if self._count is not None:
            self._count += len(payloads) - done

    def _are_whole(self, heads: bytes, packets: Packets) -> bool:
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
        self._count, self._opened, self._opening = last, (packets.offsets, at), packets.payloads[at]
        return True

    def is_short(self, candidate: Candidate, codec: Codec, image: Image) -> bool:
        """Whether packets are missing there, as far as this encoder has shown that it keeps to its period.

        *image*: the code that runs then.
        """
        return _is_periodic(candidate, codec, image) and self._judge.is_short(candidate.packets)


def stretches_of(options: Options) -> Stretches | None:
    """What counts the packets of an encoder, None where it is not known how many there have to be."""
    told = options.sync_packets and options.dialect is Dialect.STANDARD
    return Stretches(options.sync_packets) if told else None


def _heads(payloads: list[bytes]) -> bytes:
    """Format and subformat of each packet, if it is a synchronization."""
    try:
        return bytes(map(_FIRST, payloads)).translate(_HEADS)
    except IndexError:
        return bytes(payload[0] if payload else 0 for payload in payloads).translate(_HEADS)


def _is_periodic(candidate: Candidate, codec: Codec, image: Image) -> bool:
    """Whether nothing but the period can have been why the encoder synchronized there."""
    try:
        opening, closing = codec.parse(candidate.opening).fields, codec.parse(candidate.closing).fields
    except Malformed:
        return False
    if any(opening.get(name) != closing.get(name) for name in _SAID):
        return False
    return "context" in closing or not _follows_csr(closing["address"], image)


def _follows_csr(address: int, image: Image) -> bool:
    """Whether the instruction before this one may have written a CSR."""
    try:
        return image.read(address - _CSR_BYTES, _CSR_BYTES)[0] & _OPCODE == _SYSTEM
    except CodeMissing:
        return True
