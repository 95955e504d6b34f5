"""What an instruction does to the flow: its length, its ingress-port itype, where a direct one goes.

Sources: the RISC-V Instruction Set Manual, volume I (lengths: "Expanded Instruction-Length Encoding"; Zcmp and Zcmt:
the Zc chapter); itype: N-Trace 1.0.0-rc7 table 2 and E-Trace 2.0 table 4.4.

The jumps that keep no return address are named as in rc7 (OTHER_INFERABLE, OTHER_UNINFERABLE). N-Trace 1.0 lets a
hart call some of them tail calls (10, 11); both names are treated alike everywhere, so nothing decoded depends on the
choice.
"""

from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.errors import UndecodableInstruction as UndecodableInstruction

_LINK = (1, 5)
_CUSTOM_OPCODES = (0x0B, 0x2B, 0x5B, 0x7B)


class IType(IntEnum):
    """The 4-bit itype of the trace ingress port (N-Trace tables 2 to 4)."""

    NONE = 0
    EXCEPTION = 1
    INTERRUPT = 2
    TRAP_RETURN = 3
    NOT_TAKEN = 4
    TAKEN = 5
    UNINFERABLE_JUMP = 6
    UNINFERABLE_CALL = 8
    INFERABLE_CALL = 9
    UNINFERABLE_TAIL_CALL = 10
    INFERABLE_TAIL_CALL = 11
    COROUTINE_SWAP = 12
    RETURN = 13
    OTHER_UNINFERABLE = 14
    OTHER_INFERABLE = 15


_BRANCHES = frozenset({IType.NOT_TAKEN, IType.TAKEN})
_INFERABLE = frozenset({IType.INFERABLE_CALL, IType.INFERABLE_TAIL_CALL, IType.OTHER_INFERABLE})
_UNINFERABLE = frozenset(
    {
        IType.TRAP_RETURN,
        IType.UNINFERABLE_JUMP,
        IType.UNINFERABLE_CALL,
        IType.UNINFERABLE_TAIL_CALL,
        IType.COROUTINE_SWAP,
        IType.RETURN,
        IType.OTHER_UNINFERABLE,
    }
)


class Upper(NamedTuple):
    """What lui, c.lui or auipc puts into a register: *value*, plus the instruction's address if *relative*."""

    register: int
    value: int
    relative: bool


class Via(NamedTuple):
    """Where an indirect jump goes: the content of *register* plus *offset*."""

    register: int
    offset: int


class Instruction(NamedTuple):
    """One instruction, as far as program flow is concerned.

    *length* in bytes. *itype* of a conditional branch is NOT_TAKEN: the outcome is not in the code. *offset* is the
    target of a branch or direct jump relative to the instruction's address, None where the code does not tell (cm.jt
    and cm.jalt take it from the table jvt points at; see `Image.instruction`). *custom*: in the custom opcode space,
    so it may change the flow in a way only its designer knows (N-Trace 10.1). *upper* and *via*: what
    `sequential_target` needs, for the instructions that have it.
    """

    length: int
    itype: IType
    offset: int | None = None
    custom: bool = False
    upper: Upper | None = None
    via: Via | None = None

    @property
    def is_branch(self) -> bool:
        """A conditional branch."""
        return self.itype in _BRANCHES

    @property
    def is_inferable_jump(self) -> bool:
        """An unconditional jump whose target the code tells."""
        return self.itype in _INFERABLE

    @property
    def is_uninferable(self) -> bool:
        """A jump to an address only the trace tells, returns from traps included."""
        return self.itype in _UNINFERABLE


def sequential_target(before: Instruction, before_pc: int, jump: Instruction, xlen: int) -> int | None:
    """Where *jump* goes when *before*, retired right before it at *before_pc*, loads its register with a constant.

    None when it does not. (N-Trace 9.1, "Sequential Jump Optimization"; E-Trace "sequentially inferable jumps".)
    """
    upper, via = before.upper, jump.via
    if upper is None or via is None or upper.register != via.register:
        return None
    base = before_pc if upper.relative else 0
    return base + upper.value + via.offset & (1 << xlen) - 2


def length(first_halfword: int) -> int:
    """Bytes of the instruction that starts with this halfword: 2, 4, 6, ... 22. Raises UndecodableInstruction."""
    if first_halfword & 0b11 != 0b11:
        return 2
    if first_halfword & 0b11100 != 0b11100:
        return 4
    if first_halfword & 0b100000 == 0:
        return 6
    if first_halfword & 0b1000000 == 0:
        return 8
    nnn = first_halfword >> 12 & 0b111
    if nnn == 0b111:
        raise UndecodableInstruction(first_halfword & 0xFFFF)
    return 10 + 2 * nnn


def classify(word: int, xlen: int, *, zcm: bool = False) -> Instruction:
    """The instruction in the low bits of *word* (32 bits are enough for any length) on a hart of *xlen* 32 or 64.

    *zcm*: the hart has Zcmp or Zcmt, whose encodings are those of c.fsdsp elsewhere. The all-zero halfword, illegal
    by definition, is EXCEPTION like ecall and ebreak: it never simply passes. Raises UndecodableInstruction.
    """
    size = length(word & 0xFFFF)
    if size == 2:
        return _classify16(word & 0xFFFF, xlen, zcm)
    if size == 4:
        return _classify32(word & 0xFFFF_FFFF)
    return Instruction(size, IType.NONE, custom=True)


