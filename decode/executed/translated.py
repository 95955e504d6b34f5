"""QEMU's translation blocks: which instructions a block has, and which of them were executed.

The log has only their first addresses. A block is a straight run of code that ends, at the latest, with a jump or
branch; where it may end before that is known from target/riscv/translate.c and is used only where what ran next leaves
a choice.
"""

from rvtrace_gdb.decode.errors import CodeMissing, UndecodableInstruction
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.instructions import Instruction, IType

MOST = 512
"""Instructions of a block (TCG_MAX_INSNS)."""

_PAGE = 0x1000  # bytes; a block stays within its page (TARGET_PAGE_SIZE)
_SYSTEM, _HYPERVISOR_LOAD = 0x73, 4
_MISC_MEM, _FENCE_I = 0x0F, 1
_OP_V, _VSET = 0x57, 7


class Translator:
    """The code the blocks are made of."""

    def __init__(self, image: Image) -> None:
        self.image = image

    def straight(self, pc: int, most: int) -> list[int]:
        """The addresses from *pc* to the first jump, branch or trap instruction, or to the end of the known code."""
        pcs: list[int] = []
        while len(pcs) < most:
            instruction = self.instruction(pc)
            if instruction is None:
                break
            pcs.append(pc)
            if instruction.itype is not IType.NONE:
                break
            pc += instruction.length
        return pcs

    def instruction(self, pc: int) -> Instruction | None:
        """What stands at *pc*, None if that is not known or no instruction."""
        try:
            return self.image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return None

    def fall(self, pc: int) -> int:
        """The address after the instruction at *pc*."""
        return pc + self.image.instruction(pc).length

    def may_go(self, pc: int, next_pc: int) -> bool:
        """Whether *next_pc* can come after the instruction at *pc*."""
        instruction = self.image.instruction(pc)
        if instruction.is_uninferable or (instruction.is_inferable_jump and instruction.offset is None):
            return True
        if instruction.offset is not None and next_pc == pc + instruction.offset:
            return True
        return next_pc == pc + instruction.length and not instruction.is_inferable_jump

    def is_one(self, pc: int, next_pc: int) -> bool | None:
        """Whether the block at *pc* ended after its first instruction without need, *next_pc* being the next block.

        None where that does not tell whether all blocks have one instruction.
        """
        pcs = self.straight(pc, 2)
        if len(pcs) < 2 or self.ends_at(pcs) < 2:
            return None
        return next_pc == pcs[1]

    def ends_at(self, pcs: list[int]) -> int:
        """How many of the instructions *pcs*, a straight run, are translated together."""
        page = pcs[0] & -_PAGE
        for count, pc in enumerate(pcs[1:], 1):
            if self._ends_block(pcs[count - 1]) or self.fall(pc) - page > _PAGE or pc - page >= _PAGE:
                return count
        return len(pcs)

    def _ends_block(self, pc: int) -> bool:
        """Whether QEMU leaves the block after this instruction because it may have changed how code is translated."""
        data = self.image.read(pc, min(self.image.instruction(pc).length, 4))
        opcode, funct3 = data[0] & 0x7F, data[1] >> 4 & 7
        return (
            (opcode == _SYSTEM and funct3 != _HYPERVISOR_LOAD)
            or (opcode == _MISC_MEM and funct3 == _FENCE_I)
            or (opcode == _OP_V and funct3 == _VSET)
        )


class Translated:
    """One block. *most*: how many instructions it may have.

    *end*: the address after it; *mode*: its privilege mode and whether in a guest; None where the log does not say.
    """

    __slots__ = ("_end", "_most", "_runs", "_translator", "mode", "pc")

    def __init__(
        self, translator: Translator, pc: int, most: int, end: int | None = None, mode: tuple[int, bool] | None = None
    ) -> None:
        self._translator, self._most, self._end = translator, most, end
        self.pc, self.mode = pc, mode
        self._runs: dict[int, tuple[int, ...]] = {}

    def run_to(self, next_pc: int) -> tuple[int, ...]:
        """What was executed when the block ran to its end, and *next_pc* came after it."""
        run = self._runs.get(next_pc)
        if run is None:
            run = self._runs[next_pc] = tuple(self._completed(next_pc))
        return run

    def run_before(self, pc: int) -> tuple[int, ...]:
        """What was executed when the block was left before the instruction at *pc*; all of it if *pc* is not in it."""
        if pc == self.pc:  # whatever stands there
            return ()
        pcs = self._straight()
        return tuple(pcs[: pcs.index(pc)]) if pc in pcs else self.run_to(pc)

    def covers(self, pc: int) -> bool:
        """Whether the instruction at *pc* may be one of the block."""
        return pc == self.pc or pc in self._straight()

    def _straight(self) -> list[int]:
        pcs = self._translator.straight(self.pc, self._most)
        return pcs if self._end is None else [pc for pc in pcs if pc < self._end]

    def _completed(self, next_pc: int) -> list[int]:
        pcs, translator = self._straight(), self._translator
        if not pcs:
            return [self.pc]  # of unknown code: the reader of the addresses will see that
        if next_pc == translator.fall(pcs[-1]):
            return pcs
        natural = translator.ends_at(pcs)
        if next_pc not in pcs[1:]:
            return pcs if translator.may_go(pcs[-1], next_pc) else pcs[:natural]
        count = pcs.index(next_pc, 1)
        both = translator.may_go(pcs[-1], next_pc)  # it ended before the instruction there, or went back to it
        return pcs if both and count != natural else pcs[:count]
