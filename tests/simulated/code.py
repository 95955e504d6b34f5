"""Small harts with hand-encoded code, for tests that need no compiler (RISC-V ISA manual, volume I, chapter 34)."""

from transport.simulated.bus import Bus
from transport.simulated.clint import Clint
from transport.simulated.hart import Hart

BASE = 0x8000_0000
DATA = BASE + 0x800
RAM_SIZE = 0x1000

NOP = 0x00000013
ECALL, EBREAK, MRET, WFI, FENCE_I = 0x00000073, 0x00100073, 0x30200073, 0x10500073, 0x0000100F
SPIN = 0x0000006F  # j .


def addi(rd: int, rs1: int, imm: int) -> int:
    return (imm & 0xFFF) << 20 | rs1 << 15 | rd << 7 | 0x13


def lw(rd: int, rs1: int, imm: int = 0) -> int:
    return (imm & 0xFFF) << 20 | rs1 << 15 | 2 << 12 | rd << 7 | 0x03


def sw(rs2: int, rs1: int, imm: int = 0) -> int:
    return (imm >> 5 & 0x7F) << 25 | rs2 << 20 | rs1 << 15 | 2 << 12 | (imm & 31) << 7 | 0x23


def amoadd_w(rd: int, rs2: int, rs1: int) -> int:
    return rs2 << 20 | rs1 << 15 | 2 << 12 | rd << 7 | 0x2F


def csrrw(rd: int, number: int, rs1: int) -> int:
    return number << 20 | rs1 << 15 | 1 << 12 | rd << 7 | 0x73


def csrr(rd: int, number: int) -> int:
    return number << 20 | 2 << 12 | rd << 7 | 0x73


def hart_with(*words: int, xlen: int = 64, extensions: str = "IMAC") -> Hart:
    """A hart with 4 KiB of RAM and a CLINT, these instructions at its reset vector, x3 pointing to free memory."""
    bus = Bus(BASE, RAM_SIZE)
    hart = Hart(bus, xlen, extensions)
    Clint(hart, bus)
    put(hart, BASE, *words)
    hart.x[3] = DATA
    return hart


def put(hart: Hart, address: int, *words: int) -> None:
    for index, word in enumerate(words):
        hart.bus.write(address + 4 * index, 4, word)
