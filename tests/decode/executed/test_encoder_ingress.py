"""Blocks and traps out of a list of addresses."""

from rvtrace_gdb.decode.executed.encoder_ingress import BRANCH, PLAIN, UNINFERABLE, Block, IngressTrap, blocks_from_pcs
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode import assembler as asm

IMAGE = Image(32)
# 0x100: c.nop nop c.beqz(+4) c.nop jal(+0x100) | 0x20e: c.nop ecall | 0x300: 48-bit, c.jr
IMAGE.add_code(0x100, asm.C_NOP + asm.NOP + asm.c_beqz(4) + asm.C_NOP + asm.C_NOP + asm.jal(0x102))
IMAGE.add_code(0x20E, asm.C_NOP + asm.ECALL + asm.C_NOP)
IMAGE.add_code(0x300, asm.LONG_48 + asm.c_jr(1))


def items(*pcs: int) -> list[Block | IngressTrap]:
    return list(blocks_from_pcs(pcs, IMAGE))


def blocks(*pcs: int) -> list[Block]:
    return [item for item in items(*pcs) if isinstance(item, Block)]


def described(block: Block) -> tuple[int, int, int, IType, int, int]:
    return block.pc, block.halfwords, block.instructions, block.itype, block.taken_target, block.fall


def test_a_block_is_what_the_ingress_port_reports() -> None:
    first, second, third = blocks(0x100, 0x102, 0x106, 0x10A, 0x10C, 0x20E)
    assert described(first) == (0x100, 4, 3, IType.NOT_TAKEN, 0x10A, 0x108)
    assert (first.ending, list(first.lengths)) == (BRANCH, [1, 2, 1])
    assert described(second) == (0x10A, 3, 2, IType.OTHER_INFERABLE, 0x20E, 0x110)
    assert second.ending == PLAIN
    assert described(third) == (0x20E, 1, 1, IType.NONE, -1, 0x210)


def test_an_indirect_jump_ends_a_block() -> None:
    (block,) = blocks(0x300, 0x306)
    assert described(block) == (0x300, 4, 2, IType.RETURN, -1, 0x308)
    assert block.ending == UNINFERABLE


def test_equal_blocks_are_the_same_object() -> None:
    first, second, _ = blocks(*[0x300, 0x306] * 3)
    assert first is second


def test_steps_the_code_cannot_make_are_traps() -> None:
    """Between instructions, after a branch, and out of an ecall, which the list shows as executed."""
    assert items(0x100, 0x300)[1] == IngressTrap(0x102, True, 0, 0, 0x300)
    assert items(0x106, 0x300)[1] == IngressTrap(0x108, True, 0, 0, 0x300)
    assert items(0x10C, 0x300)[1] == IngressTrap(0x20E, True, 0, 0, 0x300)
    assert items(0x20E, 0x210, 0x300)[1] == IngressTrap(0x210, False, 0, 0, 0x300)
    assert [type(item) for item in items(0x306, 0x100)] == [Block, Block]


def test_nothing_ran() -> None:
    assert items() == []


def test_where_a_jump_goes_whose_register_was_just_loaded() -> None:
    """1.0, "Sequential Jump Optimization": lui or auipc right before it, in the same block."""
    image = Image(32)
    image.add_code(0x1000, asm.C_NOP + asm.lui(6, 0x80000) + asm.jalr(0, 6, 0x10))
    image.add_code(0x8000_0010, asm.auipc(1, 1) + asm.C_NOP + asm.jalr(1, 1))
    image.add_code(0x2000, asm.C_NOP)
    pcs = [0x1000, 0x1002, 0x1006, 0x8000_0010, 0x8000_0014, 0x8000_0016, 0x1006, 0x2000]
    inferred = [block.inferred for block in blocks_from_pcs(pcs, image) if isinstance(block, Block)]
    assert inferred == [0x8000_0010, -1, -1, -1]
