"""The program as control transfers between blocks, and what is certain about a hart's registers along a path.

Each instruction has the type of control transfer that CTR defines for it. Source: RISC-V Control Transfer Records 1.0,
table "Control Transfer Type Definitions", which tells jumps without linkage (10, 11) from others with linkage (14, 15)
by rd.

A return that leaves no record goes to the address in its register. A call on the way put it there; only what the code
does to that register, or to its place on the stack, changes it. So only functions that return as compilers make them do
are followed: a switch of stacks or a longjmp loads from elsewhere, and is unknown. The assumption: no code writes over
a saved return address through another pointer than sp. Source: the RISC-V Instruction Set Manual, volume I, encodings.
"""

import re
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction, Upper

_SLOT = 8  # bytes a saved address takes at most
SP = 2
LINKS = (1, 5)


class TransferRegisters(NamedTuple):
    """What is known of the registers at some moment.

    links  ((register, address), ...): x1 and x5, as far as known
    sp     how far above its first known value, None if not known
    slots  ((offset as of *sp*, address), ...): what is saved on the stack
    upper  (register, value): what the instruction directly before loaded with lui or auipc
    """

    links: tuple[tuple[int, int], ...] = ()
    sp: int | None = 0
    slots: tuple[tuple[int, int], ...] = ()
    upper: tuple[int, int] | None = None

    def link(self, register: int) -> int | None:
        """Return the address in x1 or x5, None if it is not known."""
        return dict(self.links).get(register)

    def linked(self, register: int, address: int | None) -> "TransferRegisters":
        """Return the state with an address, or with something unknown, in a register."""
        if register == SP:
            return TransferRegisters(self.links, None, (), self.upper)
        if register not in LINKS:
            return self
        links = {**dict(self.links), register: address}
        return self._replace(links=tuple((number, links[number]) for number in LINKS if links.get(number) is not None))  # type: ignore[misc]

    def moved(self, by: int) -> "TransferRegisters":
        """Return the state with another stack pointer. What is below it then is not valid any more."""
        if self.sp is None:
            return self
        sp = self.sp + by
        return self._replace(sp=sp, slots=tuple(slot for slot in self.slots if slot[0] >= sp))

    def stored(self, offset: int, size: int, address: int | None = None) -> "TransferRegisters":
        """Return the state after a store of *size* bytes to *offset* above sp: of a known address, or of something
        else.
        """
        if self.sp is None:
            return self
        at = self.sp + offset
        slots = [slot for slot in self.slots if slot[0] + _SLOT <= at or at + size <= slot[0]]
        if address is not None:
            slots.append((at, address))
        return self._replace(slots=tuple(sorted(slots)))

    def loaded(self, register: int, offset: int) -> "TransferRegisters":
        """Return the state after a load of a whole register from *offset* above sp."""
        at = None if self.sp is None else self.sp + offset
        return self.linked(register, None if at is None else dict(self.slots).get(at))


NOTHING_KNOWN = TransferRegisters()
RegisterChange = Callable[[TransferRegisters], TransferRegisters] | None
"""The effect of an instruction on what is known; None: nothing, except for `TransferRegisters.upper`."""


def change_of(word: int, instruction: Instruction, xlen: int, *, zcm: bool) -> RegisterChange:
    """Return the effect of the instruction with the low 32 bits *word*. It does not write the link
    register of a jump.
    """
    if instruction.length == 2:
        return _change16(word & 0xFFFF, xlen, zcm)
    if instruction.length != 4 or instruction.custom:
        return lambda known: NOTHING_KNOWN
    return _change32(word, xlen)


def upper_of(upper: Upper, pc: int) -> tuple[int, int]:
    """Return the register that a lui or auipc at *pc* writes, and the value (modulo 2**XLEN)."""
    return upper.register, upper.value + (pc if upper.relative else 0)


# 32-bit instructions, by opcode

