"""Small harts with hand-encoded code, for tests that need no compiler (RISC-V ISA manual, volume I, chapter 34)."""

from enum import IntEnum

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.clint import Clint
from rvtrace_gdb.transport.simulated.hart.hart import Hart

BASE = 0x8000_0000
DATA = BASE + 0x800
HANDLER = BASE + 0x400
RAM_SIZE = 0x1000

NOP = 0x00000013
ECALL, EBREAK, MRET, WFI, FENCE_I = 0x00000073, 0x00100073, 0x30200073, 0x10500073, 0x0000100F
SPIN = 0x0000006F  # j .


class Csr(IntEnum):
    """Privileged Architecture 20240411, 2.2; Debug Specification 1.0, 4.9 and 5."""

    MSTATUS, MIE, MTVEC, MCOUNTINHIBIT = 0x300, 0x304, 0x305, 0x320
    MEPC, MCAUSE, MTVAL, MIP = 0x341, 0x342, 0x343, 0x344
    TSELECT, TDATA1, TDATA2, TINFO = 0x7A0, 0x7A1, 0x7A2, 0x7A4
    DCSR, DPC, DSCRATCH0 = 0x7B0, 0x7B1, 0x7B2
    MCYCLE, MINSTRET, TIME = 0xB00, 0xB02, 0xC01


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