def _classify32(word: int) -> Instruction:
    opcode = word & 0x7F
    if opcode == 0x63 and word >> 12 & 0b110 != 0b010:  # funct3 2 and 3 are reserved
        return Instruction(4, IType.NOT_TAKEN, _branch_offset(word))
    if opcode == 0x6F:
        call = word >> 7 & 31 in _LINK
        return Instruction(4, IType.INFERABLE_CALL if call else IType.OTHER_INFERABLE, _jal_offset(word))
    if opcode == 0x67 and word >> 12 & 0b111 == 0:
        rs1 = word >> 15 & 31
        return Instruction(4, _jalr_itype(word >> 7 & 31, rs1), via=Via(rs1, _signed(word >> 20, 12)))
    if opcode in (0x37, 0x17):  # lui, auipc; x0 holds no constant
        rd = word >> 7 & 31
        upper = Upper(rd, _signed(word >> 12, 20) << 12, opcode == 0x17) if rd else None
        return Instruction(4, IType.NONE, upper=upper)
    if opcode == 0x73:
        return Instruction(4, _SYSTEM.get(word, IType.NONE))
    return Instruction(4, IType.NONE, custom=opcode in _CUSTOM_OPCODES)


_SYSTEM = {
    0x0000_0073: IType.EXCEPTION,  # ecall
    0x0010_0073: IType.EXCEPTION,  # ebreak
    0x0020_0073: IType.TRAP_RETURN,  # uret (in rc7's table; the N extension was never ratified)
    0x1020_0073: IType.TRAP_RETURN,  # sret
    0x3020_0073: IType.TRAP_RETURN,  # mret
    0x7020_0073: IType.TRAP_RETURN,  # mnret
    0x7B20_0073: IType.TRAP_RETURN,  # dret
}


def _jalr_itype(rd: int, rs1: int) -> IType:
    if rd in _LINK:
        return IType.COROUTINE_SWAP if rs1 in _LINK and rs1 != rd else IType.UNINFERABLE_CALL
    return IType.RETURN if rs1 in _LINK else IType.OTHER_UNINFERABLE


def _classify16(half: int, xlen: int, zcm: bool) -> Instruction:
    quadrant, funct3 = half & 0b11, half >> 13
    if quadrant == 1:
        if funct3 in (0b110, 0b111):  # c.beqz, c.bnez
            return Instruction(2, IType.NOT_TAKEN, _c_branch_offset(half))
        if funct3 == 0b101:  # c.j
            return Instruction(2, IType.OTHER_INFERABLE, _c_jump_offset(half))
        if funct3 == 0b001 and xlen == 32:  # c.jal; c.addiw on RV64
            return Instruction(2, IType.INFERABLE_CALL, _c_jump_offset(half))
        rd = half >> 7 & 31
        if funct3 == 0b011 and rd not in (0, 2):  # c.lui; rd = x2 is c.addi16sp
            immediate = _signed((half >> 12 & 1) << 5 | half >> 2 & 31, 6)
            return Instruction(2, IType.NONE, upper=Upper(rd, immediate << 12, False))
    elif quadrant == 2:
        if funct3 == 0b100:
            itype = _c_register_jump_itype(half)
            via = Via(half >> 7 & 31, 0) if itype not in (IType.NONE, IType.EXCEPTION) else None
            return Instruction(2, itype, via=via)
        if funct3 == 0b101 and zcm:
            return Instruction(2, _zcm_itype(half))
    elif half == 0:
        return Instruction(2, IType.EXCEPTION)
    return Instruction(2, IType.NONE)


def _c_register_jump_itype(half: int) -> IType:
    rs1 = half >> 7 & 31
    if half >> 2 & 31:  # c.mv, c.add
        return IType.NONE
    if half & 1 << 12 == 0:
        return _jalr_itype(0, rs1) if rs1 else IType.NONE  # c.jr; rs1 = 0 is reserved
    return _jalr_itype(1, rs1) if rs1 else IType.EXCEPTION  # c.jalr, c.ebreak


def _zcm_itype(half: int) -> IType:
    selector = half >> 8 & 31
    if selector in (0b11100, 0b11110) and half >> 4 & 15 >= 4:  # cm.popretz, cm.popret; rlist 0 to 3 is reserved
        return IType.RETURN
    if selector >> 2 == 0:  # cm.jt, cm.jalt
        return IType.OTHER_INFERABLE if zcmt_index(half) < 32 else IType.INFERABLE_CALL
    return IType.NONE


def zcmt_index(half: int) -> int:
    """The jump table index of a cm.jt or cm.jalt."""
    return half >> 2 & 0xFF


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _branch_offset(word: int) -> int:
    value = (word >> 31) << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 0x3F) << 5 | (word >> 8 & 0xF) << 1
    return _signed(value, 13)


def _jal_offset(word: int) -> int:
    value = (word >> 31) << 20 | (word >> 12 & 0xFF) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 0x3FF) << 1
    return _signed(value, 21)


def _c_branch_offset(half: int) -> int:
    high = (half >> 12 & 1) << 8 | (half >> 5 & 3) << 6 | (half >> 2 & 1) << 5
    return _signed(high | (half >> 10 & 3) << 3 | (half >> 3 & 3) << 1, 9)


def _c_jump_offset(half: int) -> int:
    value = (
        (half >> 12 & 1) << 11
        | (half >> 8 & 1) << 10
        | (half >> 9 & 3) << 8
        | (half >> 6 & 1) << 7
        | (half >> 7 & 1) << 6
        | (half >> 2 & 1) << 5
        | (half >> 11 & 1) << 4
        | (half >> 3 & 7) << 1
    )
    return _signed(value, 12)