_LOAD, _STORE, _FP_STORE, _OP_IMM, _AMO, _FENCE = 0x03, 0x23, 0x27, 0x13, 0x2F, 0x0F
_NO_RD = (0x63, 0x07, 0x43, 0x47, 0x4B, 0x4F, 0x6F, 0x67)  # branches, FP loads, FMA; jumps: see `ControlTransfer.link`
_FP_TO_X = (0b10100, 0b11000, 0b11100)  # compare, fcvt to an integer, fmv to an integer and fclass


def _change32(word: int, xlen: int) -> RegisterChange:
    opcode, funct3 = word & 0x7F, word >> 12 & 7
    rd, rs1, rs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    if opcode in (_STORE, _FP_STORE):
        offset = _signed((word >> 25) << 5 | rd, 12)
        return _store_change(rs2, offset, funct3, opcode == _FP_STORE, xlen) if rs1 == SP else None
    if opcode in (_AMO, _FENCE) and rs1 == SP:  # amo* and sc, cbo.zero
        return lambda known: NOTHING_KNOWN
    if opcode in _NO_RD or opcode == _FENCE or not _writes_x(opcode, funct3, word) or rd not in (SP, *LINKS):
        return None
    immediate = _signed(word >> 20, 12)
    if opcode == _LOAD and rs1 == SP and funct3 == (3 if xlen == 64 else 2):
        return lambda known: known.loaded(rd, immediate)
    if opcode == _OP_IMM and funct3 == 0:
        return _addi(rd, rs1, immediate)
    return lambda known: known.linked(rd, None)


def _writes_x(opcode: int, funct3: int, word: int) -> bool:
    """Return whether rd is an integer register, for opcodes where it may be another."""
    if opcode == 0x53:
        return word >> 27 in _FP_TO_X
    if opcode == 0x57:  # vset*; vmv.x.s, vcpop, vfirst
        return funct3 == 7 or (funct3 == 2 and word >> 26 == 0b010000)
    return True


def _addi(rd: int, rs1: int, immediate: int) -> RegisterChange:
    if rd == rs1 == SP:
        return lambda known: known.moved(immediate)
    if rd in LINKS and immediate == 0:
        return lambda known: known.linked(rd, known.link(rs1))
    return lambda known: known.linked(rd, None)


def _store_change(rs2: int, offset: int, funct3: int, fp: bool, xlen: int) -> RegisterChange:
    if fp and funct3 in (0, 5, 6, 7):  # of vectors, of any length
        return lambda known: known._replace(slots=())
    if not fp and 1 << funct3 == xlen // 8:
        return _saved(rs2, offset, xlen)
    return lambda known: known.stored(offset, 1 << funct3)


