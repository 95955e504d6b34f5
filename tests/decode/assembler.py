"""Instructions as bytes, for the programs the tests invent. Encodings: the RISC-V Instruction Set Manual, volume I.

`test_instructions` holds these against objdump, so that no mistake here can hide one in the classification.
"""


def _word(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _half(value: int) -> bytes:
    return value.to_bytes(2, "little")


C_NOP = _half(0x0001)
NOP = _word(0x0000_0013)
C_EBREAK = _half(0x9002)
EBREAK = _word(0x0010_0073)
ECALL = _word(0x0000_0073)
MRET = _word(0x3020_0073)
SRET = _word(0x1020_0073)
CUSTOM_0 = _word(0x0000_000B)
LONG_48 = _half(0x001F) + bytes(4)
LONG_64 = _half(0x003F) + bytes(6)


def beq(offset: int, rs1: int = 10, rs2: int = 11) -> bytes:
    """beq rs1, rs2, pc + offset; any of the branches looks like it to a trace."""
    imm = offset & 0x1FFF
    high = (imm >> 12) << 31 | (imm >> 5 & 0x3F) << 25
    return _word(high | rs2 << 20 | rs1 << 15 | (imm >> 1 & 0xF) << 8 | (imm >> 11 & 1) << 7 | 0x63)


def jal(offset: int, rd: int = 0) -> bytes:
    """jal rd, pc + offset."""
    imm = offset & 0x1F_FFFF
    fields = (imm >> 20) << 31 | (imm >> 1 & 0x3FF) << 21 | (imm >> 11 & 1) << 20 | (imm >> 12 & 0xFF) << 12
    return _word(fields | rd << 7 | 0x6F)


def jalr(rd: int, rs1: int, offset: int = 0) -> bytes:
    """jalr rd, offset(rs1)."""
    return _word((offset & 0xFFF) << 20 | rs1 << 15 | rd << 7 | 0x67)


def c_j(offset: int, *, link: bool = False) -> bytes:
    """c.j pc + offset; with *link* c.jal, which only RV32 has."""
    imm = offset & 0xFFF
    bits = (
        (imm >> 11 & 1) << 12
        | (imm >> 4 & 1) << 11
        | (imm >> 8 & 3) << 9
        | (imm >> 10 & 1) << 8
        | (imm >> 6 & 1) << 7
        | (imm >> 7 & 1) << 6
        | (imm >> 1 & 7) << 3
        | (imm >> 5 & 1) << 2
    )
    return _half((0x2001 if link else 0xA001) | bits)


def c_beqz(offset: int) -> bytes:
    """c.beqz a0, pc + offset."""
    imm = offset & 0x1FF
    bits = (imm >> 8 & 1) << 12 | (imm >> 3 & 3) << 10 | (imm >> 6 & 3) << 5 | (imm >> 1 & 3) << 3 | (imm >> 5 & 1) << 2
    return _half(0xC001 | 2 << 7 | bits)


def c_jr(rs1: int) -> bytes:
    """c.jr rs1; c.jr ra is ret."""
    return _half(0x8002 | rs1 << 7)


def c_jalr(rs1: int) -> bytes:
    """c.jalr rs1."""
    return _half(0x9002 | rs1 << 7)


def lui(rd: int, immediate: int) -> bytes:
    """lui rd, immediate: bits 31 to 12 of what it loads."""
    return _word((immediate & 0xF_FFFF) << 12 | rd << 7 | 0x37)


def auipc(rd: int, immediate: int) -> bytes:
    """auipc rd, immediate: bits 31 to 12 of what it adds to its own address."""
    return _word((immediate & 0xF_FFFF) << 12 | rd << 7 | 0x17)


def c_lui(rd: int, immediate: int) -> bytes:
    """c.lui rd, immediate: as lui, of 6 bits with sign, not 0; rd is neither x0 nor x2."""
    return _half(0x6001 | (immediate >> 5 & 1) << 12 | rd << 7 | (immediate & 31) << 2)
