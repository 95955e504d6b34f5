"""Random code of all sorts, as words: what computes, accesses memory, jumps, traps, changes itself.

Encodings: The RISC-V Instruction Set Manual, Volume I, 20240411, chapter 35.
"""

import random
from collections.abc import Sequence

from tests.transport.simulated.hart.encoded_code import BASE, ECALL, FENCE_I, RAM_SIZE, Csr, addi, amoadd_w, csrr, csrrw

# funct7, funct3 of the operations on two registers, of RV64 and on words.
REGISTER_OPERATIONS = [(f7, f3) for f7 in (0, 1) for f3 in range(8)] + [(0x20, 0), (0x20, 5)]
WORD_OPERATIONS = [(0, 0), (0x20, 0), (0, 1), (0, 5), (0x20, 5), (1, 0), (1, 4), (1, 5), (1, 6), (1, 7)]
# A handler that goes on behind the instruction that trapped.
SKIP = (csrr(31, Csr.MEPC), addi(31, 31, 4), csrrw(0, Csr.MEPC, 31), 0x30200073)


def register_operation(funct7: int, funct3: int, rd: int, rs1: int, rs2: int, opcode: int = 0x33) -> int:
    return funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode


def immediate_operation(funct3: int, rd: int, rs1: int, immediate: int, opcode: int = 0x13) -> int:
    return (immediate & 0xFFF) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode


def _memory(rng: random.Random, funct3: int, *, store: bool) -> int:
    """An access near x3 or x4, mostly aligned."""
    register, base = rng.randrange(31), rng.choice((3, 3, 4, rng.randrange(32)))
    offset = rng.choice((8 * rng.randrange(-20, 20), rng.randrange(-160, 160)))
    if not store:
        return immediate_operation(funct3, register, base, offset, 0x03)
    return (offset >> 5 & 0x7F) << 25 | register << 20 | base << 15 | funct3 << 12 | (offset & 31) << 7 | 0x23


def _branch(rng: random.Random, funct3: int) -> int:
    offset = 4 * rng.randrange(-6, 12) + rng.choice((0, 0, 0, 2))
    bits = (offset >> 12 & 1) << 31 | (offset >> 5 & 0x3F) << 25 | (offset >> 1 & 15) << 8 | (offset >> 11 & 1) << 7
    return bits | rng.randrange(32) << 20 | rng.randrange(32) << 15 | funct3 << 12 | 0x63


def _jump(rng: random.Random) -> int:
    rd = rng.choice((0, 1, 5))
    if rng.random() < 0.3:
        return rng.choice((1, 3, 5)) << 15 | rng.randrange(4) << 20 | rd << 7 | 0x67
    offset = 4 * rng.randrange(1, 8)
    return (offset >> 1 & 0x3FF) << 21 | rd << 7 | 0x6F


def _special(rng: random.Random) -> int:
    return rng.choice((
        ECALL, FENCE_I, 0x0FF0000F, amoadd_w(7, 8, 3), csrr(9, Csr.MINSTRET), csrr(10, Csr.TIME), 0,
        csrrw(0, Csr.MEPC, 11), register_operation(0, 0, 12, 4, 3, 0x2F | 2 << 12),
    ))  # fmt: skip


def _word(rng: random.Random, xlen: int) -> int:
    sort = rng.randrange(100)
    if sort < 30:
        word_wide = xlen == 64 and rng.random() < 0.3
        funct = rng.choice(WORD_OPERATIONS if word_wide else REGISTER_OPERATIONS)
        rd, rs1, rs2 = (rng.randrange(32) for _ in range(3))
        return register_operation(*funct, rd, rs1, rs2, 0x3B if word_wide else 0x33)
    if sort < 50:
        return immediate_operation(rng.randrange(8), rng.randrange(32), rng.randrange(32), rng.randrange(1 << 12))
    if sort < 55:
        return rng.randrange(1 << 20) << 12 | rng.randrange(32) << 7 | rng.choice((0x37, 0x17))
    if sort < 72:
        return _memory(rng, rng.randrange(7), store=False)
    if sort < 84:
        return _memory(rng, rng.randrange(4), store=True)
    if sort < 93:
        return _branch(rng, rng.choice((0, 1, 4, 5, 6, 7)))
    return _jump(rng) if sort < 97 else _special(rng)


def random_code(rng: random.Random, xlen: int, count: int) -> Sequence[int]:
    """Words that never leave the code for long: the last one jumps to the first."""
    words = [_word(rng, xlen) for _ in range(count)]
    offset = -4 * count
    back = (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3FF) << 21 | (offset >> 11 & 1) << 20
    return (*words, back | (offset >> 12 & 0xFF) << 12 | 0x6F)


def random_registers(rng: random.Random, xlen: int) -> list[int]:
    """Values at which carries and signs go wrong, and addresses: of memory, and where there is none."""
    edges = [0, 1, 2, 31, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << xlen - 1, (1 << xlen) - 1, (1 << xlen - 1) - 1]
    values = [rng.choice((*edges, rng.randrange(1 << xlen), BASE + rng.randrange(RAM_SIZE))) for _ in range(32)]
    return [0, BASE + 8, values[2], BASE + 0x800, BASE + rng.choice((0x40, RAM_SIZE - 64)), *values[5:]]
