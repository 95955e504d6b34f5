"""What a hart reports to an encoder: the blocks it retired and the traps it took, in order.

This is the counterpart of the trace ingress port (N-Trace chapter 2, E-Trace chapter 4), with one item per straight run
of code instead of one per instruction. Encoders of every format take these items.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, sequential_target

PLAIN, BRANCH, UNINFERABLE = 0, 1, 2
"""The values of `Block.ending`: what an encoder has to do at the block's end."""

_MAX_BLOCK = 1024  # instructions; bounds what one block can add to a counter


class Block:
    """A run of consecutive instructions, left only by its last one. Immutable and shared by all its executions.

    pc            address of the first instruction
    halfwords     16-bit units of all instructions (what I-CNT counts)
    itype         of the last instruction; NOT_TAKEN for a conditional branch whatever its outcome, which the next
                  block's pc shows; IType.NONE if the block merely falls through
    taken_target  target of a branch or direct jump, -1 for anything else
    fall          address after the last instruction
    instructions  how many
    lengths       halfwords of each instruction, in order
    ending        PLAIN, BRANCH or UNINFERABLE
    inferred      target of an indirect jump whose register the instruction before it loads with a constant
                  ("sequentially inferable"), -1 for anything else
    absolute      target of an indirect jump whose register is x0, -1 for anything else
    """

    __slots__ = (
        "absolute", "ending", "fall", "halfwords", "inferred", "instructions", "itype", "lengths", "pc", "taken_target"
    )  # fmt: skip

    def __init__(
        self,
        pc: int,
        lengths: bytes,
        itype: IType = IType.NONE,
        taken_target: int = -1,
        inferred: int = -1,
        absolute: int = -1,
    ) -> None:
        self.pc = pc
        self.lengths = lengths
        self.halfwords = sum(lengths)
        self.instructions = len(lengths)
        self.itype = itype
        self.taken_target = taken_target
        self.inferred = inferred
        self.absolute = absolute
        self.fall = pc + 2 * self.halfwords
        last = Instruction(2, itype)
        self.ending = BRANCH if last.is_branch else UNINFERABLE if last.is_uninferable else PLAIN

    @classmethod
    def from_instructions(cls, pc: int, instructions: Iterable[Instruction], xlen: int = 64) -> "Block":
        """Return the block of these consecutive instructions, which begins at *pc*, of a hart of *xlen* bits."""
        listed = list(instructions)
        last = listed[-1]
        lengths = bytes(instruction.length // 2 for instruction in listed)
        last_pc = pc + 2 * sum(lengths[:-1])
        target = -1 if last.offset is None else last_pc + last.offset
        constant = -1 if last.via is None or last.via.register else last.via.offset & (1 << xlen) - 2
        return cls(pc, lengths, last.itype, target, _inferred(listed, last_pc, xlen), constant)

    def __repr__(self) -> str:
        return f"Block(0x{self.pc:x}..0x{self.fall:x}, {self.itype.name})"


class IngressTrap(NamedTuple):
    """An exception or interrupt that was taken. It retires nothing; it follows the blocks retired before it.

    *epc*: the address at which execution would have continued. *handler*: the address at which it continued instead.
    """

    epc: int
    interrupt: bool
    cause: int
    tval: int
    handler: int


KnownBlocks = dict[tuple[int, int, bool], Block]
"""Blocks by where they begin and end, and whether a custom instruction jumped at the end."""


def blocks_from_pcs(
    pcs: Iterable[int], image: Image, known_blocks: KnownBlocks | None = None
) -> Iterator[Block | IngressTrap]:
    """Yield the blocks and traps in a list of executed addresses, as another simulator logs them.

    A step the code cannot have made is taken for a trap; the list does not show its cause, and `interrupt` is a guess:
    false after ecall and ebreak, true elsewhere. Every listed address counts as retired. Equal blocks are the same
    object, even in several lists if they share *known_blocks*. Raises CodeMissing, UndecodableInstruction.
    """
    known_blocks = {} if known_blocks is None else known_blocks
    pending: list[Instruction] = []
    start = here = -1
    for pc in pcs:
        if pending and (pc != here or pending[-1].itype is not IType.NONE or len(pending) >= _MAX_BLOCK):
            last = pending[-1]
            jumped = last.custom and pc != here
            block = known_blocks.get((start, here, jumped))
            if block is None:
                block = _custom_jump(start, pending) if jumped else Block.from_instructions(start, pending, image.xlen)
                known_blocks[start, here, jumped] = block
            yield block
            epc = None if jumped else _impossible_step(block, last, pc)
            if epc is not None:
                yield IngressTrap(epc, last.itype is not IType.EXCEPTION, cause=0, tval=0, handler=pc)
            pending = []
        if not pending:
            start = pc
        instruction = image.instruction(pc)
        pending.append(instruction)
        here = pc + instruction.length
    if pending:
        last_block = known_blocks.get((start, here, False))
        if last_block is None:
            last_block = known_blocks[start, here, False] = Block.from_instructions(start, pending, image.xlen)
        yield last_block


def _inferred(listed: list[Instruction], last_pc: int, xlen: int) -> int:
    """Return the `Block.inferred` of a block of these instructions, the last one at *last_pc*."""
    if len(listed) < 2:
        return -1
    before, jump = listed[-2:]
    target = sequential_target(before, last_pc - before.length, jump, xlen)
    return -1 if target is None else target


def _custom_jump(start: int, pending: list[Instruction]) -> Block:
    """Return the block that a custom instruction ended by changing the flow: traced as an indirect
    jump (N-Trace 10.1).
    """
    return Block(start, bytes(instruction.length // 2 for instruction in pending), IType.OTHER_UNINFERABLE)


def _impossible_step(block: Block, last: Instruction, pc: int) -> int | None:
    """Return the address at which the hart would have continued, if only a trap leads to *pc*; otherwise None."""
    if last.is_uninferable:
        return None
    if last.is_inferable_jump:
        return None if pc == block.taken_target else block.taken_target
    if pc == block.fall or (last.is_branch and pc == block.taken_target):
        return None
    return block.fall if last.itype is not IType.EXCEPTION else block.fall - last.length
