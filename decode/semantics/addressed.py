"""The address of a load or store: the register and the offset that its code names, and the register that it stores.

Source: RISC-V Instruction Set Manual, volume I: "Base Instruction Formats", "A Extension", "C Extension" (formats CSS,
CL, CS). Loads and stores of Zcb are not known here.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import F, X

_LOAD, _LOAD_FP, _STORE, _STORE_FP, _AMO = 0x03, 0x07, 0x23, 0x27, 0x2F


class Addressed(NamedTuple):
    """A load or store at the value of register *base* plus *offset*. *data*: the register that is stored, -1: none."""

    base: int
    offset: int
    data: int = -1


def addressed(word: int, xlen: int) -> Addressed | None:
    """Return the address of a load or store; None: the instruction is none, or unknown here."""
    if word & 3 != 3:
        return _addressed16(word & 0xFFFF, xlen)
    opcode, base, rs2 = word & 0x7F, X + (word >> 15 & 31), word >> 20 & 31
    if opcode in (_LOAD, _LOAD_FP):
        return Addressed(base, _signed(word >> 20 & 0xFFF, 12))
    if opcode in (_STORE, _STORE_FP):
        offset = _signed((word >> 25 & 0x7F) << 5 | word >> 7 & 31, 12)
        return Addressed(base, offset, (X if opcode == _STORE else F) + rs2)
    return Addressed(base, 0) if opcode == _AMO else None


def _addressed16(half: int, xlen: int) -> Addressed | None:
    quadrant, funct3 = half & 3, half >> 13
    if quadrant == 1 or funct3 in (0, 4):
        return None
    double = funct3 in (1, 5) or (funct3 in (3, 7) and xlen == 64)
    floating = funct3 in (1, 5) or (not double and funct3 in (3, 7))
    first = F if floating else X
    if quadrant == 0:
        low = (half >> 10 & 7) << 3
        offset = low | (half >> 5 & 3) << 6 if double else low | (half >> 6 & 1) << 2 | (half >> 5 & 1) << 6
        data = first + 8 + (half >> 2 & 7) if funct3 > 4 else -1
        return Addressed(X + 8 + (half >> 7 & 7), offset, data)
    if funct3 < 4:
        high, low = half >> 12 & 1, half >> 2 & 31
        offset = low & 0x18 | (low & 7) << 6 if double else low & 0x1C | (low & 3) << 6
        return Addressed(X + 2, offset | high << 5)
    bits = half >> 7 & 0x3F
    offset = bits & 0x38 | (bits & 7) << 6 if double else bits & 0x3C | (bits & 3) << 6
    return Addressed(X + 2, offset, first + (half >> 2 & 31))


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value
