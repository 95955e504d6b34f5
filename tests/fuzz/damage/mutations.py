"""Damage to bytes: what links, memories and people do to them, and what finds the edges of a reader."""

import random
from collections.abc import Callable

_INTERESTING = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 63)
_MOST = 1 << 16  # bytes of an input


def mutated(rng: random.Random, data: bytes, other: bytes = b"") -> bytes:
    """*data* with one to six damages, mostly one. *other*: of the same kind, for splices."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        rng.choice(_DAMAGES)(rng, made, other)
    return bytes(made[:_MOST])


def _flip(rng: random.Random, made: bytearray, other: bytes) -> None:
    if made:
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)


def _change(rng: random.Random, made: bytearray, other: bytes) -> None:
    if made:
        made[rng.randrange(len(made))] = rng.randrange(256)


def _lose(rng: random.Random, made: bytearray, other: bytes) -> None:
    at = rng.randrange(len(made) + 1)
    del made[at : at + rng.choice((1, 1, 2, 4, rng.randint(1, 32)))]


def _double(rng: random.Random, made: bytearray, other: bytes) -> None:
    at = rng.randrange(len(made) + 1)
    made[at:at] = made[at : at + rng.choice((1, 1, 2, 8, rng.randint(1, 64)))] * rng.choice((1, 1, 2, 20))


def _insert(rng: random.Random, made: bytearray, other: bytes) -> None:
    at = rng.randrange(len(made) + 1)
    made[at:at] = rng.randbytes(rng.choice((1, 2, rng.randint(1, 16))))


def _number(rng: random.Random, made: bytearray, other: bytes) -> None:
    """A number that is at an edge, over what was there."""
    size = rng.choice((1, 2, 4, 8))
    value = (rng.choice(_INTERESTING) + rng.choice((-1, 0, 0, 1))) % (1 << 8 * size)
    at = rng.randrange(len(made) + 1)
    made[at : at + size] = value.to_bytes(size, rng.choice(("little", "big")))


def _splice(rng: random.Random, made: bytearray, other: bytes) -> None:
    at, begin = rng.randrange(len(made) + 1), rng.randrange(len(other) + 1)
    made[at : at + rng.choice((0, 64))] = other[begin : begin + rng.choice((8, 64, len(other)))]


def _move(rng: random.Random, made: bytearray, other: bytes) -> None:
    begin, size = rng.randrange(len(made) + 1), rng.randint(1, 32)
    some = made[begin : begin + size]
    del made[begin : begin + size]
    at = rng.randrange(len(made) + 1)
    made[at:at] = some


def _cut(rng: random.Random, made: bytearray, other: bytes) -> None:
    at = rng.randrange(len(made) + 1)
    if rng.random() < 0.7:
        del made[at:]
    else:
        del made[:at]


def _tail(rng: random.Random, made: bytearray, other: bytes) -> None:
    """Memory that nothing was written to."""
    made += rng.choice((b"\0", b"\xff", b"\xaa", rng.randbytes(1))) * rng.choice((1, 7, 64, 300))


def _blank(rng: random.Random, made: bytearray, other: bytes) -> None:
    begin, size = rng.randrange(len(made) + 1), rng.choice((1, 4, 16, 64))
    size = min(size, len(made) - begin)
    made[begin : begin + size] = rng.choice((b"\0", b"\xff")) * size


def _noise(rng: random.Random, made: bytearray, other: bytes) -> None:
    begin = rng.randrange(len(made) + 1)
    size = min(rng.choice((4, 16, 64)), len(made) - begin)
    made[begin : begin + size] = rng.randbytes(size)


Damage = Callable[[random.Random, bytearray, bytes], None]
_DAMAGES: tuple[Damage, ...] = (
    _flip, _flip, _flip, _change, _change, _lose, _lose, _double, _insert, _number, _number, _splice, _move, _cut,
    _tail, _blank, _noise,
)  # fmt: skip