def _saved(rs2: int, offset: int, xlen: int) -> RegisterChange:
    return lambda known: known.stored(offset, xlen // 8, known.link(rs2))


# 16-bit instructions, by quadrant and funct3


def _change16(half: int, xlen: int, zcm: bool) -> RegisterChange:
    quadrant, funct3, rd = half & 3, half >> 13, half >> 7 & 31
    if quadrant == 1 and funct3 < 4:
        return _change_q1(half, funct3, rd, xlen)
    if quadrant != 2:
        return None  # c.addi4spn, loads, stores and arithmetic on x8 to x15 alone
    if funct3 in (0b101, 0b110, 0b111):
        return _store_q2(half, funct3, xlen, zcm)
    if rd not in (SP, *LINKS) or funct3 == 0b001:
        return None
    if funct3 == 0b010 and xlen == 32:
        offset = (half >> 2 & 3) << 6 | (half >> 12 & 1) << 5 | (half >> 4 & 7) << 2
        return lambda known: known.loaded(rd, offset)
    if funct3 == 0b011:
        if xlen == 32:
            return None  # c.flwsp
        offset = (half >> 2 & 7) << 6 | (half >> 12 & 1) << 5 | (half >> 5 & 3) << 3
        return lambda known: known.loaded(rd, offset)
    if funct3 == 0b100 and half >> 2 & 31 == 0:
        return None  # c.jr, c.jalr, c.ebreak
    if funct3 == 0b100 and not half >> 12 & 1 and rd in LINKS:
        return lambda known: known.linked(rd, known.link(half >> 2 & 31))
    return lambda known: known.linked(rd, None)


def _change_q1(half: int, funct3: int, rd: int, xlen: int) -> RegisterChange:
    """Return the effect of c.addi, c.jal or c.addiw, c.li, c.addi16sp and c.lui."""
    if rd not in (SP, *LINKS) or (funct3 == 1 and xlen == 32):
        return None
    if rd == SP and funct3 == 0:
        by = _signed((half >> 12 & 1) << 5 | half >> 2 & 31, 6)
        return lambda known: known.moved(by)
    if rd == SP and funct3 == 3:
        high = (half >> 12 & 1) << 9 | (half >> 3 & 3) << 7 | (half >> 5 & 1) << 6
        by = _signed(high | (half >> 2 & 1) << 5 | (half >> 6 & 1) << 4, 10)
        return lambda known: known.moved(by)
    return lambda known: known.linked(rd, None)


def _store_q2(half: int, funct3: int, xlen: int, zcm: bool) -> RegisterChange:
    """Return the effect of c.fsdsp (or anything of Zcmp and Zcmt), c.swsp, c.sdsp or c.fswsp."""
    if funct3 == 0b101 and zcm:
        return lambda known: NOTHING_KNOWN
    wide = funct3 == 0b101 or (funct3 == 0b111 and xlen == 64)
    offset = (half >> 7 & 7) << 6 | (half >> 10 & 7) << 3 if wide else (half >> 7 & 3) << 6 | (half >> 9 & 15) << 2
    if funct3 == (0b111 if xlen == 64 else 0b110):
        return _saved(half >> 2 & 31, offset, xlen)
    return lambda known: known.stored(offset, 8 if wide else 4)


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


_LONGEST = 512  # instructions of a block
_EBREAKS = (0x0010_0073, 0x9002)
_SCTRCLR = 0x1040_0073
_SYSTEM = re.compile(rb"[\x73\xf3](?=[\x00-\xff]{3})")
"""The first byte of instructions that access CSRs, and of others with their opcode."""
_CTR = frozenset({0x14E, 0x14F, 0x15F, 0x24E, 0x34E, 0x181, 0x182, 0x183, 0x281, 0x282, 0x381, 0x382, 0x383})
"""*ctrctl, sctrstatus and sctrdepth; *ctrcontrol(h) and *ctrstatus of draft 0.1.4."""

_WITHOUT_LINKAGE = {
    IType.OTHER_UNINFERABLE: IType.UNINFERABLE_TAIL_CALL,
    IType.OTHER_INFERABLE: IType.INFERABLE_TAIL_CALL,
}


class ControlTransfer(NamedTuple):
    """The control transfer of the instruction at *pc*.

    kind    its TYPE; NOT_TAKEN for any conditional branch, NONE if execution just continues, EXCEPTION if it cannot
    fall    the address after it
    target  of a branch or direct jump; None: not determined by the code
    halts   ebreak: it may have halted the hart instead of raising an exception
    switches  it writes a register that controls what is recorded
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
    change: RegisterChange

    def leads_to(self, registers: TransferRegisters) -> int | None:
        """Return the target of a jump, None if what is known does not determine it."""
        via = self.instruction.via
        if via is None:
            return self.target
        if via.register == 0:
            return via.offset & self.mask & ~1
        upper = registers.upper
        base = upper[1] if upper is not None and upper[0] == via.register else registers.link(via.register)
        return None if base is None else base + via.offset & self.mask & ~1

    def after(self, registers: TransferRegisters) -> TransferRegisters:
        """Return what is known of the registers after a jump or a branch."""
        registers = registers._replace(upper=None)
        return registers.linked(self.link, self.fall) if self.link else registers

    @property
    def is_branch(self) -> bool:
        """Whether the transfer is a conditional branch."""
        return self.kind is IType.NOT_TAKEN

    @property
    def is_direct(self) -> bool:
        """Whether the transfer is a jump whose target is in the code, or in the jump table of cm.jt and cm.jalt."""
        return self.instruction.is_inferable_jump


class TransferBlock(NamedTuple):
    """Consecutive instructions at *pcs*; the last of them, *end*, may go elsewhere.

    *end_pc*: the address after them; *missing*: why there is no instruction there, "" if there is. *switches*: after
    them, what is recorded may have changed.
    """

    steps: tuple[ControlTransfer, ...]
    pcs: tuple[int, ...]
    end: ControlTransfer | None
    end_pc: int
    missing: str = ""
    switches: bool = False

    def up_to(self, count: int, registers: TransferRegisters) -> TransferRegisters:
        """Return what is known of the registers after the first *count* instructions, none of which is *end*."""
        if not count:
            return registers
        for step in self.steps[:count]:
            if step.change is not None:
                registers = step.change(registers)
        upper, last = None, self.steps[count - 1]
        if last.instruction.upper is not None:
            upper = upper_of(last.instruction.upper, last.pc)
        return registers._replace(upper=upper)


class CodeTransfers:
    """The transfers and blocks of one image, found on first use."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.mask = (1 << image.xlen) - 1
        self._transfers: dict[int, ControlTransfer | str] = {}
        self._blocks: dict[int, TransferBlock] = {}

    def transfer_at(self, pc: int) -> ControlTransfer | str:
        """Return the transfer at *pc*, or why it is not known."""
        known = self._transfers.get(pc)
        if known is None:
            known = self._transfers[pc] = self._transfer(pc)
        return known

    @cached_property
    def may_switch(self) -> bool:
        """Whether anything in the program looks like an instruction that changes what is recorded."""
        segments = ((data, found.start()) for _, data in self.image.segments for found in _SYSTEM.finditer(data))
        return any(not at & 1 and _switches(int.from_bytes(data[at : at + 4], "little")) for data, at in segments)

    def block(self, pc: int) -> TransferBlock:
        """Return the block that begins at *pc*."""
        known = self._blocks.get(pc)
        if known is None:
            known = self._blocks[pc] = self._transfer_block(pc)
        return known

    def _transfer_block(self, pc: int) -> TransferBlock:
        steps: list[ControlTransfer] = []
        while len(steps) < _LONGEST:
            step = self.transfer_at(pc)
            if isinstance(step, str):
                return _block_of_steps(steps, None, pc, step)
            steps.append(step)
            if step.kind is not IType.NONE:
                return _block_of_steps(steps, step, step.fall)
            pc = step.fall
            if step.switches:
                return _block_of_steps(steps, None, pc, switches=True)
        return _block_of_steps(steps, None, pc)

    def _transfer(self, pc: int) -> ControlTransfer | str:
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
        if instruction.served:  # an exception there is recorded, like that of any instruction
            kind = IType.NONE
        change = change_of(word, instruction, self.image.xlen, zcm=self.image.zcm)
        halts = kind is IType.EXCEPTION and word in _EBREAKS
        return ControlTransfer(
            pc=pc,
            kind=kind,
            fall=fall,
            target=target,
            halts=halts,
            switches=_switches(word),
            link=link,
            mask=self.mask,
            instruction=instruction,
            change=change,
        )


def _block_of_steps(
    steps: list[ControlTransfer], end: ControlTransfer | None, end_pc: int, missing: str = "", *, switches: bool = False
) -> TransferBlock:
    return TransferBlock(
        tuple(steps), tuple(step.pc for step in steps), end, end_pc=end_pc, missing=missing, switches=switches
    )


def _switches(word: int) -> bool:
    """Return whether an instruction writes one of the CSRs in `_CTR`."""
    funct3, source = word >> 12 & 7, word >> 15 & 31
    writes = funct3 in (1, 5) or (funct3 in (2, 3, 6, 7) and source)
    return word == _SCTRCLR or (word & 0x7F == 0x73 and bool(writes) and word >> 20 in _CTR)


def _link(instruction: Instruction, word: int) -> int:
    """Return the register into which a jump puts the return address."""
    jumps = instruction.is_inferable_jump or instruction.is_uninferable
    if not jumps or instruction.itype is IType.TRAP_RETURN:
        return 0
    if instruction.length == 4:
        return word >> 7 & 31
    return int(instruction.itype in (IType.INFERABLE_CALL, IType.UNINFERABLE_CALL, IType.COROUTINE_SWAP))
