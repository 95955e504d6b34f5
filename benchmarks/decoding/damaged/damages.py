"""The damages: one byte, one bit, or whole packets, at a place of a trace that *rng* chooses."""

import random
from collections.abc import Callable

from benchmarks.decoding.damaged.streams import Stream


def one_byte_lost(rng: random.Random, stream: Stream) -> bytes:
    at = rng.randrange(len(stream.data))
    return stream.data[:at] + stream.data[at + 1 :]


def one_byte_doubled(rng: random.Random, stream: Stream) -> bytes:
    at = rng.randrange(len(stream.data))
    return stream.data[: at + 1] + stream.data[at:]


def one_bit_flipped(rng: random.Random, stream: Stream) -> bytes:
    at = rng.randrange(len(stream.data))
    return stream.data[:at] + bytes((stream.data[at] ^ 1 << rng.randrange(8),)) + stream.data[at + 1 :]


def one_packet_dropped(rng: random.Random, stream: Stream) -> bytes:
    """Not the last: a trace without it is one that ends earlier."""
    start, end = rng.choice(stream.frames[:-1])
    return stream.data[:start] + stream.data[end:]


def one_packet_doubled(rng: random.Random, stream: Stream) -> bytes:
    start, end = rng.choice(stream.frames)
    return stream.data[:end] + stream.data[start:]


def neighbours_exchanged(rng: random.Random, stream: Stream) -> bytes:
    """Two that differ."""
    packets = stream.packets
    places = [i for i in range(len(packets) - 1) if packets[i] != packets[i + 1]]
    at = rng.choice(places)
    return b"".join([*packets[:at], packets[at + 1], packets[at], *packets[at + 2 :]])


def packets_cut_out(rng: random.Random, stream: Stream) -> bytes:
    """Any number of them, not the last."""
    packets = stream.packets
    start, end = sorted(rng.sample(range(len(packets)), 2))
    return b"".join(packets[:start] + packets[end:])


def tail_spliced(rng: random.Random, stream: Stream) -> bytes:
    """What follows a packet is from another trace."""
    packets, others = stream.packets, stream.other
    return b"".join(packets[: rng.randrange(1, len(packets))]) + b"".join(others[rng.randrange(1, len(others)) :])


def field_at_its_extreme(rng: random.Random, stream: Stream) -> bytes:
    """One field of one packet has its least or its greatest value."""
    packets = list(stream.packets)
    for _ in range(100):
        at = rng.randrange(len(packets))
        changed = stream.extreme(rng, packets[at])
        if changed is not None and changed != packets[at]:
            packets[at] = changed
            break
    return b"".join(packets)


Damage = Callable[[random.Random, Stream], bytes]

BYTES: dict[str, Damage] = {
    "lost": one_byte_lost,
    "doubled": one_byte_doubled,
    "flipped": one_bit_flipped,
    "dropped": one_packet_dropped,
}
"""Damages of one byte, and the loss of a packet."""

PACKETS: dict[str, Damage] = {
    "packet lost": one_packet_dropped,
    "packet doubled": one_packet_doubled,
    "exchanged": neighbours_exchanged,
    "cut out": packets_cut_out,
    "spliced": tail_spliced,
    "extreme": field_at_its_extreme,
}
"""Damages of whole packets and messages."""
