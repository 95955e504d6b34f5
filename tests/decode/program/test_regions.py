"""Stretches of code that touch or overlap each other, put together."""

import random
from itertools import pairwise

from rvtrace_gdb.decode.program.regions import joined_code


def test_code_in_pieces_is_put_together() -> None:
    code = [(0x104, b"ef"), (0x100, b"abcd"), (0x10A, b"xy"), (0x105, b"?gh")]
    assert joined_code(code) == ((0x100, b"abcdefgh"), (0x10A, b"xy"))


def test_each_byte_is_that_of_the_first_piece_that_has_it() -> None:
    rng = random.Random(5)
    for _ in range(200):
        code = [(rng.randrange(60), rng.randbytes(rng.randint(1, 9))) for _ in range(rng.randint(0, 9))]
        bytes_at: dict[int, int] = {}
        for start, data in code:
            for at, byte in enumerate(data, start):
                bytes_at.setdefault(at, byte)
        found = joined_code(code)
        assert {at: byte for start, data in found for at, byte in enumerate(data, start)} == bytes_at
        assert all(start + len(data) < after for (start, data), (after, _) in pairwise(found))
