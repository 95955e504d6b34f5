"""The program as transfers between blocks: what control transfer each instruction is, in the words of CTR.

Ref: RISC-V Control Transfer Records 1.0, table "Control Transfer Type Definitions", which tells jumps without linkage
(10, 11) from others with linkage (14, 15) by rd.
"""

import re
from functools import cached_property
from typing import NamedTuple

from rvtrace_gdb.decode.ctr.registers import Change, Known, change_of, upper_of
from rvtrace_gdb.decode.errors import CodeMissing, UndecodableInstruction
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.instructions import Instruction, IType

_LONGEST = 512  # instructions of a block
_EBREAKS = (0x0010_0073, 0x9002)
_SCTRCLR = 0x1040_0073
_SYSTEM = re.compile(rb"[\x73\xf3](?=[\x00-\xff]{3})")
"""The first byte of instructions that access CSRs, and others with their opcode."""
_CTR = frozenset({0x14E, 0x14F, 0x15F, 0x24E, 0x34E, 0x181, 0x182, 0x183, 0x281, 0x282, 0x381, 0x382, 0x383})
"""*ctrctl, sctrstatus and sctrdepth; *ctrcontrol(h) and *ctrstatus of draft 0.1.4."""

_WITHOUT_LINKAGE = {
    IType.OTHER_UNINFERABLE: IType.UNINFERABLE_TAIL_CALL,
    IType.OTHER_INFERABLE: IType.INFERABLE_TAIL_CALL,
}


class Transfer(NamedTuple):
    """What the instruction at *pc* is.

    kind    its TYPE; NOT_TAKEN for any conditional branch, NONE where execution just goes on, EXCEPTION where it cannot
    fall    the address behind it
    target  of a branch or direct jump; None: the code does not tell
    halts   ebreak: it may have halted the hart instead of raising an exception
    switches  it writes a register that says what is recorded
    link    the register that gets the return address, 0 for none
    mask    of addresses
    instruction, change
    """

    pc: int
    kind: IType
    fall: int
    target: int | None
    halts: bool
    switches: bool
    link: int
    mask: int
    instruction: Instruction
    change: Change

    def leads_to(self, known: Known) -> int | None:
        """Where a jump goes, None where what is known does not tell."""
        via = self.instruction.via
        if via is None:
            return self.target
        if via.register == 0:
            return via.offset & self.mask & ~1
        upper = known.upper
        base = upper[1] if upper is not None and upper[0] == via.register else known.link(via.register)
        return None if base is None else base + via.offset & self.mask & ~1

    def after(self, known: Known) -> Known:
        """What is known of the registers when a jump was made, or a branch."""
        known = known._replace(upper=None)
        return known.linked(self.link, self.fall) if self.link else known

    @property
    def is_branch(self) -> bool:
        """A conditional branch."""
        return self.kind is IType.NOT_TAKEN

    @property
    def is_direct(self) -> bool:
        """A jump whose target the code tells, or the jump table of cm.jt and cm.jalt."""
        return self.instruction.is_inferable_jump


class Block(NamedTuple):
    """Instructions that run one after the other, at *pcs*; *end*, the last of them, may go elsewhere.

    *behind*: the address behind them; *missing*: why there is no instruction, "" where there is.
    *switches*: what is recorded behind them is another matter.
    """

    steps: tuple[Transfer, ...]
    pcs: tuple[int, ...]
    end: Transfer | None
    behind: int
    missing: str = ""
    switches: bool = False

    def up_to(self, count: int, known: Known) -> Known:
        """What is known of the registers behind the first *count* instructions, none of which is *end*."""
        if not count:
            return known
        for step in self.steps[:count]:
            if step.change is not None:
                known = step.change(known)
        upper, last = None, self.steps[count - 1]
        if last.instruction.upper is not None:
            upper = upper_of(last.instruction.upper, last.pc)
        return known._replace(upper=upper)


class Code:
    """The transfers and blocks of one image, found when first asked for."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.mask = (1 << image.xlen) - 1
        self._transfers: dict[int, Transfer | str] = {}
        self._blocks: dict[int, Block] = {}

    def at(self, pc: int) -> Transfer | str:
        """What is at *pc*, or why that cannot be said."""
        known = self._transfers.get(pc)
        if known is None:
            known = self._transfers[pc] = self._transfer(pc)
        return known

    @cached_property
    def may_switch(self) -> bool:
        """Whether anything in the program looks like an instruction that changes what is recorded."""
        segments = ((data, found.start()) for _, data in self.image.segments for found in _SYSTEM.finditer(data))
        return any(not at & 1 and _switches(int.from_bytes(data[at : at + 4], "little")) for data, at in segments)

    def block(self, pc: int) -> Block:
        """The block that begins at *pc*."""
        known = self._blocks.get(pc)
        if known is None:
            known = self._blocks[pc] = self._block(pc)
        return known

    def _block(self, pc: int) -> Block:
        steps: list[Transfer] = []
        while len(steps) < _LONGEST:
            step = self.at(pc)
            if isinstance(step, str):
                return _block(steps, None, pc, step)
            steps.append(step)
            if step.kind is not IType.NONE:
                return _block(steps, step, step.fall)
            pc = step.fall
            if step.switches:
                return _block(steps, None, pc, switches=True)
        return _block(steps, None, pc)

    def _transfer(self, pc: int) -> Transfer | str:
        try:
            instruction = self.image.instruction(pc)
            word = int.from_bytes(self.image.read(pc, min(instruction.length, 4)), "little")
        except CodeMissing:
            return "there is no code"
        except UndecodableInstruction as error:
            return str(error)
        fall = pc + instruction.length & self.mask
        target = None if instruction.offset is None else pc + instruction.offset & self.mask
        kind, link = instruction.itype, _link(instruction, word)
        if not link:
            kind = _WITHOUT_LINKAGE.get(kind, kind)
        change = change_of(word, instruction, self.image.xlen, zcm=self.image.zcm)
        halts = kind is IType.EXCEPTION and word in _EBREAKS
        return Transfer(pc, kind, fall, target, halts, _switches(word), link, self.mask, instruction, change)


def _block(
    steps: list[Transfer], end: Transfer | None, behind: int, missing: str = "", *, switches: bool = False
) -> Block:
    return Block(tuple(steps), tuple(step.pc for step in steps), end, behind, missing, switches)


def _switches(word: int) -> bool:
    """Whether an instruction writes one of the CSRs in `_CTR`."""
    funct3, source = word >> 12 & 7, word >> 15 & 31
    writes = funct3 in (1, 5) or (funct3 in (2, 3, 6, 7) and source)
    return word == _SCTRCLR or (word & 0x7F == 0x73 and bool(writes) and word >> 20 in _CTR)


def _link(instruction: Instruction, word: int) -> int:
    """The register a jump puts the return address into."""
    jumps = instruction.is_inferable_jump or instruction.is_uninferable
    if not jumps or instruction.itype is IType.TRAP_RETURN:
        return 0
    if instruction.length == 4:
        return word >> 7 & 31
    return int(instruction.itype in (IType.INFERABLE_CALL, IType.UNINFERABLE_CALL, IType.COROUTINE_SWAP))
