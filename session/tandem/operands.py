"""What an instruction reads: its source registers, and the address of a load or store.

Source: RISC-V Instruction Set Manual, volume I: "Base Instruction Formats", "C Extension" (formats CI, CSS, CL, CS).
"""

from functools import lru_cache
from typing import NamedTuple

from rvtrace_gdb.decode.tandem.layout import FPR, GPR

_LOAD, _LOAD_FP, _STORE, _STORE_FP, _AMO = 0x03, 0x07, 0x23, 0x27, 0x2F
_IMMEDIATE = {0x13, 0x1B, 0x67, 0x0F}
_NOTHING = {0x17, 0x37, 0x6F}  # auipc, lui, jal
_FUSED = range(0x43, 0x50, 4)
_OP_FP, _SYSTEM = 0x53, 0x73
_HYPERVISOR = 4  # funct3 of hlv and hsv
_FROM_INTEGER = {0b11010, 0b11110}  # funct5 of fcvt.s.w and fmv.w.x
_OF_ONE = {0b01011, 0b01000, *_FROM_INTEGER, 0b11000, 0b11100}  # fsqrt, fcvt.s.d, and those to x: rs2 says which


class Addressed(NamedTuple):
    """A load or store at what register *base* holds plus *offset*. *data*: the register that is stored, -1: none."""

    base: int
    offset: int
    data: int = -1


@lru_cache(maxsize=1 << 16)
def sources(word: int, xlen: int) -> frozenset[int]:
    """The registers an instruction reads, x and f; those of extensions that are not known here: rs1 and rs2. No x0."""
    found = _sources16(word & 0xFFFF, xlen) if word & 3 != 3 else _sources32(word)
    return frozenset(found) - {GPR}


def _sources32(word: int) -> set[int]:
    opcode, rs1, rs2 = word & 0x7F, GPR + (word >> 15 & 31), GPR + (word >> 20 & 31)
    f1, f2 = rs1 - GPR + FPR, rs2 - GPR + FPR
    if opcode in _NOTHING:
        return set()
    if opcode in (_LOAD, _LOAD_FP) or opcode in _IMMEDIATE:
        return {rs1}
    if opcode == _STORE_FP:
        return {rs1, f2}
    if opcode in _FUSED:
        return {f1, f2, FPR + (word >> 27)}
    if opcode == _OP_FP:
        funct5 = word >> 27
        return {rs1 if funct5 in _FROM_INTEGER else f1} | (set() if funct5 in _OF_ONE else {f2})
    if opcode == _SYSTEM and word >> 12 & 7 != _HYPERVISOR:
        return {rs1} if word >> 12 & 7 in (1, 2, 3) else set()
    return {rs1, rs2}


def _sources16(half: int, xlen: int) -> set[int]:
    """By quadrant and funct3."""
    quadrant, funct3 = half & 3, half >> 13
    rd, rs2, rs1_, rs2_ = (GPR + number for number in (half >> 7 & 31, half >> 2 & 31, *_primes(half)))
    if quadrant == 0:
        return _sources_of_quadrant_0(funct3, rs1_, rs2_, xlen)
    if quadrant == 1:
        if funct3 == 4:
            return {rs1_, rs2_} if half >> 10 & 3 == 3 else {rs1_}
        if funct3 >= 6:
            return {rs1_}
        reads = funct3 == 0 or (funct3 == 1 and xlen == 64) or (funct3 == 3 and rd == GPR + 2)
        return {rd} if reads else set()
    if funct3 == 0:
        return {rd}
    if funct3 < 4:
        return {GPR + 2}
    if funct3 > 4:
        return {GPR + 2, rs2 - GPR + FPR if _stores_floating(funct3, xlen) else rs2}
    if rs2 == GPR:
        return {rd}
    return {rd, rs2} if half >> 12 & 1 else {rs2}


def _sources_of_quadrant_0(funct3: int, rs1: int, rs2: int, xlen: int) -> set[int]:
    if funct3 == 0:
        return {GPR + 2}
    if funct3 < 4:
        return {rs1}
    return {rs1, rs2 - GPR + FPR if _stores_floating(funct3, xlen) else rs2}


def _primes(half: int) -> tuple[int, int]:
    """rs1' and rs2': the eight popular registers."""
    return (half >> 7 & 7) + 8, (half >> 2 & 7) + 8


def _stores_floating(funct3: int, xlen: int) -> bool:
    return funct3 == 5 or (funct3 == 7 and xlen == 32)


def addressed(word: int, xlen: int) -> Addressed | None:
    """Where an instruction loads or stores; None: it does not, or is one of those that are not known here."""
    if word & 3 != 3:
        return _addressed16(word & 0xFFFF, xlen)
    opcode, base, rs2 = word & 0x7F, GPR + (word >> 15 & 31), word >> 20 & 31
    if opcode in (_LOAD, _LOAD_FP):
        return Addressed(base, _signed(word >> 20 & 0xFFF, 12))
    if opcode in (_STORE, _STORE_FP):
        offset = _signed((word >> 25 & 0x7F) << 5 | word >> 7 & 31, 12)
        return Addressed(base, offset, (GPR if opcode == _STORE else FPR) + rs2)
    return Addressed(base, 0) if opcode == _AMO else None


def _addressed16(half: int, xlen: int) -> Addressed | None:
    quadrant, funct3 = half & 3, half >> 13
    if quadrant == 1 or funct3 in (0, 4):
        return None
    double = funct3 in (1, 5) or (funct3 in (3, 7) and xlen == 64)
    floating = funct3 in (1, 5) or (not double and funct3 in (3, 7))
    first = FPR if floating else GPR
    if quadrant == 0:
        low = (half >> 10 & 7) << 3
        offset = low | (half >> 5 & 3) << 6 if double else low | (half >> 6 & 1) << 2 | (half >> 5 & 1) << 6
        data = first + 8 + (half >> 2 & 7) if funct3 > 4 else -1
        return Addressed(GPR + 8 + (half >> 7 & 7), offset, data)
    if funct3 < 4:
        high, low = half >> 12 & 1, half >> 2 & 31
        offset = low & 0x18 | (low & 7) << 6 if double else low & 0x1C | (low & 3) << 6
        return Addressed(GPR + 2, offset | high << 5)
    bits = half >> 7 & 0x3F
    offset = bits & 0x38 | (bits & 7) << 6 if double else bits & 0x3C | (bits & 3) << 6
    return Addressed(GPR + 2, offset, first + (half >> 2 & 31))


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value
