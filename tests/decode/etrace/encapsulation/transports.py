"""Transports written and read bit by bit, from the words of e-trace-encap: what its tests compare with."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rvtrace_gdb.decode.etrace.encapsulation import (
    ContentKind,
    Deframer,
    EncapsulatedItem,
    Encapsulation,
    Idle,
    LostBytes,
    SourcePackets,
)

Told = tuple[int, int, ContentKind, bytes, int | None]
"""Of a packet: offset, source, kind, payload, timestamp."""


@dataclass(frozen=True)
class Content:
    """What a trace was told to hold: packets by offset, losses, and which bytes are filling."""

    packets: list[Told]
    losses: list[LostBytes]
    idle: frozenset[int]

    @property
    def payloads(self) -> list[bytes]:
        """In trace order."""
        return [payload for _, _, _, payload, _ in self.packets]


def bits_of(value: int, width: int) -> list[int]:
    """The low *width* bits, least significant first."""
    return [value >> i & 1 for i in range(width)]


def bytes_of(bits: list[int]) -> bytes:
    """Eight bits a byte, the first in bit 0."""
    assert len(bits) % 8 == 0
    return bytes(sum(bit << i for i, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8))


def normal(
    payload: list[int],
    *,
    source: tuple[int, int] = (0, 0),
    time: tuple[int, int] | None = None,
    type_: tuple[int, int] = (0, 0),
    flow: int = 0,
    padding: int | None = None,
) -> bytes:
    """A packet by tables "Encapsulation Field Groups" to "Payload Fields". Pairs: value, width in bits.

    *payload*: its bits. *padding*: what pad bits are; None: the last bit of the payload.
    """
    string = bits_of(*source) + (bits_of(*time) if time else []) + bits_of(*type_) + payload
    pad = payload[-1] if padding is None else padding
    string += [pad] * (-len(string) % 8)
    length = -(-(type_[1] + len(payload) + source[1] % 8) // 8)  # "Packet Length"
    assert len(string) // 8 == source[1] // 8 + (time[1] // 8 if time else 0) + length
    assert 0 < length < 32
    return bytes_of(bits_of(length, 5) + bits_of(flow, 2) + [time is not None]) + bytes_of(string)


def told(items: Iterable[EncapsulatedItem]) -> Content:
    """The items, whatever pieces they came in."""
    packets: list[Told] = []
    losses: list[LostBytes] = []
    idle: set[int] = set()
    for item in items:
        if isinstance(item, SourcePackets):
            times = item.times or [None] * len(item.payloads)
            assert len(item.payloads) == len(item.offsets) == len(times) == len(item.sizes) > 0
            assert sum(item.sizes) == item.length
            packets += [
                (offset, item.source, item.kind, payload, time)
                for offset, payload, time in zip(item.offsets, item.payloads, times, strict=True)
            ]
        elif isinstance(item, Idle):
            idle.update(range(item.offset, item.offset + item.length))
        else:
            losses.append(item)
    return Content(sorted(packets, key=lambda packet: packet[0]), losses, frozenset(idle))


def items_of(deframer: Deframer, data: bytes, cuts: Iterable[int] = ()) -> list[EncapsulatedItem]:
    """All items of *data*, fed in pieces that end at *cuts*; checks that they account for every byte."""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    items: list[EncapsulatedItem] = []
    for start, stop in pairwise(edges):
        items += deframer.feed(data[start:stop])
    items += deframer.finish()
    assert deframer.total == len(data) == sum(item.length for item in items)
    return items


def read(encapsulation: Encapsulation, data: bytes, *, wrapped: bool = False, cuts: Iterable[int] = ()) -> Content:
    """What *data* holds."""
    return told(items_of(encapsulation.deframer(wrapped=wrapped), data, cuts))


def write(encapsulation: Encapsulation, packets: Iterable[tuple[Any, ...]]) -> bytes:
    """Packets: offset (ignored), source, kind, payload, timestamp."""
    framer = encapsulation.framer()
    return b"".join(framer.packet(payload, kind, source, time) for _, source, kind, payload, time in packets)
