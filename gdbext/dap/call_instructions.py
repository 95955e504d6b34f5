"""Which functions code calls, as far as its instructions say so: jal, auipc with jalr, c.jal of RV32."""

from __future__ import annotations

from collections.abc import Iterator

_LINKS = (1, 5)  # ra, and the alternate link register


def call_targets(begin: int, code: bytes, xlen: int) -> Iterator[tuple[int, int]]:
    """Return the calls in code at an address: (address, function)."""
    at, upper = 0, (-1, 0)
    mask = (1 << xlen) - 1
    while at + 2 <= len(code):
        size = 4 if code[at] & 3 == 3 else 2
        word = int.from_bytes(code[at : at + size], "little")
        pc, link = begin + at, word >> 7 & 31
        if size == 4 and word & 0x7F == 0x17:  # auipc
            upper = link, pc + _signed(word & 0xFFFFF000, 32)
        else:
            if size == 4 and word & 0x7F == 0x6F and link in _LINKS:  # jal
                yield pc, (pc + _jal_offset(word)) & mask
            elif size == 4 and word & 0x707F == 0x67 and link in _LINKS and word >> 15 & 31 == upper[0]:  # jalr
                yield pc, (upper[1] + _signed(word >> 20, 12)) & mask & ~1
            elif size == 2 and xlen == 32 and word & 0xE003 == 0x2001:  # c.jal
                yield pc, (pc + _c_jal_offset(word)) & mask
            upper = -1, 0
        at += size


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _jal_offset(word: int) -> int:
    bits = (word >> 31) << 20 | (word >> 12 & 0xFF) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 0x3FF) << 1
    return _signed(bits, 21)


_C_JAL = ((12, 11), (11, 4), (10, 9), (9, 8), (8, 10), (7, 6), (6, 7), (5, 3), (4, 2), (3, 1), (2, 5))
"""Where a bit of the instruction stands in the offset."""


def _c_jal_offset(word: int) -> int:
    return _signed(sum((word >> at & 1) << bit for at, bit in _C_JAL), 12)
